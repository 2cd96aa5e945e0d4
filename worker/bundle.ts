import { existsSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { bundleWorkflowCode, DefaultLogger, type WorkflowBundleOption } from '@temporalio/worker';

/** Made by `npm run build`, so that a worker that was killed is back without those seconds. */
const BUILT = join(__dirname, '../workflow-bundle.js');

/** The workflows' code as one file, from the sources beside this module. */
export async function bundleWorkflows(): Promise<{ code: string }> {
  return await bundleWorkflowCode({
    workflowsPath: require.resolve('../workflows'),
    logger: new DefaultLogger('WARN'),
  });
}

/** The bundle that the build left, unless it is older than the code; or else one made now. */
export async function workflowBundle(): Promise<WorkflowBundleOption> {
  return isFresh() ? { codePath: BUILT } : await bundleWorkflows();
}

function isFresh(): boolean {
  if (!existsSync(BUILT)) return false;
  return statSync(BUILT).mtimeMs >= statSync(require.resolve('../workflows')).mtimeMs;
}

/** Whole or not at all: a worker may be starting from it. */
async function build(): Promise<void> {
  const { code } = await bundleWorkflows();
  writeFileSync(`${BUILT}.new`, code);
  renameSync(`${BUILT}.new`, BUILT);
}

if (require.main === module) {
  build().catch((error) => {
    console.error(error);
    process.exit(1);
  });
}

import { existsSync, mkdirSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { bundleWorkflowCode, DefaultLogger, type WorkflowBundleOption } from '@temporalio/worker';
import { IS_CHECKOUT } from '../src/base/program';

/** Separate bundles, since each run evaluates all modules of its bundle. */
const SOURCES = {
  lifecycle: { workflowsPath: require.resolve('../workflows') },
  webhooks: { workflowsPath: require.resolve('../workflows/webhook/delivery') },
  replay: {
    workflowsPath: require.resolve('../workflows'),
    workflowInterceptorModules: [require.resolve('./rebuild/interceptors')],
  },
};

type BundleName = keyof typeof SOURCES;
export type WorkflowBundles = Record<BundleName, WorkflowBundleOption>;

/** Built ahead, so that a killed worker restarts at once. */
const BUILT = join(__dirname, '../workflow-bundles');

export async function writeBundles(folder: string): Promise<WorkflowBundles> {
  mkdirSync(folder, { recursive: true });
  return await eachBundle(async (name) => {
    const codePath = pathIn(folder, name);
    const { code } = await bundle(name);
    // Atomic: a worker may be starting from it.
    writeFileSync(`${codePath}.new`, code);
    renameSync(`${codePath}.new`, codePath);
    return { codePath };
  });
}

export function bundlesIn(folder: string): WorkflowBundles {
  return {
    lifecycle: { codePath: pathIn(folder, 'lifecycle') },
    webhooks: { codePath: pathIn(folder, 'webhooks') },
    replay: { codePath: pathIn(folder, 'replay') },
  };
}

/**
 * Bundles again when a bundle is older than the code. Outside a checkout the times of files mean
 * nothing.
 */
export async function workflowBundles(): Promise<WorkflowBundles> {
  if (!IS_CHECKOUT) return bundlesIn(BUILT);
  if (isFresh('lifecycle') && isFresh('webhooks') && isFresh('replay')) return bundlesIn(BUILT);
  return await eachBundle(bundle);
}

async function eachBundle(
  make: (name: BundleName) => Promise<WorkflowBundleOption>,
): Promise<WorkflowBundles> {
  return {
    lifecycle: await make('lifecycle'),
    webhooks: await make('webhooks'),
    replay: await make('replay'),
  };
}

async function bundle(name: BundleName): Promise<{ code: string }> {
  return await bundleWorkflowCode({ ...SOURCES[name], logger: new DefaultLogger('WARN') });
}

function pathIn(folder: string, name: BundleName): string {
  return join(folder, `${name}.js`);
}

function isFresh(name: BundleName): boolean {
  const file = pathIn(BUILT, name);
  return (
    existsSync(file) && statSync(file).mtimeMs >= statSync(SOURCES[name].workflowsPath).mtimeMs
  );
}

if (require.main === module) {
  writeBundles(BUILT).catch((error) => {
    console.error(error);
    process.exit(1);
  });
}

import { bundleWorkflows } from '../../worker/create-worker';

let made: Promise<{ code: string }> | undefined;

/** Once a test file: it takes seconds. */
export function workflowBundle(): Promise<{ code: string }> {
  made ??= bundleWorkflows();
  return made;
}

import type { WorkflowBundleOption } from '@temporalio/worker';
import { bundleWorkflows } from '../../worker/bundle';

let made: Promise<WorkflowBundleOption> | undefined;

/** Made once by the global set-up; by itself when a file is run without it. */
export function workflowBundle(): Promise<WorkflowBundleOption> {
  const codePath = process.env['TEST_WORKFLOW_BUNDLE'];
  made ??= codePath === undefined ? bundleWorkflows() : Promise.resolve({ codePath });
  return made;
}

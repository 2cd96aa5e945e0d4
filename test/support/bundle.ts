import { bundlesIn, workflowBundles as made, type WorkflowBundles } from '../../worker/bundle';

let bundles: Promise<WorkflowBundles> | undefined;

/** Made once by the global set-up; by itself when a file is run without it. */
export function workflowBundles(): Promise<WorkflowBundles> {
  const folder = process.env['TEST_WORKFLOW_BUNDLES'];
  bundles ??= folder === undefined ? made() : Promise.resolve(bundlesIn(folder));
  return bundles;
}

import type { WorkerDeploymentOptions } from '@temporalio/worker';
import type { Config } from '../src/config';

export interface WorkerVersion {
  deploymentName: string;
  buildId: string;
}

/** @returns undefined without versioning @throws Error when only one of the two variables is set */
export function readVersion({
  TEMPORAL_DEPLOYMENT_NAME,
  TEMPORAL_WORKER_BUILD_ID,
}: Pick<Config, 'TEMPORAL_DEPLOYMENT_NAME' | 'TEMPORAL_WORKER_BUILD_ID'>):
  | WorkerVersion
  | undefined {
  if (TEMPORAL_DEPLOYMENT_NAME === '' && TEMPORAL_WORKER_BUILD_ID === '') return undefined;
  if (TEMPORAL_DEPLOYMENT_NAME !== '' && TEMPORAL_WORKER_BUILD_ID !== '') {
    return { deploymentName: TEMPORAL_DEPLOYMENT_NAME, buildId: TEMPORAL_WORKER_BUILD_ID };
  }
  throw new Error(
    'The environment is not usable.\n' +
      '  TEMPORAL_DEPLOYMENT_NAME and TEMPORAL_WORKER_BUILD_ID belong together.',
  );
}

/**
 * Ends a delivery on its first version; lifecycles, which may take months, continue on the current
 * one.
 * @see docs/operations.md#worker-versioning
 */
export function versionOptions(
  version: WorkerVersion | undefined,
  defaultVersioningBehavior: 'PINNED' | 'AUTO_UPGRADE',
): { workerDeploymentOptions?: WorkerDeploymentOptions } {
  if (version === undefined) return {};
  return {
    workerDeploymentOptions: { version, useWorkerVersioning: true, defaultVersioningBehavior },
  };
}

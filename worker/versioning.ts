import type { WorkerDeploymentOptions } from '@temporalio/worker';
import type { Config } from '../src/config';

/** Version of a worker: the deployment that it is of, and its build. */
export interface WorkerVersion {
  deploymentName: string;
  buildId: string;
}

/**
 * Undefined where workers are not told apart.
 * @throws Error when one of the two variables is given without the other
 */
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
 * Options by which a worker is known. A delivery ends on the version that it began on; lifecycles,
 * which may wait for months, go on with the current one.
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

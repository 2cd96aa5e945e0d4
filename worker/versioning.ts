import type { WorkerDeploymentOptions } from '@temporalio/worker';
import type { Config } from '../src/config';

export interface WorkerVersion {
  deploymentName: string;
  buildId: string;
}

/** @throws Error when only one of the two variables is set */
export function readVersion(
  config: Pick<Config, 'TEMPORAL_DEPLOYMENT_NAME' | 'TEMPORAL_WORKER_BUILD_ID'>,
): WorkerVersion | undefined {
  const { TEMPORAL_DEPLOYMENT_NAME: deploymentName, TEMPORAL_WORKER_BUILD_ID: buildId } = config;
  if (deploymentName === '' && buildId === '') return undefined;
  if (deploymentName !== '' && buildId !== '') return { deploymentName, buildId };
  throw new Error(
    'The environment is not usable.\n' +
      '  TEMPORAL_DEPLOYMENT_NAME and TEMPORAL_WORKER_BUILD_ID belong together.',
  );
}

/**
 * Pins a delivery; lifecycles, which may take months, continue on the current version.
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

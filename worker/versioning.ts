import type { WorkerDeploymentOptions } from '@temporalio/worker';
import { z } from 'zod';
import { parseEnvironment } from '../src/config';

/** Name and version by which Temporal tells a deployment's workers apart, by its own names. */
export const Environment = z.object({
  TEMPORAL_DEPLOYMENT_NAME: z.string().default(''),
  TEMPORAL_WORKER_BUILD_ID: z.string().default(''),
});

/** Version of a worker: the deployment that it is of, and its build. */
export interface WorkerVersion {
  deploymentName: string;
  buildId: string;
}

/**
 * Undefined where workers are not told apart.
 * @throws Error when one of the two variables is given without the other
 */
export function readVersion(env: NodeJS.ProcessEnv = process.env): WorkerVersion | undefined {
  const { TEMPORAL_DEPLOYMENT_NAME, TEMPORAL_WORKER_BUILD_ID } = parseEnvironment(Environment, env);
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

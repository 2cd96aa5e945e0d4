import { readVersion, versionOptions } from '../../../worker/versioning';

const NAMES = { TEMPORAL_DEPLOYMENT_NAME: 'payments', TEMPORAL_WORKER_BUILD_ID: '1.4.0' };

test('workers are told apart only where the deployment and the build are named', () => {
  expect(readVersion({})).toBeUndefined();
  expect(readVersion(NAMES)).toEqual({ deploymentName: 'payments', buildId: '1.4.0' });
  expect(() => readVersion({ TEMPORAL_DEPLOYMENT_NAME: 'payments' })).toThrow(/belong together/);
  expect(() => readVersion({ TEMPORAL_WORKER_BUILD_ID: '1.4.0' })).toThrow(/belong together/);
});

test('a worker without a version has no options of one', () => {
  expect(versionOptions(undefined, 'PINNED')).toEqual({});
});

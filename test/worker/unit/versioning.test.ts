import { readVersion, versionOptions } from '../../../worker/versioning';

const NAMES = { TEMPORAL_DEPLOYMENT_NAME: 'payments', TEMPORAL_WORKER_BUILD_ID: '1.4.0' };

test('workers are told apart only where the deployment and the build are named', () => {
  expect(
    readVersion({ TEMPORAL_DEPLOYMENT_NAME: '', TEMPORAL_WORKER_BUILD_ID: '' }),
  ).toBeUndefined();
  expect(readVersion(NAMES)).toEqual({ deploymentName: 'payments', buildId: '1.4.0' });
  expect(() => readVersion({ ...NAMES, TEMPORAL_WORKER_BUILD_ID: '' })).toThrow(/belong together/);
  expect(() => readVersion({ ...NAMES, TEMPORAL_DEPLOYMENT_NAME: '' })).toThrow(/belong together/);
});

test('a worker without a version has no options of one', () => {
  expect(versionOptions(undefined, 'PINNED')).toEqual({});
});

import { CancelledFailure } from '@temporalio/activity';
import { reportProgress } from '../../../activities/shared/record';
import { whileHeartbeating } from '../../../activities/webhooks/deliver';
import { gate } from '../../support/gate';
import { mockActivityEnvironment } from '../../support/quiet';

beforeEach(() => void jest.useFakeTimers());
afterEach(() => void jest.useRealTimers());

function openEnvironment(heartbeatDetails?: object) {
  const heartbeats: unknown[] = [];
  const environment = mockActivityEnvironment({ heartbeatDetails });
  environment.on('heartbeat', (details: unknown) => heartbeats.push(details));
  return { environment, heartbeats };
}

test('a long try reports the details of an earlier one every three seconds until it ends', async () => {
  const details = { attempt: 3 };
  const { environment, heartbeats } = openEnvironment(details);
  const { opened, release } = gate();
  const run = environment.run(() => whileHeartbeating(() => opened));
  await jest.advanceTimersByTimeAsync(2_999);
  expect(heartbeats).toEqual([]);
  await jest.advanceTimersByTimeAsync(3_001);
  expect(heartbeats).toEqual([details, details]);
  release();
  await run;
  await jest.advanceTimersByTimeAsync(10_000);
  expect(heartbeats).toHaveLength(2);
});

test('a try that has failed sends no more heartbeats', async () => {
  const { environment, heartbeats } = openEnvironment();
  const fail = () => Promise.reject(new Error('failed'));
  await expect(environment.run(() => whileHeartbeating(fail))).rejects.toThrow('failed');
  await jest.advanceTimersByTimeAsync(10_000);
  expect(heartbeats).toEqual([]);
});

test('a long activity reports its progress, and ends at the first report after its worker stops', async () => {
  const { environment, heartbeats } = openEnvironment();
  const walk = async () => {
    for (const page of [1, 2, 3, 4]) {
      if (page === 3) environment.cancel();
      reportProgress(page);
    }
  };
  await expect(environment.run(walk)).rejects.toBeInstanceOf(CancelledFailure);
  expect(heartbeats).toEqual([1, 2, 3]);
});

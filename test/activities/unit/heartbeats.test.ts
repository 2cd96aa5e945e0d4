import { MockActivityEnvironment } from '@temporalio/testing';
import { whileHeartbeating } from '../../../activities/webhooks/heartbeats';
import { gate } from '../../support/gate';

beforeEach(() => void jest.useFakeTimers());
afterEach(() => void jest.useRealTimers());

test('a try that takes long reports every three seconds, with what an earlier one left, until it ends', async () => {
  const heartbeatDetails = { attempt: 3 };
  const heartbeats: unknown[] = [];
  const environment = new MockActivityEnvironment({ heartbeatDetails });
  environment.on('heartbeat', (details: unknown) => heartbeats.push(details));
  const { opened, release } = gate();
  const run = environment.run(() => whileHeartbeating(() => opened));
  await jest.advanceTimersByTimeAsync(2_999);
  expect(heartbeats).toEqual([]);
  await jest.advanceTimersByTimeAsync(3_001);
  expect(heartbeats).toEqual([heartbeatDetails, heartbeatDetails]);
  release();
  await run;
  await jest.advanceTimersByTimeAsync(10_000);
  expect(heartbeats).toHaveLength(2);
});

test('a try that fails reports no more', async () => {
  const heartbeats: unknown[] = [];
  const environment = new MockActivityEnvironment();
  environment.on('heartbeat', (details: unknown) => heartbeats.push(details));
  const run = environment.run(() =>
    whileHeartbeating(async () => {
      throw new Error('failed');
    }),
  );
  await expect(run).rejects.toThrow('failed');
  await jest.advanceTimersByTimeAsync(10_000);
  expect(heartbeats).toEqual([]);
});

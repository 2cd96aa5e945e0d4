import { IllegalStateError } from '@temporalio/common';
import { reportsStuck } from '../../../src/domain/stuck';
import { runWorker, runWorkerUntil } from '../../../src/temporal/native';

const STILL_IN_USE = new IllegalStateError('Worker still in use: Expected 1 reference, but got 2');

/** Builds a worker that ends in this state, with this error. */
const buildWorker = (state: 'STOPPED' | 'FAILED', error: Error) => ({
  run: () => Promise.reject(error),
  getState: () => state,
});

test('a worker that has stopped ends without error, even if the SDK cannot release it yet', async () => {
  await expect(runWorker(buildWorker('STOPPED', STILL_IN_USE))).resolves.toBeUndefined();
});

test.each([
  ['that failed', buildWorker('FAILED', STILL_IN_USE)],
  ['that broke', buildWorker('STOPPED', new Error('broken'))],
])('a worker %s rejects', async (_, worker) => {
  await expect(runWorker(worker)).rejects.toThrow(/still in use|broken/);
});

test('a worker that is shut down ends without error, even if the SDK cannot release it yet', async () => {
  let state: 'INITIALIZED' | 'RUNNING' | 'STOPPED' = 'INITIALIZED';
  let release: (error: Error) => void = () => undefined;
  const worker = {
    getState: () => state,
    run: () => {
      state = 'RUNNING';
      return new Promise<void>((_, reject) => {
        release = reject;
      });
    },
    shutdown: () => {
      state = 'STOPPED';
      release(STILL_IN_USE);
    },
  };
  await expect(runWorkerUntil(worker, Promise.resolve())).resolves.toBeUndefined();
  expect(state).toBe('STOPPED');
});

test('a stuck step is reported after five minutes, then more and more rarely', () => {
  const attempts = Array.from({ length: 600 }, (_, index) => index + 1);
  expect(attempts.filter(reportsStuck)).toEqual([16, 32, 64, 128, 256, 512]);
});

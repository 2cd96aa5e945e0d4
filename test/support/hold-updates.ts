import { setTimeout as sleep } from 'node:timers/promises';
import { gate } from './gate';

const HELD_MS_MAX = 30_000;

interface Updatable<Args extends unknown[], Result> {
  update: (...args: Args) => Promise<Result>;
}

/**
 * Holds the updates of a store during work. A transaction of the test would not do: the server ends
 * one that lasts three seconds.
 * @param work gets what resolves once the first update is held
 */
export async function withHeldUpdates<Args extends unknown[], Result, T>(
  store: Updatable<Args, Result>,
  work: (reached: Promise<void>) => Promise<T>,
): Promise<T> {
  const [hold, first] = [gate(), gate()];
  const { update } = store;
  const spy = jest.spyOn(store, 'update').mockImplementation(async (...args: Args) => {
    first.release();
    await hold.opened;
    return await update(...args);
  });
  try {
    return await work(inTime(first.opened));
  } finally {
    spy.mockRestore();
    hold.release();
  }
}

/** Fails before the test's time is over, after which the updates would stay held. */
async function inTime(held: Promise<void>): Promise<void> {
  const limit = sleep(HELD_MS_MAX, undefined, { ref: false }).then(() => {
    throw new Error('No update was held.');
  });
  await Promise.race([held, limit]);
}

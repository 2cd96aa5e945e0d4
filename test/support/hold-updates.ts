import { gate } from './gate';

interface Updatable<Args extends unknown[], Result> {
  update: (...args: Args) => Promise<Result>;
}

/**
 * Holds the updates of a store until they are released. A transaction of the test would not do: the
 * server ends one that lasts three seconds.
 */
export function holdUpdates<Args extends unknown[], Result>(store: Updatable<Args, Result>) {
  const { opened, release } = gate();
  const { update } = store;
  const spy = jest.spyOn(store, 'update').mockImplementation(async (...args: Args) => {
    await opened;
    return await update(...args);
  });
  return () => {
    spy.mockRestore();
    release();
  };
}

const closings: (() => unknown)[] = [];

/**
 * Opens what a file's tests need before them, and closes it after them: fixtures open in the order
 * in which the file names them, and close in reverse.
 * @returns what `open` gives; it is read only once the tests run
 */
export function useFixture<T extends object>(
  open: () => Promise<T>,
  close: (opened: T) => unknown = () => undefined,
): T {
  const slot: { opened?: T } = {};
  beforeAll(async () => {
    const opened = await open();
    slot.opened = opened;
    closings.push(() => close(opened));
  });
  afterAll(async () => await closings.pop()?.());
  return readThrough(slot);
}

/** As `useFixture`, opened for each test; there is nothing to close. */
export function useFreshFixture<T extends object>(open: () => Promise<T>): T {
  const slot: { opened?: T } = {};
  beforeEach(async () => {
    slot.opened = await open();
  });
  return readThrough(slot);
}

function readThrough<T extends object>(slot: { opened?: T }): T {
  const opened = (): T => {
    if (slot.opened === undefined) throw new Error('A fixture is open only while tests run.');
    return slot.opened;
  };
  return new Proxy<T>(Object.create(null), {
    get: (_, name) => Reflect.get(opened(), name),
    set: (_, name, value) => Reflect.set(opened(), name, value),
    has: (_, name) => Reflect.has(opened(), name),
    ownKeys: () => Reflect.ownKeys(opened()),
    getOwnPropertyDescriptor: (_, name) => Reflect.getOwnPropertyDescriptor(opened(), name),
  });
}

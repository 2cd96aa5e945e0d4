import { CACHE_MS, createCache, createCachedRead } from '../../../src/store/cache';

describe('a cache', () => {
  function open(maxAgeMs = CACHE_MS) {
    const clock = { now: 0 };
    const cache = createCache<{ value: number }>(maxAgeMs, () => clock.now);
    const stored: { row: { value: number } | null } = { row: { value: 1 } };
    const read = jest.fn(async () => stored.row);
    const get = async () => (await cache.get('key', read))?.value;
    return { clock, cache, stored, read, get };
  }

  test('reads a document once in 2 seconds, from the beginning of the read', async () => {
    const { cache, get, stored, clock, read } = open();
    await cache.get('key', async () => {
      clock.now = CACHE_MS - 1;
      return { value: 1 };
    });
    stored.row = { value: 2 };
    expect([await get(), await get()]).toEqual([1, 1]);
    expect(read).not.toHaveBeenCalled();
    clock.now = CACHE_MS;
    expect([await get(), await get()]).toEqual([2, 2]);
    expect(read).toHaveBeenCalledTimes(1);
  });

  test('reads a document again for a refresh, whose result later callers get, unless it is gone', async () => {
    const { cache, read, get, stored } = open();
    await get();
    stored.row = { value: 2 };
    expect(await cache.refresh('key', read)).toEqual({ value: 2 });
    expect(await get()).toBe(2);
    expect(read).toHaveBeenCalledTimes(2);
    stored.row = null;
    await cache.refresh('key', read);
    expect(await get()).toBeUndefined();
    stored.row = { value: 3 };
    expect(await get()).toBe(3);
  });

  test('of age 0 reads for each caller', async () => {
    const { get, read } = open(0);
    expect([await get(), await get()]).toEqual([1, 1]);
    expect(read).toHaveBeenCalledTimes(2);
  });
});

describe('a cached read', () => {
  function open(maxAgeMs = CACHE_MS) {
    const clock = { now: 0 };
    let reads = 0;
    const read = jest.fn(async () => ++reads);
    return { clock, read, get: createCachedRead(maxAgeMs, read, () => clock.now) };
  }

  test('serves all callers at once, and those of the next 2 seconds', async () => {
    const { clock, read, get } = open();
    expect(await Promise.all([get(), get(), get()])).toEqual([1, 1, 1]);
    clock.now = CACHE_MS - 1;
    expect(await get()).toBe(1);
    clock.now = CACHE_MS;
    expect(await Promise.all([get(), get()])).toEqual([2, 2]);
    expect(read).toHaveBeenCalledTimes(2);
  });

  test('that fails is repeated by the next caller', async () => {
    const { read, get } = open();
    read.mockRejectedValueOnce(new Error('away'));
    const both = await Promise.allSettled([get(), get()]);
    expect(both.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    expect(await get()).toBe(1);
    expect(read).toHaveBeenCalledTimes(2);
  });

  test('of age 0 is repeated for each caller', async () => {
    const { get } = open(0);
    expect([await get(), await get()]).toEqual([1, 2]);
  });
});

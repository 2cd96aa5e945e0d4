import { CACHE_MS, createCache, createCachedRead } from '../../../src/store/cache';

interface Row {
  value: number;
}

function openCache(maxAgeMs = CACHE_MS) {
  const clock = { now: 0 };
  const cache = createCache<Row>(maxAgeMs, () => clock.now);
  let reads = 0;
  let stored: Row | null = { value: 1 };
  const read = async () => {
    reads += 1;
    return stored;
  };
  return {
    clock,
    cache,
    read,
    store: (row: Row | null) => {
      stored = row;
    },
    reads: () => reads,
    value: async () => (await cache.get('key', read))?.value,
  };
}

test('a document is read once in 2 seconds', async () => {
  const { value, store, clock, reads } = openCache();
  expect([await value(), await value()]).toEqual([1, 1]);
  store({ value: 2 });
  clock.now = CACHE_MS - 1;
  expect(await value()).toBe(1);
  expect(reads()).toBe(1);
  clock.now = CACHE_MS;
  expect(await value()).toBe(2);
});

test('the age of a document counts from the beginning of the read', async () => {
  const { cache, clock, value, store } = openCache();
  await cache.get('key', async () => {
    clock.now = CACHE_MS - 1;
    return { value: 1 };
  });
  store({ value: 2 });
  expect(await value()).toBe(1);
  clock.now = CACHE_MS;
  expect(await value()).toBe(2);
});

test('a refresh reads, and later callers get its result', async () => {
  const { cache, read, value, store, reads } = openCache();
  await value();
  store({ value: 2 });
  expect(await cache.refresh('key', read)).toEqual({ value: 2 });
  expect(await value()).toBe(2);
  expect(reads()).toBe(2);
});

test('an absence is never cached, and removes a cached document', async () => {
  const { cache, read, value, store } = openCache();
  await value();
  store(null);
  await cache.refresh('key', read);
  expect(await value()).toBeUndefined();
  store({ value: 3 });
  expect(await value()).toBe(3);
});

test('nothing is cached with the age 0', async () => {
  const { value, reads } = openCache(0);
  expect([await value(), await value()]).toEqual([1, 1]);
  expect(reads()).toBe(2);
});

describe('a cached read', () => {
  function reading(maxAgeMs: number) {
    const clock = { now: 0 };
    let reads = 0;
    const read = jest.fn(async () => {
      reads += 1;
      return reads;
    });
    return { clock, read, get: createCachedRead(maxAgeMs, read, () => clock.now) };
  }

  test('serves all callers at once, and those of the next 2 seconds', async () => {
    const { clock, read, get } = reading(CACHE_MS);
    expect(await Promise.all([get(), get(), get()])).toEqual([1, 1, 1]);
    clock.now = CACHE_MS - 1;
    expect(await get()).toBe(1);
    clock.now = CACHE_MS;
    expect(await Promise.all([get(), get()])).toEqual([2, 2]);
    expect(read).toHaveBeenCalledTimes(2);
  });

  test('that fails is repeated by the next caller', async () => {
    const { read, get } = reading(CACHE_MS);
    read.mockRejectedValueOnce(new Error('away'));
    const both = await Promise.allSettled([get(), get()]);
    expect(both.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    expect(await get()).toBe(1);
    expect(read).toHaveBeenCalledTimes(2);
  });

  test('of age 0 is repeated for each caller', async () => {
    const { get } = reading(0);
    expect([await get(), await get()]).toEqual([1, 2]);
  });
});

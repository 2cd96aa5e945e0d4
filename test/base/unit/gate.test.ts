import { createGate, createNamedGates } from '../../../src/base/gate';

/** Work that ends when it is told to. */
function held() {
  let end = () => {};
  const ended = new Promise<void>((resolve) => {
    end = resolve;
  });
  return { ended, end };
}

const settled = () => new Promise((resolve) => setImmediate(resolve));

test('so many are let through as are allowed, the others in their order, also after one that fails', async () => {
  const gate = createGate(2);
  const works = ['a', 'b', 'c', 'd'].map((name) => ({ name, ...held() }));
  const begun: string[] = [];
  const running = works.map(({ name, ended }) =>
    gate(async () => {
      begun.push(name);
      await ended;
      if (name === 'b') throw new Error('b failed');
      return name;
    }).catch((error: unknown) => String(error)),
  );
  await settled();
  expect(begun).toEqual(['a', 'b']);
  works[1]?.end();
  await settled();
  expect(begun).toEqual(['a', 'b', 'c']);
  for (const { end } of works) end();
  expect(await Promise.all(running)).toEqual(['a', 'Error: b failed', 'c', 'd']);
  expect(await gate(async () => 'free')).toBe('free');
});

test('each name has its own places, and so many may wait for them', async () => {
  const gates = createNamedGates({ atOnce: 1, waitingMax: 1 });
  const { ended, end } = held();
  const begun: string[] = [];
  const run = (name: string, call: string, failing = false) =>
    gates
      .run(name, async () => {
        begun.push(call);
        await ended;
        if (failing) throw new Error('failed');
      })
      .catch(() => {});
  const running = [run('a', 'a1', true), run('a', 'a2')];
  expect([gates.isFull('a'), gates.isFull('b')]).toEqual([true, false]);
  running.push(run('b', 'b1'));
  expect(gates.isFull('b')).toBe(false);
  await settled();
  expect(begun).toEqual(['a1', 'b1']);
  end();
  await Promise.all(running);
  expect(begun).toEqual(['a1', 'b1', 'a2']);
  expect([gates.isFull('a'), gates.isFull('b')]).toEqual([false, false]);
});

test('after a call for which others wait, its place rests for a multiple of its time', async () => {
  jest.useFakeTimers();
  try {
    const gate = createGate(1, 2);
    const begun: number[] = [];
    const call = () =>
      gate(async () => {
        begun.push(Date.now());
        await new Promise((resolve) => setTimeout(resolve, 100));
      });
    const start = Date.now();
    const running = [call(), call()];
    await jest.advanceTimersByTimeAsync(299);
    expect(begun).toEqual([start]);
    await jest.advanceTimersByTimeAsync(201);
    await Promise.all(running);
    expect(begun).toEqual([start, start + 300]);
    void call();
    await jest.advanceTimersByTimeAsync(0);
    // Nobody waited for the last one.
    expect(begun).toHaveLength(3);
  } finally {
    jest.useRealTimers();
  }
});

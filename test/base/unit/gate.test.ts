import { createGate, createNamedGates } from '../../../src/base/gate';
import { gate as holdBack } from '../../support/gate';

const settled = () => new Promise((resolve) => setImmediate(resolve));

test('a gate lets as many calls through as it may, and the others in order, also after one that fails', async () => {
  const gate = createGate(2);
  const works = ['a', 'b', 'c', 'd'].map((name) => ({ name, ...holdBack() }));
  const begun: string[] = [];
  const running = works.map(({ name, opened }) =>
    gate(async () => {
      begun.push(name);
      await opened;
      if (name === 'b') throw new Error('b failed');
      return name;
    }).catch((error: unknown) => String(error)),
  );
  await settled();
  expect(begun).toEqual(['a', 'b']);
  works[1]?.release();
  await settled();
  expect(begun).toEqual(['a', 'b', 'c']);
  for (const { release } of works) release();
  expect(await Promise.all(running)).toEqual(['a', 'Error: b failed', 'c', 'd']);
  expect(await gate(async () => 'free')).toBe('free');
});

test('each name of gates has its own places, and its own limit of waiting calls', async () => {
  const gates = createNamedGates({ atOnce: 1, waitingMax: 1 });
  const { opened, release } = holdBack();
  const begun: string[] = [];
  const run = (name: string, call: string, failing = false) =>
    gates
      .run(name, async () => {
        begun.push(call);
        await opened;
        if (failing) throw new Error('failed');
      })
      .catch(() => {});
  const running = [run('a', 'a1', true), run('a', 'a2')];
  expect([gates.isFull('a'), gates.isFull('b')]).toEqual([true, false]);
  running.push(run('b', 'b1'));
  expect(gates.isFull('b')).toBe(false);
  await settled();
  expect(begun).toEqual(['a1', 'b1']);
  release();
  await Promise.all(running);
  expect(begun).toEqual(['a1', 'b1', 'a2']);
  expect([gates.isFull('a'), gates.isFull('b')]).toEqual([false, false]);
});

test('the place of a call for which others wait rests for a multiple of its time', async () => {
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
    // No call waited for the last one.
    expect(begun).toHaveLength(3);
  } finally {
    jest.useRealTimers();
  }
});

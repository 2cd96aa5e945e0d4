import { AGE_MS_MAX, createMemory } from '../../../src/store/memory';
import { gate } from '../../support/gate';

interface Row {
  _id: string;
  value: number;
}

function setting() {
  const at = { now: 0, isCurrent: true };
  const memory = createMemory<Row>({ now: () => at.now, isCurrent: () => at.isCurrent });
  let reads = 0;
  let stored: Row | null = { _id: 'a', value: 1 };
  const read = async () => {
    reads += 1;
    return stored;
  };
  return {
    at,
    memory,
    store: (row: Row | null) => {
      stored = row;
    },
    reads: () => reads,
    value: async () => (await memory.get('key', read))?.value,
  };
}

describe('memory of settings', () => {
  it('reads once', async () => {
    const { value, reads } = setting();
    expect([await value(), await value(), await value()]).toEqual([1, 1, 1]);
    expect(reads()).toBe(1);
  });

  it('reads again what has changed, and only that', async () => {
    const { value, reads, store, memory } = setting();
    await value();
    memory.forget('b');
    await value();
    expect(reads()).toBe(1);
    store({ _id: 'a', value: 2 });
    memory.forget('a');
    expect(await value()).toBe(2);
  });

  it('never remembers that something is not there', async () => {
    const { value, store, reads } = setting();
    store(null);
    expect([await value(), await value()]).toEqual([undefined, undefined]);
    expect(reads()).toBe(2);
  });

  it('does not keep what was read while it changed', async () => {
    const { memory, value, store } = setting();
    const answer = gate();
    const reading = memory.get('key', async () => {
      await answer.opened;
      return { _id: 'a', value: 1 };
    });
    store({ _id: 'a', value: 2 });
    memory.forget('a');
    answer.release();
    expect((await reading)?.value).toBe(1);
    expect(await value()).toBe(2);
  });

  it('believes nothing while changes may be missed', async () => {
    const { value, at, store } = setting();
    await value();
    store({ _id: 'a', value: 2 });
    at.isCurrent = false;
    expect(await value()).toBe(2);
    store({ _id: 'a', value: 3 });
    at.isCurrent = true;
    expect(await value()).toBe(3);
  });

  it('reads again in any case after a while', async () => {
    const { value, at, store } = setting();
    await value();
    store({ _id: 'a', value: 2 });
    at.now = AGE_MS_MAX - 1;
    expect(await value()).toBe(1);
    at.now = AGE_MS_MAX;
    expect(await value()).toBe(2);
  });
});

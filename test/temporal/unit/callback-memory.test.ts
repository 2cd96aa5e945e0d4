import { createCallbackMemory } from '../../../src/callbacks/memory';

type Rows = readonly { _id: string; signalled_at: string | null }[];

/** Opens a memory that writes to `writes`, unless the database is away. */
function openMemory() {
  const writes: Rows[] = [];
  const database = { isAway: false };
  const markAllSignalled = jest.fn(async (rows: Rows) => {
    if (database.isAway) throw new Error('The database is away.');
    writes.push(rows);
    return Object();
  });
  const memory = createCallbackMemory({ markAllSignalled }, { warn: () => {} });
  return { memory, writes, database };
}

beforeEach(() => jest.useFakeTimers());
afterEach(() => jest.useRealTimers());

test('one write records many signalled callbacks', async () => {
  const { memory, writes } = openMemory();
  for (const id of ['a', 'b', 'c']) memory.recordSignal({ _id: id }, `at ${id}`);
  expect([memory.wasSignalled({ _id: 'a' }), writes]).toEqual([true, []]);
  await jest.advanceTimersByTimeAsync(250);
  expect(writes).toEqual([['a', 'b', 'c'].map((_id) => ({ _id, signalled_at: `at ${_id}` }))]);
  expect(memory.wasSignalled({ _id: 'a' })).toBe(false);
});

test('a record is written again until the database accepts it, and is known until then', async () => {
  const { memory, writes, database } = openMemory();
  database.isAway = true;
  memory.recordSignal({ _id: 'a' }, 'at a');
  await jest.advanceTimersByTimeAsync(1_000);
  expect([memory.wasSignalled({ _id: 'a' }), writes]).toEqual([true, []]);
  database.isAway = false;
  await jest.advanceTimersByTimeAsync(250);
  expect(writes).toEqual([[{ _id: 'a', signalled_at: 'at a' }]]);
});

test('closing writes the last records, and a repeat with another signature is one of its own', async () => {
  const { memory, writes } = openMemory();
  memory.recordSignal({ _id: 'a' }, 'at a');
  expect(memory.wasSignalled({ _id: 'a', signature: 'f0' })).toBe(false);
  memory.recordSignal({ _id: 'a', signature: 'f0' }, 'later');
  await memory.close();
  const signed = { _id: 'a', signature: 'f0', signalled_at: 'later' };
  expect(writes).toEqual([[{ _id: 'a', signalled_at: 'at a' }, signed]]);
});

test('a resource belongs to its connector only, by kind and id', () => {
  const { memory } = openMemory();
  expect(memory.belongsTo('payment', 'x', 'bank')).toBe(false);
  memory.rememberConnector('payment', 'x', 'bank');
  expect(memory.belongsTo('payment', 'x', 'bank')).toBe(true);
  expect(memory.belongsTo('payment', 'x', 'another')).toBe(false);
  expect(memory.belongsTo('refund', 'x', 'bank')).toBe(false);
});

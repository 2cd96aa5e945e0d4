import { createGroups } from '../../../src/ledger/groups';
import { createTurns } from '../../../src/ledger/turns';
import { Contention } from '../../../src/mongo';

const BOOK = 'acct_1:sandbox:EUR';
const LATER = 9_000_000;
const PATIENCE_MS = 1_500;

afterEach(() => jest.useRealTimers());

/** Lets every promise that is due go on. */
const settled = () => new Promise((resolve) => setImmediate(resolve));

/** Groups whose work goes on until it is told to end. */
function opened({ refuses = false } = {}) {
  const turns = createTurns({ perBook: 30, inAll: 30, patienceMs: PATIENCE_MS }, () => 1_000_000);
  const done: string[][] = [];
  const ends: ((error?: Error) => void)[] = [];
  const end = async (error?: Error) => {
    ends.shift()?.(error);
    await settled();
  };
  const wait = () =>
    new Promise<void>((resolve, reject) => {
      ends.push((error) => (error === undefined ? resolve() : reject(error)));
    });
  const inGroup = createGroups<string, string>(
    {
      together: async (items) => {
        done.push([...items]);
        await wait();
        return refuses ? undefined : items.map((item) => `${item} with others`);
      },
      alone: async (item) => {
        done.push([item]);
        await wait();
        return `${item} alone`;
      },
    },
    turns,
  );
  const ask = (item: string, by = LATER, book = BOOK) => inGroup({ book, by }, item);
  /** Asks for several while the first is at work. */
  const askBehind = async (first: string, ...others: [item: string, by?: number][]) => {
    const all = [ask(first)];
    await settled();
    all.push(...others.map(([item, by]) => ask(item, by)));
    await settled();
    return all;
  };
  return { ask, askBehind, done, end };
}

test('those that wait are done together, the earliest first, and each has its answer', async () => {
  const { ask, askBehind, done, end } = opened();
  const elsewhere = ask('elsewhere', 1, 'another');
  const all = await askBehind('first', ['late', 5], ['early', 3]);
  expect(done).toEqual([['elsewhere'], ['first']]);
  await end();
  expect(await elsewhere).toBe('elsewhere alone');
  await end();
  expect(done[2]).toEqual(['early', 'late']);
  await end();
  const answers = ['first alone', 'late with others', 'early with others'];
  expect(await Promise.all(all)).toEqual(answers);
  expect(done).toHaveLength(3);
});

test('ten at most are done together, and the others after them', async () => {
  const { askBehind, done, end } = opened();
  const others = Array.from({ length: 12 }, (_, n): [string] => [`${n}`]);
  const all = await askBehind('first', ...others);
  await end();
  await end();
  await end();
  expect(done.map(({ length }) => length)).toEqual([1, 10, 2]);
  expect(new Set(await Promise.all(all)).size).toBe(13);
});

test('what can not be done together is done alone, one after the other, in one turn', async () => {
  const { askBehind, done, end } = opened({ refuses: true });
  const all = await askBehind('first', ['a'], ['b']);
  await end();
  await end();
  expect(done).toEqual([['first'], ['a', 'b'], ['a']]);
  const fault = all[1]?.catch((error: Error) => error.message);
  await end(new Error('a failed'));
  expect(done).toEqual([['first'], ['a', 'b'], ['a'], ['b']]);
  await end();
  expect(await fault).toBe('a failed');
  expect(await all[2]).toBe('b alone');
});

test('a fault of all is told to each, and the next turn goes on', async () => {
  const { ask, askBehind, end } = opened();
  const all = await askBehind('first', ['a'], ['b']);
  const faults = all.map((one) => one.catch((error: Error) => error.message));
  await end();
  await end(new Error('the database is away'));
  expect(await Promise.all(faults.slice(1))).toEqual(Array(2).fill('the database is away'));
  const next = ask('next');
  await settled();
  await end();
  expect(await next).toBe('next alone');
});

test('one that is sent away is done by nobody, unless somebody does it already', async () => {
  jest.useFakeTimers({ doNotFake: ['setImmediate'] });
  const { askBehind, done, end } = opened();
  const [first, sentAway] = await askBehind('first', ['away']);
  const away = sentAway?.catch((error: unknown) => error);
  jest.advanceTimersByTime(PATIENCE_MS);
  expect(await away).toBeInstanceOf(Contention);
  await end();
  expect(await first).toBe('first alone');
  const all = await askBehind('leader', ['a'], ['b']);
  await end();
  // The turn that does both lasts longer than the other one may wait for its own.
  jest.advanceTimersByTime(PATIENCE_MS);
  await settled();
  await end();
  expect(await Promise.all(all)).toEqual(['leader alone', 'a with others', 'b with others']);
  expect(done).toEqual([['first'], ['leader'], ['a', 'b']]);
});

import { Contention } from '../../../src/base/mongo';
import { createLocks } from '../../../src/ledger/locks';

const BOUNDS = { perBook: 2, inAll: 3, patienceMs: 60_000 };
const BOOK = 'acct_1:sandbox:EUR';

/** Turns whose work goes on until it is told to end. */
function opened(bounds: Partial<typeof BOUNDS> = {}) {
  let now = 1_000_000;
  const turns = createLocks({ ...BOUNDS, ...bounds }, () => now);
  const begun: string[] = [];
  const ends = new Map<string, (error?: Error) => void>();
  const ask = (name: string, by: number, book = BOOK) => {
    const work = () =>
      new Promise<string>((resolve, reject) => {
        begun.push(name);
        ends.set(name, (error) => (error === undefined ? resolve(name) : reject(error)));
      });
    return turns({ book, by }, work);
  };
  const end = async (name: string, error?: Error) => {
    ends.get(name)?.(error);
    await settled();
  };
  const pass = (ms: number) => {
    now += ms;
  };
  return { ask, begun, end, pass };
}

/** Lets every promise that is due go on. */
const settled = () => new Promise((resolve) => setImmediate(resolve));

const fault = (work: Promise<unknown>) =>
  work.then(
    () => undefined,
    (error: unknown) => error,
  );

/** Time after which someone who found no turn is told to come again. */
async function retryOf(work: Promise<unknown>): Promise<number> {
  const error = await fault(work);
  return error instanceof Contention ? error.retryMs : Number.NaN;
}

test('work on one book goes one after the other, the earliest due first', async () => {
  const { ask, begun, end } = opened();
  const all = [ask('first', 9), ask('late', 5), ask('early', 3)];
  await settled();
  expect(begun).toEqual(['first']);
  await end('first');
  expect(begun).toEqual(['first', 'early']);
  await end('early');
  await end('late');
  expect(await Promise.all(all)).toEqual(['first', 'late', 'early']);
});

test('the next begins when the one before has failed', async () => {
  const { ask, begun, end } = opened();
  const failing = fault(ask('failing', 1));
  const next = ask('next', 2);
  await settled();
  await end('failing', new Error('no money'));
  expect(await failing).toMatchObject({ message: 'no money' });
  expect(begun).toEqual(['failing', 'next']);
  await end('next');
  await next;
});

test('each book goes on by itself', async () => {
  const { ask, begun } = opened();
  void ask('euros', 1);
  void ask('dollars', 1, 'acct_1:sandbox:USD');
  await settled();
  expect(begun).toEqual(['euros', 'dollars']);
});

test('who finds the line full is sent away; whoever is due earlier takes the last place', async () => {
  const { ask, begun, end } = opened();
  const running = ask('running', 1);
  const second = ask('second', 3);
  const last = fault(ask('last', 5));
  expect(await fault(ask('too late', 6))).toBeInstanceOf(Contention);
  const older = ask('older', 2);
  expect(await last).toBeInstanceOf(Contention);
  for (const name of ['running', 'older', 'second']) await end(name);
  expect(begun).toEqual(['running', 'older', 'second']);
  expect(await Promise.all([running, older, second])).toEqual(['running', 'older', 'second']);
});

test('those who are sent away come again a turn after one another, ten seconds later at most', async () => {
  const { ask, end, pass } = opened({ perBook: 0 });
  const first = ask('first', 1);
  await settled();
  pass(400);
  await end('first');
  await first;
  void ask('running', 1);
  const one = await retryOf(ask('a', 2));
  const other = await retryOf(ask('b', 2));
  expect(one).toBeGreaterThan(1_000);
  expect(other - one).toBe(one - 1_000);
  for (let n = 0; n < 200; n += 1) expect(await retryOf(ask('c', 2))).toBeLessThanOrEqual(10_000);
  pass(20_000);
  expect(await retryOf(ask('d', 2))).toBe(one);
});

test('all books together hold a few slots, however many are busy', async () => {
  const { ask, end } = opened();
  const books = ['a', 'b', 'c', 'd'];
  for (const book of books) void ask(`${book} runs`, 1, book);
  const waiting = books.map((book) => fault(ask(`${book} waits`, 2, book)));
  expect(await waiting[3]).toBeInstanceOf(Contention);
  for (const book of books) await end(`${book} runs`);
  for (const book of books) await end(`${book} waits`);
  expect(await Promise.all(waiting.slice(0, 3))).toEqual([undefined, undefined, undefined]);
});

test('a wait ends in time, and its work never begins', async () => {
  const { ask, begun, end } = opened({ patienceMs: 5 });
  const running = ask('running', 1);
  expect(await fault(ask('patient', 2))).toBeInstanceOf(Contention);
  await end('running');
  await running;
  expect(begun).toEqual(['running']);
});

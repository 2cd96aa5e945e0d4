import { Contention } from '../../../src/base/mongo';
import { createLocks } from '../../../src/ledger/locks';

const BOUNDS = { perBook: 2, inAll: 3, patienceMs: 60_000 };

/** Lets every promise that is due go on. */
const flush = () => new Promise((resolve) => setImmediate(resolve));

const catchError = (work: Promise<unknown>) =>
  work.then(
    () => undefined,
    (error: unknown) => error,
  );

function openLocks(bounds: Partial<typeof BOUNDS> = {}) {
  let now = 1_000_000;
  const lock = createLocks({ ...BOUNDS, ...bounds }, () => now);
  const begun: string[] = [];
  const ends = new Map<string, (error?: Error) => void>();
  const request = (name: string, by: number, book = 'acct_1:sandbox:EUR') => {
    const work = () =>
      new Promise<string>((resolve, reject) => {
        begun.push(name);
        ends.set(name, (error) => (error === undefined ? resolve(name) : reject(error)));
      });
    return lock({ book, by }, work);
  };
  const settle = async (name: string, error?: Error) => {
    ends.get(name)?.(error);
    await flush();
  };
  const end = async (...names: string[]) => {
    for (const name of names) await settle(name);
  };
  /** Time in ms after which a refused request is to be repeated. */
  const readRetry = async (name: string, by: number) => {
    const error = await catchError(request(name, by));
    return error instanceof Contention ? error.retryMs : Number.NaN;
  };
  const pass = (ms: number) => {
    now += ms;
  };
  return { request, begun, end, settle, readRetry, pass };
}

test('work on one book runs one after the other, the earliest due first', async () => {
  const { request, begun, end } = openLocks();
  const all = [request('first', 9), request('late', 5), request('early', 3)];
  await flush();
  expect(begun).toEqual(['first']);
  await end('first');
  expect(begun).toEqual(['first', 'early']);
  await end('early', 'late');
  expect(await Promise.all(all)).toEqual(['first', 'late', 'early']);
});

test('the next work begins after the one before has failed', async () => {
  const { request, begun, end, settle } = openLocks();
  const failing = catchError(request('failing', 1));
  const next = request('next', 2);
  await flush();
  await settle('failing', new Error('no money'));
  expect(await failing).toMatchObject({ message: 'no money' });
  expect(begun).toEqual(['failing', 'next']);
  await end('next');
  await next;
});

test('work on different books runs at the same time', async () => {
  const { request, begun } = openLocks();
  void request('euros', 1);
  void request('dollars', 1, 'acct_1:sandbox:USD');
  await flush();
  expect(begun).toEqual(['euros', 'dollars']);
});

test('a full queue refuses a request, and its latest one if the new request is due earlier', async () => {
  const { request, begun, end } = openLocks();
  const running = request('running', 1);
  const second = request('second', 3);
  const last = catchError(request('last', 5));
  expect(await catchError(request('too late', 6))).toBeInstanceOf(Contention);
  const older = request('older', 2);
  expect(await last).toBeInstanceOf(Contention);
  await end('running', 'older', 'second');
  expect(begun).toEqual(['running', 'older', 'second']);
  expect(await Promise.all([running, older, second])).toEqual(['running', 'older', 'second']);
});

test('refused requests are spread by the time that work takes, over ten seconds at most', async () => {
  const { request, end, readRetry, pass } = openLocks({ perBook: 0 });
  const first = request('first', 1);
  await flush();
  pass(400);
  await end('first');
  await first;
  void request('running', 1);
  const one = await readRetry('a', 2);
  const other = await readRetry('b', 2);
  expect(one).toBeGreaterThan(1_000);
  expect(other - one).toBe(one - 1_000);
  for (let n = 0; n < 200; n += 1) expect(await readRetry('c', 2)).toBeLessThanOrEqual(10_000);
  pass(20_000);
  expect(await readRetry('d', 2)).toBe(one);
});

test('all books together have a few places to wait, however many are busy', async () => {
  const { request, end } = openLocks();
  const books = ['a', 'b', 'c', 'd'];
  for (const book of books) void request(`${book} runs`, 1, book);
  const waiting = books.map((book) => catchError(request(`${book} waits`, 2, book)));
  expect(await waiting[3]).toBeInstanceOf(Contention);
  await end(...books.map((book) => `${book} runs`), ...books.map((book) => `${book} waits`));
  expect(await Promise.all(waiting.slice(0, 3))).toEqual([undefined, undefined, undefined]);
});

test('a request whose patience ends is refused, and its work never begins', async () => {
  const { request, begun, end } = openLocks({ patienceMs: 5 });
  const running = request('running', 1);
  expect(await catchError(request('patient', 2))).toBeInstanceOf(Contention);
  await end('running');
  await running;
  expect(begun).toEqual(['running']);
});

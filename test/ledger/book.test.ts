import { randomUUID } from 'node:crypto';
import { type ClientSession, Long } from 'mongodb';
import { abandon, inTransaction } from '../../src/base/mongo';
import { createLedgerStore, type LedgerStore } from '../../src/ledger/book';
import { bookId, type EntryKind, type NewEntry, operationId } from '../../src/ledger/entries';
import { ENTRY_LINES } from '../../src/ledger/entry-lines';
import { LEDGER_ACCOUNTS } from '../../src/ledger/ledger-accounts';
import { InsufficientBalance } from '../../src/ledger/locks';
import { EntriesCleared } from '../../src/ledger/uncleared';
import { verifyLedger } from '../../src/ledger-check/verify';
import { breakBook } from '../support/book';
import { eventually, retryUntilDone } from '../support/eventually';
import { useProcesses, type WorkerProcess } from '../support/processes';
import {
  authorizedPayment,
  fund,
  openPayout,
  payoutFacts,
  recordPayoutKey,
  settle,
  useRecords,
} from '../support/records';
import { expectWholeBook } from './whole-books';

const records = useRecords();

const AMOUNT_MAX = 99_999_999_999;
const WRITTEN_AT = new Date('2026-03-04T05:06:07.089Z');
let ledger: LedgerStore;

beforeAll(async () => {
  ledger = createLedgerStore(records.db, () => WRITTEN_AT);
});

function openBook(currency = 'EUR') {
  const account_id = `acct_${randomUUID()}`;
  const book = `${account_id}:sandbox:${currency}`;
  const build = (
    kind: EntryKind,
    lines: NewEntry['lines'],
    resource_id: string = randomUUID(),
  ) => ({
    ...{ kind, lines, resource_id, account_id, livemode: false, currency },
    at: '2026-03-01T12:00:00.000Z',
  });
  const post = (...entries: NewEntry[]) =>
    inTransaction(records.mongo, async (session) => {
      for (const entry of entries) await ledger.post(entry, session);
    });
  const refund = (amount: number) =>
    post(build('refund_accepted', ENTRY_LINES.refund_accepted(amount)));
  const buildFunding = (amount: number, balance = 'main') =>
    build('funded', ENTRY_LINES.funded(balance, amount));
  /** Expects a debit that does not fit to be refused. */
  const refuses = (amount: number) => expect(refund(amount)).rejects.toThrow(InsufficientBalance);
  return {
    ...{ account_id, book, build, post, refund, buildFunding, refuses },
    applyPending: () =>
      inTransaction(records.mongo, (session) => ledger.applyPending(book, session)),
    readBook: () => ledger.book(book),
    readRows: () => ledger.balances(account_id, false),
    count: () => ledger.collections.entries.countDocuments({ book }),
    countPending: () => ledger.collections.states.countDocuments({ book, pending: true }),
    readDifferences: async () =>
      (await verifyLedger(records.mongo, records.db.databaseName, { book })).differences,
    /** Settles a payment. @param ending of its id: the activity applies pending entries after `00` */
    settlePayment: async (amount: number, ending = '11') => {
      const payment_id = `${randomUUID().slice(0, -2)}${ending}`;
      await settle(records, await authorizedPayment(records, { account_id, amount, payment_id }));
    },
  };
}

const mainRow = (available: number, currency = 'EUR') => ({
  ...{ balance_account: 'main', currency, available, reserved: 0 },
});

describe('what a bank makes available from a day on', () => {
  const settle = (amount: number, day: string) =>
    ENTRY_LINES.payment_settled('bank', amount, 0, 0, day);

  test('is pending until that day begins, and debits use it from then on', async () => {
    const { build, refund, refuses, post, readRows, readBook, readDifferences } = openBook();
    const days = { '2026-03-03': 500, '2026-03-04': 200, '2026-03-05': 900 };
    const settlements = Object.entries(days).map(([day, amount]) => settle(amount, day));
    await post(...settlements.map((lines) => build('payment_settled', lines)));
    expect(await readRows()).toEqual([{ ...mainRow(700), pending: 900 }]);
    await refuses(701);
    await refund(600);
    expect(await readRows()).toEqual([{ ...mainRow(100), pending: 900 }]);
    const due = { '2026-03-03': 0, '2026-03-04': 0, '2026-03-05': 900 };
    expect((await readBook())?.due).toEqual({ main: due });
    const differences = await readDifferences();
    // These payments are none.
    expect(differences.filter(({ check }) => check !== 'resource_missing')).toEqual([]);
  });

  test('is used once by debits at the same time', async () => {
    const { build, refund, post, readRows } = openBook();
    await post(build('payment_settled', settle(500, '2026-03-03')));
    const refunds = await Promise.allSettled(Array.from({ length: 8 }, () => refund(100)));
    const done = refunds.filter(({ status }) => status === 'fulfilled');
    expect(done.length).toBeLessThanOrEqual(5);
    expect(await readRows()).toEqual([mainRow(500 - 100 * done.length)]);
  });

  test('is collected from who owes once it is there', async () => {
    const { build, post, book, account_id, applyPending, readRows } = openBook();
    await post(build('payment_dispute_opened', ENTRY_LINES.payment_dispute_opened('bank', 0, 300)));
    const isCollectable = async (...[amount, day]: Parameters<typeof settle>) => {
      await post(build('payment_settled', settle(amount, day)));
      await applyPending();
      return (await ledger.listCollectable(false, '', 1_000)).books.includes(book);
    };
    expect(await isCollectable(500, '2026-03-05')).toBe(false);
    expect(await isCollectable(400, '2026-03-04')).toBe(true);
    const owner = { account_id, livemode: false, currency: 'EUR' };
    const collected = inTransaction(records.mongo, (session) =>
      ledger.collectDebt(owner, 'main', WRITTEN_AT.toISOString(), session),
    );
    expect(await collected).toBe(300);
    expect(await readRows()).toEqual([{ ...mainRow(100), pending: 500 }]);
  });
});

describe('an entry', () => {
  test('changes every balance that it names, and is stored as it was posted', async () => {
    const { build, buildFunding, refund, post, readBook, applyPending, book, account_id } =
      openBook();
    const funding = buildFunding(1_000);
    await post(funding, build('payment_settled', ENTRY_LINES.payment_settled('bank', 500)));
    await refund(300);
    await applyPending();
    expect(await readBook()).toEqual({
      ...{ _id: book, account_id, livemode: false, currency: 'EUR' },
      ...{ balances: { main: { available: 1_200 } }, external: { funding: -1_000 } },
      ...{ clearing: { bank: -500 }, transit: { refunds: 300 } },
    });
    expect(await ledger.findEntry(operationId(funding))).toEqual({
      ...{ ...funding, _id: operationId(funding), book, written_at: WRITTEN_AT.toISOString() },
      ...{ balance_account: 'main', type: 'funding' },
      position: expect.stringMatching(/^2026-03-04T05:06:07\.089\d{6}Z$/),
    });
    expect(await ledger.forResource(funding.resource_id)).toHaveLength(1);
  });

  test('belongs to one account and environment, whose balances are listed by name and currency', async () => {
    const { buildFunding, post, readRows, account_id } = openBook('USD');
    const euros = { ...buildFunding(3, 'alpha'), currency: 'EUR' };
    await post(buildFunding(1, 'zeta'), buildFunding(2, 'alpha'), euros);
    await post({ ...buildFunding(4), livemode: true });
    await openBook().post(openBook().buildFunding(5));
    const build = (balance_account: string, currency: string, available: number) => {
      return { ...mainRow(available, currency), balance_account };
    };
    const rows = [build('alpha', 'EUR', 3), build('alpha', 'USD', 2), build('zeta', 'USD', 1)];
    expect(await readRows()).toEqual(rows);
    expect(await ledger.balances(account_id, true)).toEqual([mainRow(4, 'USD')]);
  });

  test('is refused if it debits a missing book or balance, or does not sum to zero', async () => {
    const { post, build, buildFunding, refuses, readBook } = openBook();
    await refuses(1);
    const unbalanced = build('funded', [{ account: 'external.funding', amount: -1 }]);
    await expect(post(unbalanced)).rejects.toThrow(RangeError);
    expect(await readBook()).toBeNull();
    await post(buildFunding(100, 'marketing'));
    await refuses(1);
  });

  test('is exact and stored as 64-bit integers, the smallest amount and the largest', async () => {
    const { post, buildFunding, refund, readRows, readBook, book } = openBook('KWD');
    await post(...Array.from({ length: 30 }, () => buildFunding(AMOUNT_MAX)), buildFunding(1));
    await refund(AMOUNT_MAX);
    await refund(2);
    expect(await readRows()).toEqual([mainRow(29 * AMOUNT_MAX - 1, 'KWD')]);
    const external = { funding: -30 * AMOUNT_MAX - 1 };
    expect(await readBook()).toMatchObject({ external, transit: { refunds: AMOUNT_MAX + 2 } });
    const { entries, books } = ledger.collections;
    const long = { $type: 'long' };
    const lines = { $not: { $elemMatch: { amount: { $not: long } } } };
    expect(await entries.countDocuments({ book, lines })).toBe(33);
    expect(await books.countDocuments({ _id: book, 'balances.main.available': long })).toBe(1);
  });

  test('shows in a balance that is read later in the same transaction', async () => {
    const { post, buildFunding } = openBook();
    await post(buildFunding(10));
    const funding = buildFunding(5);
    await inTransaction(records.mongo, async (session) => {
      await ledger.post(funding, session);
      expect(await ledger.balance(funding, 'main', session)).toEqual(mainRow(15));
      expect(await ledger.balance(funding, 'none', session)).toBeNull();
    });
  });
});

describe('a pending entry', () => {
  async function openPendingBook(...amounts: number[]) {
    const opened = openBook();
    for (const amount of amounts) await opened.settlePayment(amount);
    return opened;
  }

  test('of a settlement changes no stored balance, counts at once, and is applied once', async () => {
    const opened = await openPendingBook(1, 20, 300, 4_000);
    const { readRows, readBook, applyPending, countPending, readDifferences, account_id } = opened;
    expect([await readBook(), await countPending()]).toEqual([null, 4]);
    expect(await readRows()).toEqual([mainRow(4_321)]);
    expect(await readDifferences()).toEqual([]);
    await expectWholeBook(records, account_id);
    const counts = await Promise.all([applyPending(), applyPending(), applyPending()]);
    expect(counts.sort()).toEqual([0, 0, 4]);
    expect(await countPending()).toBe(0);
    expect(await readRows()).toEqual([mainRow(4_321)]);
    await expectWholeBook(records, account_id);
  });

  test('is applied by a debit that needs it and fits, and by no other debit', async () => {
    const opened = await openPendingBook(300, 200);
    const { readRows, refund, refuses, settlePayment, countPending, account_id } = opened;
    await refuses(501);
    expect(await countPending()).toBe(2);
    await refund(450);
    expect(await readRows()).toEqual([mainRow(50)]);
    expect(await countPending()).toBe(0);
    await settlePayment(100);
    const before = await countPending();
    await refund(50);
    expect(await countPending()).toBe(before);
    await refund(100);
    expect(await readRows()).toEqual([mainRow(0)]);
    await expectWholeBook(records, account_id);
  });

  test('is applied after the transition of one resource in 256', async () => {
    const { countPending, settlePayment, readBook } = await openPendingBook(300, 200);
    await settlePayment(7, '00');
    expect(await countPending()).toBe(0);
    expect(await readBook()).toMatchObject({ balances: { main: { available: 507 } } });
  });

  test('that must not be pending, or was applied without its balance, is found by a verification', async () => {
    const { account_id, applyPending, settlePayment, readDifferences } = await openPendingBook(300);
    const { entries, states } = ledger.collections;
    const facts = payoutFacts({ account_id, amount: 100 });
    await applyPending();
    await openPayout(records, facts);
    const _id = `payout_reserved:${facts.payout_id}`;
    const { book = '', written_at = '', lines = [] } = (await entries.findOne({ _id })) ?? {};
    await states.insertOne({ _id, book, written_at, pending: true, lines });
    expect((await readDifferences()).map(({ check, part }) => [check, part])).toEqual([
      ['posting_wrongly_open', 'pending'],
      ['balance_differs', 'balances.main.available'],
      ['balance_differs', 'balances.main.reserved'],
    ]);
    await states.deleteOne({ _id });
    expect(await readDifferences()).toEqual([]);
    await settlePayment(7);
    await states.updateMany({ pending: true }, { $unset: { pending: '', lines: '' } });
    expect((await readDifferences()).map(({ check }) => check)).toContain('balance_differs');
  });
});

describe('MongoDB itself', () => {
  const VALIDATION_FAILED = { code: 121 };
  type Write = (session?: ClientSession) => Promise<unknown>;
  const line = (account: string, amount: unknown) => ({ account, amount });
  const insertEntry = (lines: unknown) => (session?: ClientSession) =>
    records.db.collection('journal_entries').insertOne({ lines }, { session });
  const changeBook = (account: string, amount: number) => (session?: ClientSession) => {
    const change = { $inc: { [account]: Long.fromNumber(amount) } };
    const options = { session, upsert: true };
    return ledger.collections.books.updateOne({ _id: account }, change, options);
  };
  const accounts = Object.entries(LEDGER_ACCOUNTS).map(
    ([account, bound]) => [account.replace('*', 'main'), bound] as const,
  );
  const beyondBounds = accounts.flatMap(([account, bound]): [string, Write][] => {
    const amount = bound === 'not_negative' ? -1 : 1;
    return bound === null ? [] : [[`${account} beyond 0`, changeBook(account, amount)]];
  });

  test.each<[string, Write]>([
    ['an entry without lines', insertEntry(undefined)],
    ['an entry of no lines', insertEntry([])],
    ['lines that do not sum to zero', insertEntry([line('a', 1), line('b', -2)])],
    ['amounts that are text', insertEntry([line('a', '1'), line('b', '-1')])],
    ...beyondBounds,
  ])('refuses %s of any writer, and in a transaction', async (_what, write) => {
    await expect(write()).rejects.toMatchObject(VALIDATION_FAILED);
    await expect(inTransaction(records.mongo, write)).rejects.toMatchObject(VALIDATION_FAILED);
  });

  test.each(accounts.filter(([, bound]) => bound === null))(
    'stores %s on both sides of 0',
    async (account) => {
      for (const amount of [-1, 2, -1]) await changeBook(account, amount)();
    },
  );

  test('refuses an entry that the code let through, by its kind, and nothing of it is stored', async () => {
    const { post, build, buildFunding, readBook, count, book } = openBook();
    await post(buildFunding(5));
    const correct = await breakBook({ ledger }, book);
    const before = await readBook();
    const failed = build('funded', ENTRY_LINES.funded('main', 1));
    await expect(post(failed)).rejects.toMatchObject({
      code: 'books_refused',
      message: expect.stringContaining('The books refuse funded: '),
    });
    expect([await readBook(), await count()]).toEqual([before, 1]);
    await correct();
    await post(failed);
  });
});

describe('an uncleared entry', () => {
  function openConnector(currency = 'EUR') {
    const scope = { connector: `bank_${randomUUID()}`, livemode: true, currency };
    return {
      scope,
      post: async (changes: Partial<NewEntry> = {}) => {
        const entry: NewEntry = {
          ...{ kind: 'payment_settled', resource_id: randomUUID(), account_id: 'acct_1' },
          ...{ livemode: true, currency, at: '2026-03-04T23:59:59.999Z' },
          lines: ENTRY_LINES.payment_settled(scope.connector, 1_000),
          ...changes,
        };
        await inTransaction(records.mongo, (session) => ledger.post(entry, session));
        return operationId(entry);
      },
      list: async () =>
        (await ledger.listUncleared({ ...scope, limit: 10 })).map((row) => row.entry_id),
      change: (act: 'clear' | 'unclear', ...ids: string[]) =>
        inTransaction(records.mongo, (session) => ledger[act](ids, session)),
    };
  }

  test('has the sign, the day and the reference that the statement will have', async () => {
    const { scope, post } = openConnector();
    const resource_id = randomUUID();
    const payout = await post({
      ...{ kind: 'payout_captured', value_date: '2026-03-06' },
      lines: ENTRY_LINES.payout_captured('main', scope.connector, 300, 50),
    });
    const payment = await post({ resource_id, bank_reference: 'bank-1' });
    // The bank sees no movement.
    await post({ kind: 'funded', lines: ENTRY_LINES.funded('main', 5) });
    const common = { ...scope, at: '2026-03-04T23:59:59.999Z' };
    expect(await ledger.listUncleared({ ...scope, limit: 10 })).toEqual([
      {
        ...{ ...common, entry_id: payment, kind: 'payment_settled', resource_id },
        ...{ amount: 1_000, day: '2026-03-04', bank_reference: 'bank-1' },
      },
      {
        ...{ ...common, entry_id: payout, kind: 'payout_captured', bank_reference: null },
        ...{ resource_id: expect.any(String), amount: -300, day: '2026-03-06' },
      },
    ]);
    expect(await ledger.listUncleared({ ...scope, livemode: false, limit: 10 })).toEqual([]);
    const list = (more: object) => ledger.listUncleared({ ...scope, limit: 10, ...more });
    const first = [expect.objectContaining({ entry_id: payment })];
    // The earliest first, within two days.
    expect(await list({ limit: 1 })).toEqual(first);
    expect(await list({ before: '2026-03-06' })).toEqual(first);
    expect(await list({ after: '2026-03-04' })).toMatchObject([{ entry_id: payout }]);
  });

  test('is found by resource, by bank reference, or by amount and day, at its bank alone', async () => {
    const { scope, post } = openConnector();
    const [resource_id, bank_reference] = [randomUUID(), randomUUID()];
    const id = await post({ resource_id, bank_reference });
    await openConnector().post({ bank_reference });
    const keys = [{ resource_id }, { bank_reference }, { amount: 1_000, day: '2026-03-04' }];
    for (const key of keys) {
      const rows = await ledger.findUncleared({ ...scope, ...key });
      expect(rows.map(({ entry_id }) => entry_id)).toEqual([id]);
      expect(await ledger.findUncleared({ ...scope, currency: 'USD', ...key })).toEqual([]);
    }
    const [day, other] = ['2026-03-04', '2026-03-05'];
    expect(await ledger.findUncleared({ ...scope, amount: -1_000, day })).toEqual([]);
    expect(await ledger.findUncleared({ ...scope, amount: 1_000, day: other })).toEqual([]);
  });

  test('is cleared by one match, which can be withdrawn', async () => {
    const { post, list, change } = openConnector();
    const [one, two] = [await post(), await post()];
    const findState = () => ledger.collections.states.findOne({ _id: one });
    const [entry, before] = [await ledger.findEntry(one), await findState()];
    await change('clear', one);
    expect(await list()).toEqual([two]);
    const { uncleared, ...rest } = { ...before };
    const match = { cleared: uncleared, cleared_at: WRITTEN_AT.toISOString() };
    expect(await findState()).toEqual({ ...rest, ...match });
    expect(await ledger.findEntry(one)).toEqual(entry);
    // The transaction of the second line aborts, and clears none of its entries.
    await expect(change('clear', two, one)).rejects.toBeInstanceOf(EntriesCleared);
    await expect(change('clear', 'unknown')).rejects.toBeInstanceOf(EntriesCleared);
    await expect(change('unclear', two)).rejects.toBeInstanceOf(EntriesCleared);
    expect(await list()).toEqual([two]);
    await change('unclear', one);
    expect(await findState()).toEqual(before);
    const outcomes = await Promise.allSettled([1, 2, 3, 4].map(() => change('clear', two)));
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    expect(await list()).toEqual([one]);
  });

  test('is never of an asset, which is on no statement', async () => {
    const { post, list, scope } = openConnector('ETH.ethereum');
    const lines = ENTRY_LINES.crypto_payment_credited(scope.connector, 5n);
    await post({ kind: 'crypto_payment_credited', lines });
    expect(await list()).toEqual([]);
  });
});

test('a payout is refused when it is late by the clock of the worker, and the refusal says so', async () => {
  const input = await recordPayoutKey(records, payoutFacts());
  const late = { ...input, accept_by_ms: Date.now() - 3_000 };
  const readAge = () => Math.ceil((Date.now() - late.accept_by_ms + 5_000) / 1_000);
  const least = readAge();
  const opened = await retryUntilDone(() => records.payouts.openPayout(late));
  expect(opened.outcome).toBe('refused');
  const message = opened.outcome === 'refused' ? opened.message : '';
  const clock = / By the clock of this worker it was (\d+) s old, and it has 5 s\.$/;
  const seconds = Number(clock.exec(message)?.[1]);
  expect(seconds).toBeGreaterThanOrEqual(least);
  expect(seconds).toBeLessThanOrEqual(readAge());
});

const processes = useProcesses();

afterEach(() => jest.restoreAllMocks());

test('settlements of one merchant have no write conflict, and every payout that fits meanwhile is paid', async () => {
  const [SETTLEMENTS, AMOUNT, PAYOUTS, DRAWN] = [50, 1_000, 20, 4_000];
  const { left, right } = processes;
  // Processes that shared modules would share locks, and never have a write conflict.
  expect(left.openRecords).not.toBe(right.openRecords);
  const workers = [left, right];
  const account_id = `acct_${randomUUID()}`;
  /** Authorizes payments with each worker. @returns a settlement of each payment */
  const authorize = async () => {
    const settlements = workers.map(async ({ authorizedPayment, settle, records }) => {
      const one = () => authorizedPayment(records, { account_id, amount: AMOUNT });
      const payments = await Promise.all(Array.from({ length: SETTLEMENTS }, one));
      return payments.map((facts) => () => retryUntilDone(() => settle(records, facts)));
    });
    return (await Promise.all(settlements)).flat();
  };
  const posts = workers.map(({ records }) => jest.spyOn(records.stores.ledger, 'post'));
  await Promise.all((await authorize()).map((settle) => settle()));
  const second = await authorize();
  const pay = async (worker: WorkerProcess) => {
    const facts = payoutFacts({ account_id, amount: DRAWN });
    const { opening } = await retryUntilDone(() => worker.openPayout(worker.records, facts));
    const created = { status: 'created', version: 1, transition: 1 } as const;
    await retryUntilDone(() =>
      worker.transitionPayout(worker.records, facts, created, ['submitted', 'sent']),
    );
    return opening.outcome;
  };
  const payouts = Array.from({ length: PAYOUTS / 2 }, () => workers.map(pay)).flat();

  let isOver = false;
  const working = Promise.all([Promise.all(payouts), ...second.map((settle) => settle())]);
  const over = working.finally(() => {
    isOver = true;
  });
  const { mongo, db, stores } = left.records;
  while (!isOver) expect((await verifyLedger(mongo, db.databaseName)).differences).toEqual([]);
  const [outcomes] = await over;
  expect(outcomes).toEqual(Array.from({ length: PAYOUTS }, () => 'accepted'));
  // A write conflict fails the post; a busy server may end a transaction for its age alone.
  const settled = posts.flatMap(({ mock }) =>
    mock.results.filter((_result, call) => mock.calls[call]?.[0].kind === 'payment_settled'),
  );
  expect(settled.length).toBeGreaterThanOrEqual(4 * SETTLEMENTS);
  const ends = await Promise.allSettled(settled.map(({ value }) => value));
  const faults = ends.flatMap((end) => (end.status === 'rejected' ? [end.reason.codeName] : []));
  expect(faults).not.toContain('WriteConflict');
  const available = 4 * SETTLEMENTS * AMOUNT - PAYOUTS * DRAWN;
  expect(await stores.ledger.balances(account_id, false)).toEqual([
    { balance_account: 'main', currency: 'EUR', available, reserved: 0 },
  ]);
  await expectWholeBook(left.records, account_id);
});

describe('write conflicts', () => {
  /** Less than the five seconds after which a payout gives up. */
  const TRIES_MS_MAX = 4_000;

  beforeAll(() => void jest.retryTimes(3, { logErrorsBeforeRetry: true }));
  afterAll(() => void jest.retryTimes(0));

  afterEach(() => jest.restoreAllMocks());

  test('a payout that has a write conflict on its book has done nothing else in vain', async () => {
    const facts = payoutFacts({ account_id: `acct_${randomUUID()}` });
    await fund(records, facts, 100_000);
    const input = await recordPayoutKey(records, facts);
    const cleared = jest.spyOn(records.stores.idempotency, 'clearRequest');
    const { ledger } = records.stores;
    const posts = jest.spyOn(ledger, 'post');
    let opening: ReturnType<typeof records.payouts.openPayout> | undefined;
    try {
      // Holds the book, as a process does that is slow to commit.
      await inTransaction(records.mongo, async (session) => {
        const held = { $inc: { held: 1 } };
        await ledger.collections.books.updateOne({ _id: bookId(facts) }, held, { session });
        opening = records.payouts.openPayout(input);
        await eventually('a second try', async () => posts.mock.calls.length > 1, TRIES_MS_MAX);
        await abandon(session);
      });
    } finally {
      await opening?.catch(() => undefined);
    }
    expect(await opening).toMatchObject({ outcome: 'accepted' });
    expect(cleared).toHaveBeenCalledTimes(1);
  });
});

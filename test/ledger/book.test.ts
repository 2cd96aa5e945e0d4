import { randomUUID } from 'node:crypto';
import { inTransaction, isDuplicateKey } from '../../src/base/mongo';
import { createLedgerStore, type LedgerStore } from '../../src/ledger/book';
import { type NewEntry, operationId } from '../../src/ledger/entries';
import { ENTRY_LINES } from '../../src/ledger/entry-lines';
import { InsufficientBalance } from '../../src/ledger/insufficient-balance';
import { useDatabase } from '../support/database';
import { retryTransient } from '../support/eventually';

const MOST = 99_999_999_999;
const WRITTEN_AT = new Date('2026-03-04T05:06:07.089Z');
const database = useDatabase();
let ledger: LedgerStore;

beforeAll(async () => {
  ledger = createLedgerStore(database.db, () => WRITTEN_AT);
  await database.db.createCollection('witnesses');
});

/** A merchant's book, and what can be done to it. */
function opened(currency = 'EUR') {
  const account_id = `acct_${randomUUID()}`;
  const of = { account_id, livemode: false, currency, at: '2026-03-01T12:00:00.000Z' };
  const post = (...postings: NewEntry[]) =>
    inTransaction(database.mongo, async (session) => {
      for (const posting of postings) await ledger.post(posting, session);
    });
  const funding = (amount: number, balance = 'main', resource_id = `fund_${randomUUID()}`) =>
    ({ ...of, kind: 'funded', resource_id, legs: ENTRY_LINES.funded(balance, amount) }) as const;
  const refund = (amount: number): NewEntry => ({
    ...of,
    kind: 'refund_accepted',
    resource_id: randomUUID(),
    legs: ENTRY_LINES.refund_accepted(amount),
  });
  const rows = () => ledger.balances(account_id, false);
  const available = async () => (await rows())[0]?.available;
  const posted = () => ledger.collections.postings.countDocuments({ book: bookName });
  const bookName = `${account_id}:sandbox:${currency}`;
  const kept = () => ledger.collections.books.findOne({ _id: bookName });
  const foldAll = () =>
    inTransaction(database.mongo, (session) => ledger.applyPending(bookName, session));
  return {
    of,
    post,
    funding,
    refund,
    rows,
    available,
    posted,
    kept,
    foldAll,
    account_id,
    bookName,
  };
}

test('a posting moves every balance that it names, and is kept as it was', async () => {
  const { of, post, funding, kept, foldAll, bookName, account_id } = opened();
  const posting = funding(1_000);
  const settled = { ...of, kind: 'payment_settled', resource_id: randomUUID() } as const;
  await post(posting, { ...settled, legs: ENTRY_LINES.payment_settled('bank', 500) });
  await post({
    ...of,
    kind: 'refund_accepted',
    resource_id: 'r',
    legs: ENTRY_LINES.refund_accepted(300),
  });
  await foldAll();
  expect(await kept()).toEqual({
    _id: bookName,
    account_id,
    livemode: false,
    currency: 'EUR',
    balances: { main: { available: 1_200 } },
    clearing: { bank: -500 },
    transit: { refunds: 300 },
    external: { funding: -1_000 },
  });
  const { kind, resource_id, at, legs } = posting;
  expect(await ledger.findEntry(operationId(posting))).toEqual({
    _id: operationId(posting),
    book: bookName,
    kind,
    resource_id,
    at,
    written_at: WRITTEN_AT.toISOString(),
    legs,
    ...{ account_id, livemode: false, currency: 'EUR', balance_account: 'main', type: 'funding' },
    position: expect.stringMatching(/^2026-03-04T05:06:07\.089\d{6}Z$/),
  });
  expect(await ledger.forResource(resource_id)).toHaveLength(1);
});

test('balances are those of one account and environment, by name and currency', async () => {
  const { of, post, funding, rows, account_id } = opened('USD');
  await post(funding(1, 'zeta'), funding(2, 'alpha'), { ...funding(3, 'alpha'), currency: 'EUR' });
  await post({ ...funding(4), ...of, livemode: true });
  await opened().post(opened().funding(5));
  expect(await rows()).toEqual([
    { balance_account: 'alpha', currency: 'EUR', available: 3, reserved: 0 },
    { balance_account: 'alpha', currency: 'USD', available: 2, reserved: 0 },
    { balance_account: 'zeta', currency: 'USD', available: 1, reserved: 0 },
  ]);
  expect(await ledger.balances(account_id, true)).toEqual([
    { balance_account: 'main', currency: 'USD', available: 4, reserved: 0 },
  ]);
});

test('too little money aborts the whole transaction and leaves nothing of it', async () => {
  const { post, funding, refund, kept, posted } = opened();
  await post(funding(100));
  const before = await kept();
  const _id = randomUUID();
  const witnesses = database.db.collection<{ _id: string }>('witnesses');
  const outcome = inTransaction(database.mongo, async (session) => {
    await witnesses.insertOne({ _id }, { session });
    await ledger.post(refund(60), session);
    await ledger.post(refund(41), session);
  });
  await expect(outcome).rejects.toThrow(InsufficientBalance);
  expect(await kept()).toEqual(before);
  expect(await posted()).toBe(1);
  expect(await witnesses.countDocuments({ _id })).toBe(0);
  await post(refund(100));
  expect(await kept()).toMatchObject({ balances: { main: { available: 0 } } });
});

test('nothing can be taken from a book, or a balance, that is not there', async () => {
  const { post, funding, refund, kept } = opened();
  await expect(post(refund(1))).rejects.toThrow(InsufficientBalance);
  expect(await kept()).toBeNull();
  await post(funding(100, 'marketing'));
  await expect(post(refund(1))).rejects.toThrow(InsufficientBalance);
});

test('the same step of the same resource is never posted twice', async () => {
  const { post, funding, available, posted } = opened();
  const posting = funding(100);
  await post(posting);
  const again = await post(posting).catch((error: unknown) => error);
  expect(isDuplicateKey(again, '_id_')).toBe(true);
  const all = Array.from({ length: 10 }, () => post(funding(1, 'main', posting.resource_id)));
  expect((await Promise.allSettled(all)).every(({ status }) => status === 'rejected')).toBe(true);
  expect([await available(), await posted()]).toEqual([100, 1]);
});

test('what is not balanced is never written', async () => {
  const { post, funding, kept } = opened();
  const legs = [{ account: 'external.funding', amount: -1 }];
  await expect(post({ ...funding(1), legs })).rejects.toThrow(RangeError);
  expect(await kept()).toBeNull();
});

test('50 debits at once take what is there and no more, and the balance is exact', async () => {
  const { post, funding, refund, kept, posted } = opened();
  await post(funding(1_000));
  const debits = Array.from({ length: 50 }, () => refund(30));
  const all = await Promise.allSettled(debits.map((debit) => retryTransient(() => post(debit))));
  const refused = all.filter(({ status }) => status === 'rejected');
  expect(all.length - refused.length).toBe(33);
  for (const each of refused)
    expect(each).toMatchObject({ reason: { name: 'InsufficientBalance' } });
  expect(await kept()).toMatchObject({
    balances: { main: { available: 10 } },
    transit: { refunds: 990 },
  });
  expect(await posted()).toBe(34);
});

test('50 credits at once to a book that is new all count', async () => {
  const { post, funding, available } = opened();
  const credits = Array.from({ length: 50 }, () => funding(7));
  await Promise.all(credits.map((credit) => retryTransient(() => post(credit))));
  expect(await available()).toBe(350);
});

test.each(['EUR', 'JPY', 'KWD'])(
  'the greatest amount is exact in %s, and so are sums far beyond 32 bits',
  async (currency) => {
    const { post, funding, refund, rows, posted, kept } = opened(currency);
    await post(...Array.from({ length: 30 }, () => funding(MOST)));
    await post(funding(1), refund(MOST), refund(2));
    expect(await rows()).toEqual([
      { balance_account: 'main', currency, available: 29 * MOST - 1, reserved: 0 },
    ]);
    expect(await kept()).toMatchObject({
      external: { funding: -30 * MOST - 1 },
      transit: { refunds: MOST + 2 },
    });
    expect(await posted()).toBe(33);
  },
);

test('amounts are stored as 64-bit integers, also small ones', async () => {
  const { post, funding, bookName } = opened();
  await post(funding(1));
  const { postings, books } = ledger.collections;
  const long = { $type: 'long' };
  expect(await postings.countDocuments({ book: bookName, 'legs.amount': long })).toBe(1);
  const query = { _id: bookName, 'balances.main.available': long, 'external.funding': long };
  expect(await books.countDocuments(query)).toBe(1);
});

test('a balance read in a transaction is as its postings left it', async () => {
  const { post, funding } = opened();
  await post(funding(10));
  const posting = funding(5);
  const seen = await inTransaction(database.mongo, async (session) => {
    await ledger.post(posting, session);
    return [
      await ledger.balance(posting, 'main', session),
      await ledger.balance(posting, 'none', session),
    ];
  });
  const row = { balance_account: 'main', currency: 'EUR', available: 15, reserved: 0 };
  expect(seen).toEqual([row, null]);
});

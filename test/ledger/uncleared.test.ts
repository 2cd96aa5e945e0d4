import { randomUUID } from 'node:crypto';
import { inTransaction } from '../../src/base/mongo';
import { createLedgerStore, type LedgerStore } from '../../src/ledger/book';
import { type NewEntry, operationId } from '../../src/ledger/entries';
import { ENTRY_LINES } from '../../src/ledger/entry-lines';
import { EntriesCleared } from '../../src/ledger/uncleared';
import { useDatabase } from '../support/database';

const MATCHED_AT = new Date('2026-03-09T08:00:00.000Z');
const database = useDatabase();
let ledger: LedgerStore;

beforeAll(() => {
  ledger = createLedgerStore(database.db, () => MATCHED_AT);
});

/** A bank of its own, whose clearing entries are posted. */
function opened(currency = 'EUR') {
  const scope = { connector: `bank_${randomUUID()}`, livemode: true, currency };
  const post = async (change: Partial<NewEntry> = {}) => {
    const entry: NewEntry = {
      ...{ kind: 'payment_settled', resource_id: randomUUID(), account_id: 'acct_1' },
      ...{ livemode: true, currency, at: '2026-03-04T23:59:59.999Z' },
      legs: ENTRY_LINES.payment_settled(scope.connector, 1_000),
      ...change,
    };
    await inTransaction(database.mongo, (session) => ledger.post(entry, session));
    return operationId(entry);
  };
  const list = async (days: { before?: string; after?: string } = {}) => {
    const rows = await ledger.listUncleared({ ...scope, ...days, limit: 10 });
    return rows.map(({ entry_id }) => entry_id);
  };
  const change = (act: 'clear' | 'unclear', ...ids: string[]) =>
    inTransaction(database.mongo, (session) => ledger[act](ids, session));
  return { scope, post, list, change };
}

test('an entry is uncleared as the statement will have it: its sign, its day, its reference', async () => {
  const { scope, post } = opened();
  const resource_id = randomUUID();
  const payment = await post({ resource_id, bank_reference: 'bank-1' });
  const payout = await post({
    ...{ kind: 'payout_captured', value_date: '2026-03-06' },
    legs: ENTRY_LINES.payout_captured('main', scope.connector, 300, 50),
  });
  // Moves nothing at the bank.
  await post({ kind: 'funded', legs: ENTRY_LINES.funded('main', 5) });
  const found = { ...scope, at: '2026-03-04T23:59:59.999Z' };
  expect(await ledger.listUncleared({ ...scope, limit: 10 })).toEqual([
    {
      ...{ ...found, entry_id: payment, kind: 'payment_settled', resource_id },
      ...{ amount: 1_000, day: '2026-03-04', bank_reference: 'bank-1' },
    },
    {
      ...{ ...found, entry_id: payout, kind: 'payout_captured' },
      ...{ resource_id: expect.any(String), amount: -300, day: '2026-03-06', bank_reference: null },
    },
  ]);
  expect(await ledger.listUncleared({ ...scope, livemode: false, limit: 10 })).toEqual([]);
  expect(await ledger.listUncleared({ ...scope, limit: 1 })).toHaveLength(1);
});

test('days bound the list, and the earliest comes first', async () => {
  const { post, list } = opened();
  const later = await post({ value_date: '2026-03-06' });
  const early = await post({ value_date: '2026-03-05' });
  expect(await list()).toEqual([early, later]);
  expect(await list({ before: '2026-03-06' })).toEqual([early]);
  expect(await list({ after: '2026-03-05' })).toEqual([later]);
});

test('resource, bank reference, or amount and day find an entry of the same bank', async () => {
  const { scope, post } = opened();
  const resource_id = randomUUID();
  const bank_reference = randomUUID();
  const id = await post({ resource_id, bank_reference });
  const other = opened();
  await other.post({ resource_id: randomUUID(), bank_reference });
  const keys = [{ resource_id }, { bank_reference }, { amount: 1_000, day: '2026-03-04' }];
  for (const key of keys) {
    const rows = await ledger.findUncleared({ ...scope, ...key });
    expect(rows.map(({ entry_id }) => entry_id)).toEqual([id]);
    expect(await ledger.findUncleared({ ...scope, currency: 'USD', ...key })).toEqual([]);
  }
  for (const key of [
    { amount: -1_000, day: '2026-03-04' },
    { amount: 1_000, day: '2026-03-05' },
  ]) {
    expect(await ledger.findUncleared({ ...scope, ...key })).toEqual([]);
  }
});

test('a match takes an entry once, and can be undone', async () => {
  const { post, list, change } = opened();
  const [one, two] = [await post(), await post()];
  const before = await ledger.findEntry(one);
  await change('clear', one);
  expect(await list()).toEqual([two]);
  const { uncleared, ...rest } = { ...before };
  const match = { cleared: uncleared, cleared_at: MATCHED_AT.toISOString() };
  expect(await ledger.findEntry(one)).toEqual({ ...rest, ...match });
  // All or none: the transaction of the second line aborts.
  await expect(change('clear', two, one)).rejects.toBeInstanceOf(EntriesCleared);
  await expect(change('clear', 'unknown')).rejects.toBeInstanceOf(EntriesCleared);
  await expect(change('unclear', two)).rejects.toBeInstanceOf(EntriesCleared);
  expect(await list()).toEqual([two]);
  await change('unclear', one);
  expect(await ledger.findEntry(one)).toEqual(before);
});

test('of two lines at once, one takes the entry', async () => {
  const { post, list, change } = opened();
  const id = await post();
  const outcomes = await Promise.allSettled(Array.from({ length: 4 }, () => change('clear', id)));
  expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
  expect(await list()).toEqual([]);
});

test('an asset is on no statement', async () => {
  const { post, list, scope } = opened('ETH.ethereum');
  const legs = ENTRY_LINES.crypto_payment_credited(scope.connector, 5n);
  await post({ kind: 'crypto_payment_credited', legs });
  expect(await list()).toEqual([]);
});

test('the book of a bank account has its own balances, which may be on either side of 0', async () => {
  const bank = { account_id: `ba_${randomUUID()}`, livemode: true, currency: 'EUR' };
  const { post } = opened();
  const line = (legs: NewEntry['legs']) => post({ ...bank, kind: 'bank_line', legs });
  await post({ ...bank, kind: 'bank_opening', legs: ENTRY_LINES.bank_opening(500) });
  await line(ENTRY_LINES.bank_line({ clearing: 1_000, bank_fees: -5 }));
  await line(ENTRY_LINES.bank_line({ unmatched: -7 }));
  const resource_id = 'stmt_1:3';
  const match = { ...bank, resource_id, legs: ENTRY_LINES.bank_line_matched({ clearing: -7 }) };
  expect(await post({ ...match, kind: 'bank_line_matched', step: '1' })).toBe(
    'bank_line_matched:stmt_1:3:1',
  );
  const legs = ENTRY_LINES.bank_line_unmatched({ clearing: -7 });
  await post({ ...match, legs, kind: 'bank_line_unmatched', step: '1' });
  expect(await ledger.book(`${bank.account_id}:live:EUR`)).toEqual({
    ...{ _id: `${bank.account_id}:live:EUR`, ...bank },
    ...{ cash: -1_488, clearing: 1_000, suspense: { unmatched: -7 } },
    ...{ expense: { bank_fees: -5 }, external: { opening: 500 } },
  });
});

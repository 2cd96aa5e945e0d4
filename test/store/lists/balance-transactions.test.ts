import { randomUUID } from 'node:crypto';
import { inTransaction } from '../../../src/base/mongo';
import { bookCurrency } from '../../../src/domain/crypto/assets';
import { findSource, readChange } from '../../../src/ledger/balance-changes';
import { createLedgerStore } from '../../../src/ledger/book';
import type { EntryKind, NewEntry } from '../../../src/ledger/entries';
import { ENTRY_LINES } from '../../../src/ledger/entry-lines';
import { connectMonitored, useDatabase } from '../../support/database';
import { planOf } from './plan';

const OWNER = { account_id: `acct_${randomUUID()}`, livemode: false };
const START = Date.UTC(2026, 0, 1);
/** Twice as many are posted; a busy machine does that within the life of a transaction. */
const ENTRIES_AT_ONCE = 10;
const database = useDatabase({ connect: connectMonitored });

beforeAll(() => fill(1_000));

/** Posts entries a second apart: three of four to `main`, nine of ten in euros, mostly payments. */
async function fill(count: number): Promise<void> {
  let second = 0;
  const ledger = createLedgerStore(database.db, () => new Date(START + 1_000 * second));
  for (let from = 0; from < count; from += ENTRIES_AT_ONCE) {
    await inTransaction(database.mongo, async (session) => {
      for (second = from; second < from + ENTRIES_AT_ONCE; second += 1) {
        const balance = second % 4 === 0 ? 'marketing' : 'main';
        const isPayment = balance === 'main' && second % 7 !== 0;
        const kind = isPayment ? 'payment_settled' : 'funded';
        const legs = isPayment
          ? ENTRY_LINES.payment_settled('bank', 5)
          : ENTRY_LINES.funded(balance, 5);
        const currency = second % 10 === 0 ? 'USD' : 'EUR';
        const at = new Date(START).toISOString();
        const about = { ...OWNER, kind, legs, currency, at, resource_id: `${second}` } as const;
        await ledger.post(about, session);
        // In no list.
        const late = { ...about, kind: 'payment_late_received' } as const;
        await ledger.post({ ...late, legs: ENTRY_LINES[late.kind]('bank', 5) }, session);
      }
    });
  }
}

const page = (second: number) => ({
  ...OWNER,
  limit: 26,
  before: new Date(START + second * 1_000).toISOString(),
});

test.each([
  [{}, 'position'],
  [{ currency: 'USD' }, 'currency_position'],
  [{ balance_account: 'marketing' }, 'balance_account_position'],
  [{ type: 'funding' }, 'type_position'],
])('a page by %j is read from an index alone, in order', async (by, index) => {
  for (const filter of [
    { ...page(900), ...by },
    { ...OWNER, ...by, limit: 26 },
  ]) {
    const plan = await planOf(database.mongo, database.db, () =>
      database.stores.balanceTransactions.list(filter),
    );
    expect(plan).toMatchObject({ indexes: [index], returned: 26, documents_examined: 26 });
    expect(plan.stages).not.toContain('SORT');
  }
});

test('an unknown balance account is found to be unknown without reading rows', async () => {
  const { account_id, livemode } = OWNER;
  const { hasBalanceAccount } = database.stores.balanceTransactions;
  const plan = await planOf(database.mongo, database.db, () =>
    hasBalanceAccount(account_id, livemode, 'none'),
  );
  expect(plan).toMatchObject({ indexes: ['balance_account_position'], documents_examined: 0 });
  expect(await hasBalanceAccount(account_id, livemode, 'marketing')).toBe(true);
  expect(await hasBalanceAccount(account_id, true, 'marketing')).toBe(false);
});

test('no two entries of a merchant have one position', async () => {
  const row = await database.db.collection('ledger_postings').findOne({ ...OWNER });
  const copy = { ...row, _id: randomUUID() as never };
  await expect(database.db.collection('ledger_postings').insertOne(copy)).rejects.toThrow(
    /index: position/,
  );
});

test.each<[EntryKind, string, object]>([
  ['funded', 'wire-1', { object: 'funding', id: 'wire-1' }],
  ['adjusted', 'adjust_1', { object: 'adjustment', id: 'adjust_1' }],
  ['reversed', 'funded:a:b', { object: 'funding', id: 'a:b' }],
  ['reversed', 'payment_clawed_back:p', { object: 'payment', id: 'p' }],
  ['refund_settled', 'r', { object: 'refund', id: 'r' }],
  ['crypto_settlement_released', 's', { object: 'crypto_settlement', id: 's' }],
])('the source of %s of %s is %j', (kind, resource_id, source) => {
  expect(findSource({ kind, resource_id })).toEqual(source);
});

test('a refund that the bank sent in part gives the rest back, and amounts of assets are exact', async () => {
  const owner = { account_id: `acct_${randomUUID()}`, livemode: true };
  const pair = { asset: 'ETH', network: 'ethereum' };
  const units = 123_456_789_012_345_678_901n;
  const about = { ...owner, resource_id: 'a', at: new Date(START).toISOString() };
  const ether = { ...about, currency: bookCurrency(pair) } as const;
  const entries: NewEntry[] = [
    { ...about, kind: 'funded', currency: 'EUR', legs: ENTRY_LINES.funded('main', 100) },
    { ...about, kind: 'refund_accepted', currency: 'EUR', legs: ENTRY_LINES.refund_accepted(100) },
    {
      ...{ ...about, kind: 'refund_settled', currency: 'EUR' },
      legs: ENTRY_LINES.refund_settled('bank', 100, 60),
    },
    {
      ...{ ...ether, kind: 'crypto_payment_credited' },
      legs: ENTRY_LINES.crypto_payment_credited('chain', units),
    },
    {
      ...{ ...ether, kind: 'crypto_settlement_reserved', fee: 21n },
      legs: ENTRY_LINES.crypto_settlement_reserved(units),
    },
  ];
  await inTransaction(database.mongo, async (session) => {
    for (const entry of entries) await database.stores.ledger.post(entry, session);
  });
  const rows = await database.stores.balanceTransactions.list({ ...owner, limit: 10 });
  expect(rows.map((row) => [row.type, readChange(row)]).reverse()).toEqual([
    ['funding', { amount: 100n, fee: 0n, net: 100n }],
    ['refund', { amount: -100n, fee: 0n, net: -100n }],
    ['refund_failure', { amount: 40n, fee: 0n, net: 40n }],
    ['crypto_payment', { amount: units, fee: 0n, net: units }],
    ['crypto_settlement', { amount: 21n - units, fee: 21n, net: -units }],
  ]);
});

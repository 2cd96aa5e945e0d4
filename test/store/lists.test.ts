import { randomUUID } from 'node:crypto';
import type { CommandStartedEvent, Document } from 'mongodb';
import { inTransaction } from '../../src/base/mongo';
import { bookCurrency } from '../../src/domain/crypto/assets';
import { createLedgerStore } from '../../src/ledger/book';
import type { EntryKind, NewEntry } from '../../src/ledger/entries';
import { ENTRY_LINES } from '../../src/ledger/entry-lines';
import { findSource, readChange } from '../../src/ledger/pending';
import type { Stores } from '../../src/store';
import { connectMonitored, useDatabase } from '../support/database';
import { buildId, calculateTime, fillLists, LARGE_MERCHANT } from '../support/list-rows';

const TOTAL = 4_000;
const UNTIL = Date.UTC(2026, 0, 1);
/** A payment of the large merchant, and a time from which lists go back. */
const PAYMENT_NUMBER = 2_000;
const BEFORE = calculateTime(TOTAL - 400, TOTAL, UNTIL);
const REFERENCE = `order-${PAYMENT_NUMBER}`;
const PAYMENT_ID = buildId('payment', PAYMENT_NUMBER);

const database = useDatabase({ connect: connectMonitored });

beforeAll(async () => {
  await fillLists(database.db, { total: TOTAL, until: UNTIL });
  await postEntries(1_000);
});

/** Makes one query as the product sends it. @returns what MongoDB reads for it, and how */
async function readPlan(read: (stores: Stores) => Promise<unknown>) {
  const { mongo, db, stores } = database;
  const sent: Document[] = [];
  const listen = ({ command }: CommandStartedEvent) => {
    if ('find' in command || 'aggregate' in command) sent.push(command);
  };
  mongo.on('commandStarted', listen);
  await read(stores).finally(() => mongo.off('commandStarted', listen));
  // The fields that are left out belong to the connection.
  const { lsid, $clusterTime, $db, readConcern, maxTimeMS, ...command } = sent[0] ?? {};
  const explained = await db.command({ explain: command, verbosity: 'executionStats' });
  const [first] = explained['stages'] ?? [];
  const names = { indexes: new Set<string>(), stages: new Set<string>() };
  collectNames(explained['queryPlanner'] ?? explained['stages'], names);
  // An aggregation has the statistics of the whole query in its first stage.
  const statistics = explained['executionStats'] ?? first?.['$cursor']?.['executionStats'];
  return {
    ...{ indexes: [...names.indexes], stages: [...names.stages] },
    returned: Number(statistics.nReturned),
    keys_examined: Number(statistics.totalKeysExamined),
    documents_examined: Number(statistics.totalDocsExamined),
  };
}

/** Collects the indexes and stages of the plan that MongoDB chose, not of those that it rejected. */
function collectNames(node: unknown, names: { indexes: Set<string>; stages: Set<string> }): void {
  if (typeof node !== 'object' || node === null) return;
  for (const [name, value] of Object.entries(node)) {
    if (name === 'rejectedPlans') continue;
    if (name === 'indexName') names.indexes.add(String(value));
    if (name === 'stage') names.stages.add(String(value));
    // A look-up by the id alone names no index.
    if (name === 'stage' && value === 'IDHACK') names.indexes.add('_id_');
    collectNames(value, names);
  }
}

const OWNER = { account_id: LARGE_MERCHANT, livemode: false } as const;
/** A page of the API has 50 rows; one more shows whether there is another page. */
const FIRST_PAGE = { ...OWNER, before: undefined, limit: 51 };
const PAGE = { ...FIRST_PAGE, before: BEFORE };
const KINDS = ['payments', 'refunds', 'payouts'] as const;
const UNSENT = ['exhausted', 'pending'] as const;
const RESENDABLE = { ...OWNER, since: BEFORE, until: '9999', statuses: UNSENT };

type Query = [name: string, read: (stores: Stores) => Promise<unknown>];

const listBy = (kind: (typeof KINDS)[number], ...filters: object[]): Query[] =>
  filters.map((filter) => [
    `${kind} by ${JSON.stringify(filter)}`,
    (stores) => stores[kind].list({ ...PAGE, ...filter }),
  ]);

/** Lists of the API, the dashboard and the command line that an index gives in order. */
const LISTS: Query[] = [
  ...listBy('payments', {}, { status: 'settled' }, { status: 'expired' }),
  ...listBy('payments', { status: 'authorized' }, { method: 'visa' }),
  ...['settled', 'authorized'].flatMap((status) => listBy('payments', { method: 'visa', status })),
  ...[{}, { status: 'settled' }, { method: 'visa' }, { method: 'visa', status: 'settled' }].flatMap(
    (by) => listBy('payments', { ...by, reference: REFERENCE, before: undefined }),
  ),
  ...listBy('refunds', {}, { status: 'settled' }, { status: 'failed' }, { status: 'processing' }),
  ...[{}, { status: 'settled' }].flatMap((by) =>
    listBy('refunds', { ...by, payment_id: PAYMENT_ID, before: undefined }),
  ),
  ...listBy('payouts', {}, { status: 'completed' }, { status: 'returned' }, { status: 'sent' }),
  ...listBy('payouts', { reference: REFERENCE, before: undefined }, { method: 'sepa_instant' }),
  ...listBy('refunds', { method: 'visa' }),
  ...KINDS.flatMap((kind): Query[] => [
    ...listBy(kind, { before: undefined, after: BEFORE }),
    ...listBy(kind, { before: undefined, since: BEFORE, until: '9999' }),
    [`needy ${kind}`, (stores) => stores[kind].listNeedingAttention(LARGE_MERCHANT, false, 51)],
  ]),
  ['deliveries', ({ deliveries }) => deliveries.listByStatus({ ...PAGE, status: 'exhausted' })],
  ['events', ({ events }) => events.list(PAGE)],
  ['events of a resource', ({ events }) => events.list({ ...FIRST_PAGE, resource_id: PAYMENT_ID })],
  ['pending events', ({ deliveries }) => deliveries.pending(PAYMENT_ID, LARGE_MERCHANT, false)],
  [
    'late deliveries',
    async ({ deliveries }) => {
      let count = 0;
      for await (const _row of deliveries.overdue('9999')) if (++count === 200) break;
    },
  ],
  ['events to be sent again', ({ deliveries }) => deliveries.listResendable(RESENDABLE, 51)],
  ['callbacks of a resource', ({ callbacks }) => callbacks.forResource(PAYMENT_ID)],
  ['deliveries of an event', ({ deliveries }) => deliveries.readLogs([`${PAYMENT_NUMBER}`])],
  ['keys of an account', ({ keys }) => keys.forAccount(LARGE_MERCHANT)],
  ['accounts', ({ accounts }) => accounts.list(51)],
];

/** Rows of one reference or of one payment, which the index does not filter by status. */
const FILTERED = 1;
/** Keys passed over where a query goes through an index once for each of several states. */
const BETWEEN_STATES = 4;

test.each(LISTS)(
  'a list of %s reads its rows from one index, in order, and no others',
  async (_name, read) => {
    const plan = await readPlan(read);
    expect(plan.stages).not.toContain('COLLSCAN');
    expect(plan.stages).not.toContain('SORT');
    expect(plan.indexes).toHaveLength(1);
    expect(plan.documents_examined).toBeLessThanOrEqual(plan.returned + FILTERED);
    expect(plan.keys_examined).toBeLessThanOrEqual(plan.returned + FILTERED + BETWEEN_STATES);
  },
);

test('events of a payment, its refunds and its disputes are merged from indexes, in order', async () => {
  const plan = await readPlan(({ events }) => events.listAbout(PAYMENT_ID, FIRST_PAGE));
  expect(plan.stages).not.toContain('SORT');
  expect(plan.indexes).toEqual(['resource_position', 'payment_of_refund', 'payment_of_dispute']);
  expect(plan.keys_examined).toBe(plan.returned);
});

test('what a failover may have lost is read from an index, in the order of arrival', async () => {
  const missed = ({ callbacks }: Stores) => callbacks.missedSince(BEFORE, undefined).toArray();
  expect(await readPlan(missed)).toMatchObject({
    indexes: ['received'],
    stages: ['FETCH', 'IXSCAN'],
  });
});

test('a list of waiting callbacks sorts only what an index selects', async () => {
  for (const waits of ['unsignalled', 'parked', 'any'] as const) {
    const list = ({ callbacks }: Stores) => callbacks.waiting({ waits }).limit(51).toArray();
    const plan = await readPlan(list);
    expect(plan.stages).not.toContain('COLLSCAN');
    expect(plan.indexes).toHaveLength(1);
    expect(plan.keys_examined).toBeLessThanOrEqual(plan.returned + BETWEEN_STATES);
  }
});

const PLACE = [LARGE_MERCHANT, false, BEFORE] as const;

test.each<[string, string, Query[1]]>([
  ['the volume of each day', 'settled_day', ({ payments }) => payments.settledByDay(...PLACE)],
  ['payments by state', 'status_position', ({ payments }) => payments.countByStatus(...PLACE)],
  ['events', 'position', ({ events }) => events.countSince(...PLACE)],
])('%s is counted from an index alone', async (_name, index, read) => {
  expect(await readPlan(read)).toMatchObject({ indexes: [index], documents_examined: 0 });
});

test('a pair of filters that is rare among many rows of each has an index of its own', async () => {
  const filter = { ...PAGE, method: 'visa', status: 'authorized' };
  expect(await readPlan(({ payments }) => payments.list(filter))).toMatchObject({
    indexes: ['method_status_position'],
    stages: ['LIMIT', 'FETCH', 'IXSCAN'],
  });
});

test('the volume of each day sums what was settled, by currency', async () => {
  const since = calculateTime(TOTAL - 40, TOTAL, UNTIL);
  const days = await database.stores.payments.settledByDay(LARGE_MERCHANT, false, since);
  const filter = { account_id: LARGE_MERCHANT, status: 'settled', settled_at: { $gte: since } };
  const settled = await database.db.collection('payments').find(filter).toArray();
  const others = days.filter(({ currency, day }) => currency !== 'EUR' || day < since.slice(0, 10));
  expect(others).toEqual([]);
  const sum = (numbers: number[]) => numbers.reduce((total, each) => total + each, 0);
  expect(sum(days.map(({ amount }) => amount))).toBe(sum(settled.map((row) => row['amount'])));
  expect(sum(days.map(({ payments }) => payments))).toBe(settled.length);
});

test('a page leads back to the page before it, and both bounds of a list hold', async () => {
  const { payments } = database.stores;
  const first = await payments.list({ ...OWNER, limit: 5 });
  const second = await payments.list({ ...OWNER, limit: 5, before: first.at(-1)?.position });
  const back = await payments.list({ ...OWNER, limit: 5, after: second[0]?.position });
  const listIds = (rows: { _id: string }[]) => rows.map(({ _id }) => _id);
  expect(listIds(back)).toEqual(listIds(first));
  const bounds = { since: second.at(-1)?.position, until: first[0]?.position };
  const ids = listIds([...first.slice(1), ...second]);
  expect(listIds(await payments.list({ ...OWNER, ...bounds, limit: 100 }))).toEqual(ids);
  expect(listIds(await payments.export({ ...OWNER, ...bounds }).toArray())).toEqual(ids);
});

const MERCHANT = { account_id: `acct_${randomUUID()}`, livemode: false };

/** Posts entries a second apart: three of four to `main`, nine of ten in euros, mostly payments. */
async function postEntries(count: number): Promise<void> {
  // Twice as many are posted in a transaction; a busy machine does that before the server ends it.
  const atOnce = 10;
  let second = 0;
  const ledger = createLedgerStore(database.db, () => new Date(UNTIL + 1_000 * second));
  for (let from = 0; from < count; from += atOnce) {
    await inTransaction(database.mongo, async (session) => {
      for (second = from; second < from + atOnce; second += 1) {
        const balance = second % 4 === 0 ? 'marketing' : 'main';
        const isPayment = balance === 'main' && second % 7 !== 0;
        const { payment_settled, funded } = ENTRY_LINES;
        const kind = isPayment ? 'payment_settled' : 'funded';
        const lines = isPayment ? payment_settled('bank', 5) : funded(balance, 5);
        const currency = second % 10 === 0 ? 'USD' : 'EUR';
        const at = new Date(UNTIL).toISOString();
        const entry = { ...MERCHANT, kind, lines, currency, at, resource_id: `${second}` } as const;
        await ledger.post(entry, session);
        const held = { ...entry, kind: 'payment_held' } as const;
        await ledger.post({ ...held, lines: ENTRY_LINES[held.kind]('bank', 'in', 5) }, session);
      }
    });
  }
}

describe('a list of balance transactions', () => {
  test.each([
    [{}, 'position'],
    [{ currency: 'USD' }, 'currency_position'],
    [{ balance_account: 'marketing' }, 'balance_account_position'],
    [{ type: 'funding' }, 'type_position'],
  ])('by %j is read from an index alone, in order', async (by, index) => {
    const before = new Date(UNTIL + 900_000).toISOString();
    for (const place of [{}, { before }]) {
      const filter = { ...MERCHANT, ...place, ...by, limit: 26 };
      const plan = await readPlan((stores) => stores.balanceTransactions.list(filter));
      expect(plan).toMatchObject({ indexes: [index], returned: 26, documents_examined: 26 });
      expect(plan.stages).not.toContain('SORT');
    }
  });

  test('finds that a balance account is unknown without reading rows', async () => {
    const { account_id, livemode } = MERCHANT;
    const { hasBalanceAccount } = database.stores.balanceTransactions;
    const plan = await readPlan(() => hasBalanceAccount(account_id, livemode, 'none'));
    expect(plan).toMatchObject({ indexes: ['balance_account_position'], documents_examined: 0 });
    expect(await hasBalanceAccount(account_id, livemode, 'marketing')).toBe(true);
    expect(await hasBalanceAccount(account_id, true, 'marketing')).toBe(false);
  });

  test('has no two entries of a merchant at one position', async () => {
    const entries = database.db.collection<{ _id: string }>('journal_entries');
    const row = await entries.findOne({ ...MERCHANT });
    const copy = entries.insertOne({ ...row, _id: randomUUID() });
    await expect(copy).rejects.toThrow(/index: position/);
  });

  test.each<[EntryKind, string, object]>([
    ['funded', 'wire-1', { object: 'funding', id: 'wire-1' }],
    ['adjusted', 'adjust_1', { object: 'adjustment', id: 'adjust_1' }],
    ['reversed', 'funded:a:b', { object: 'funding', id: 'a:b' }],
    ['reversed', 'payment_clawed_back:p', { object: 'payment', id: 'p' }],
    ['refund_settled', 'r', { object: 'refund', id: 'r' }],
    ['crypto_settlement_released', 's', { object: 'crypto_settlement', id: 's' }],
  ])('names as the source of %s of %s %j', (kind, resource_id, source) => {
    expect(findSource({ kind, resource_id })).toEqual(source);
  });

  test('shows the rest of a refund that the bank sent in part, and exact amounts of assets', async () => {
    const owner = { account_id: `acct_${randomUUID()}`, livemode: true };
    const ether = bookCurrency({ asset: 'ETH', network: 'ethereum' });
    const units = 123_456_789_012_345_678_901n;
    const post = async (
      kind: EntryKind,
      lines: NewEntry['lines'],
      changes: Partial<NewEntry> = {},
    ) => {
      const common = { ...owner, resource_id: 'a', currency: 'EUR', at: BEFORE };
      const entry = { ...common, kind, lines, ...changes };
      await inTransaction(database.mongo, (session) => database.stores.ledger.post(entry, session));
    };
    await post('funded', ENTRY_LINES.funded('main', 100));
    await post('refund_accepted', ENTRY_LINES.refund_accepted(100));
    await post('refund_settled', ENTRY_LINES.refund_settled('bank', 100, 60));
    const credited = ENTRY_LINES.crypto_payment_credited('chain', units);
    await post('crypto_payment_credited', credited, { currency: ether });
    const reserved = ENTRY_LINES.crypto_settlement_reserved(units);
    await post('crypto_settlement_reserved', reserved, { currency: ether, fee: 21n });
    const rows = await database.stores.balanceTransactions.list({ ...owner, limit: 10 });
    expect(rows.map((row) => [row.type, readChange(row)]).reverse()).toEqual([
      ['funding', { amount: 100n, fee: 0n, net: 100n }],
      ['refund', { amount: -100n, fee: 0n, net: -100n }],
      ['refund_failure', { amount: 40n, fee: 0n, net: 40n }],
      ['crypto_payment', { amount: units, fee: 0n, net: units }],
      ['crypto_settlement', { amount: 21n - units, fee: 21n, net: -units }],
    ]);
  });
});

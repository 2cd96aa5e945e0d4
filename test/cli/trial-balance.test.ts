import { randomUUID } from 'node:crypto';
import { Long } from 'mongodb';
import { z } from 'zod';
import { inTransaction } from '../../src/base/mongo';
import { createLedgerStore } from '../../src/ledger/book';
import { type NewEntry, operationId } from '../../src/ledger/entries';
import { ENTRY_LINES } from '../../src/ledger/entry-lines';
import { useFixture } from '../support/fixture';
import { retryUntilDone } from '../support/insist';
import { openProvisioning } from './cli';

const IBAN = 'DE89370400440532013000';
const Amount = z.union([z.int(), z.string()]);
const TrialBalance = z.strictObject({
  rows: z.array(
    z.strictObject({
      ...{ book: z.string(), account: z.string(), currency: z.string(), balance: Amount },
    }),
  ),
  rows_total: z.int(),
  totals: z.array(z.strictObject({ env: z.string(), currency: z.string(), sum: Amount })),
  findings: z.array(
    z.strictObject({
      ...{ code: z.string(), message: z.string(), amount: Amount, currency: z.string() },
      ids: z.array(z.string()),
    }),
  ),
});

/** A bank account of the sandbox bank and two merchants, each test with a database of its own. */
async function openBank() {
  const service = await openProvisioning();
  const { bank_account_id } = z
    .object({ bank_account_id: z.string() })
    .parse(
      await service.json(
        ...['bank-account', 'add', '--connector', 'sandbox', '--env', 'sandbox'],
        ...['--iban', IBAN, '--currency', 'EUR'],
      ),
    );
  await retryUntilDone(() => service.stores.ledger.ensureIndexes());
  let clock = '2026-03-04T05:06:07.089Z';
  const ledger = createLedgerStore(service.db, () => new Date(clock));
  const act = <T>(work: Parameters<typeof inTransaction<T>>[1]) =>
    inTransaction(service.mongo, work);
  const post = async (change: Pick<NewEntry, 'kind' | 'legs'> & Partial<NewEntry>) => {
    const owner = { account_id: 'acct_1', livemode: false, currency: 'EUR', at: clock };
    const entry = { ...owner, resource_id: randomUUID(), ...change };
    await act((session) => ledger.post(entry, session));
    return operationId(entry);
  };
  return {
    ...service,
    bank: { account_id: bank_account_id },
    bankBook: `${bank_account_id}:sandbox:EUR`,
    setClock: (time: string) => {
      clock = time;
    },
    post,
    settle: (amount: number, change: Partial<NewEntry> = {}) =>
      post({
        kind: 'payment_settled',
        legs: ENTRY_LINES.payment_settled('sandbox', amount),
        ...change,
      }),
    clear: (...ids: string[]) => act((session) => ledger.clear(ids, session)),
    read: async (...options: string[]) =>
      TrialBalance.parse(await service.json('ledger', 'trial-balance', ...options)),
  };
}

const fixture = useFixture(openBank, ({ close }) => close());

beforeEach(async () => {
  for (const name of ['ledger_postings', 'ledger_books']) {
    await fixture.db.collection(name).deleteMany();
  }
  fixture.setClock('2026-03-04T05:06:07.089Z');
});

/** Imports a statement: one line matches, one is a fee, and one is unknown. */
async function live() {
  const { bank, post, settle, setClock, clear } = fixture;
  const paid = await settle(1_000);
  const waiting = await settle(700, { account_id: 'acct_2' });
  setClock('2026-03-05T00:00:00.000Z');
  await post({ ...bank, kind: 'bank_opening', legs: ENTRY_LINES.bank_opening(500) });
  await post({ ...bank, kind: 'bank_line', legs: ENTRY_LINES.bank_line({ clearing: 1_000 }) });
  await clear(paid);
  await post({ ...bank, kind: 'bank_line', legs: ENTRY_LINES.bank_line({ bank_fees: -5 }) });
  const legs = ENTRY_LINES.bank_line({ unmatched: 33 });
  await post({ ...bank, kind: 'bank_line', resource_id: 'stmt_1:3', legs });
  return { paid, waiting };
}

const inTransit = (amount: number, ...ids: string[]) => ({
  ...{ code: 'in_transit', amount, currency: 'EUR', ids },
  message: expect.stringMatching(
    /^sandbox sandbox EUR: \d movements? on no statement; the oldest is of 2026-03-04, \d+ days old\.$/,
  ),
});
const unmatched = {
  ...{ code: 'unmatched', amount: 33, currency: 'EUR', ids: ['stmt_1:3'] },
  message: expect.stringContaining(
    '1 statement line without an entry; the oldest is of 2026-03-05',
  ),
};

test('is empty without journal entries', async () => {
  expect(await fixture.read()).toEqual({ rows: [], rows_total: 0, totals: [], findings: [] });
  const { stdout } = await fixture.cli('ledger', 'trial-balance');
  expect(stdout).toBe('There are no books.\n\nFindings: none.\n');
});

test('reports money in transit and unmatched statement lines', async () => {
  const { waiting } = await live();
  const { bankBook } = fixture;
  const { rows, rows_total, totals, findings } = await fixture.read();
  expect(rows.map(({ book, account, balance }) => [book, account, balance])).toEqual([
    ['acct_1:sandbox:EUR', 'balances.main.available', 1_000],
    ['acct_1:sandbox:EUR', 'clearing.sandbox', -1_000],
    ['acct_2:sandbox:EUR', 'balances.main.available', 700],
    ['acct_2:sandbox:EUR', 'clearing.sandbox', -700],
    [bankBook, 'cash', -1_528],
    [bankBook, 'clearing', 1_000],
    [bankBook, 'expense.bank_fees', -5],
    [bankBook, 'external.opening', 500],
    [bankBook, 'suspense.unmatched', 33],
  ]);
  expect(rows_total).toBe(9);
  expect(totals).toEqual([{ env: 'sandbox', currency: 'EUR', sum: 0 }]);
  expect(findings).toEqual([inTransit(700, waiting), unmatched]);
});

test('counts a line that is matched or unmatched later in its current state', async () => {
  const { waiting } = await live();
  const { bank, post, read, clear } = fixture;
  const line = { ...bank, resource_id: 'stmt_1:3', step: '1' };
  const match = { clearing: 33 };
  await post({ ...line, kind: 'bank_line_matched', legs: ENTRY_LINES.bank_line_matched(match) });
  const late = await fixture.settle(33);
  await clear(late);
  expect((await read()).findings).toEqual([inTransit(700, waiting)]);
  const legs = ENTRY_LINES.bank_line_unmatched(match);
  await post({ ...line, kind: 'bank_line_unmatched', legs });
  // The entry still counts as matched.
  expect((await read()).findings).toEqual([
    inTransit(700, waiting),
    unmatched,
    expect.objectContaining({ code: 'clearing_differs', amount: -33, ids: [fixture.bankBook] }),
  ]);
});

test('reports two open lines though they sum to 0', async () => {
  const { bank, post, read } = fixture;
  for (const [resource_id, amount] of [
    ['stmt_1:1', 40],
    ['stmt_1:2', -40],
  ] as const) {
    const legs = ENTRY_LINES.bank_line({ unmatched: amount });
    await post({ ...bank, kind: 'bank_line', resource_id, legs });
  }
  expect((await read()).findings).toMatchObject([
    { code: 'unmatched', amount: 0, ids: ['stmt_1:1', 'stmt_1:2'] },
  ]);
});

test('--at selects by the time of posting, and reports what was in transit then', async () => {
  const { paid, waiting } = await live();
  const then = await fixture.read('--at', '2026-03-04T05:06:07.089Z');
  expect(then.rows).toHaveLength(4);
  expect(then.findings).toEqual([inTransit(1_700, ...[waiting, paid].sort())]);
  expect(await fixture.read('--at', '2026-03-05T00:00:00Z')).toEqual(await fixture.read());
  const before = await fixture.read('--at', '2026-03-04T05:06:07.088Z');
  expect(before).toEqual({ rows: [], rows_total: 0, totals: [], findings: [] });
  for (const time of ['2999-01-01T00:00:00Z', 'yesterday']) {
    const refused = await fixture.refusal('ledger', 'trial-balance', '--at', time);
    expect(refused.code).toBe('invalid_usage');
  }
});

test('sums each environment and each asset by itself', async () => {
  await fixture.settle(700, { livemode: true });
  const legs = ENTRY_LINES.crypto_payment_credited('evm', 10n ** 20n);
  await fixture.post({ kind: 'crypto_payment_credited', currency: 'ETH.ethereum', legs });
  const { rows, totals, findings } = await fixture.read();
  expect(rows.map(({ book, balance }) => `${book} ${balance}`)).toEqual([
    'acct_1:live:EUR 700',
    'acct_1:live:EUR -700',
    'acct_1:sandbox:ETH.ethereum 100000000000000000000',
    'acct_1:sandbox:ETH.ethereum -100000000000000000000',
  ]);
  expect(totals).toEqual([
    { env: 'sandbox', currency: 'ETH.ethereum', sum: '0' },
    { env: 'live', currency: 'EUR', sum: 0 },
  ]);
  // No bank account is registered on live.
  expect(findings).toEqual([]);
  expect((await fixture.read('--env', 'live')).rows).toEqual(rows.slice(0, 2));
  expect((await fixture.read('--env', 'sandbox')).rows).toEqual(rows.slice(2));
});

describe('ledger verify', () => {
  const postLines = async () => {
    const { bank, post } = fixture;
    const opening = await post({
      ...{ ...bank, kind: 'bank_opening', resource_id: bank.account_id },
      legs: ENTRY_LINES.bank_opening(500),
    });
    const legs = ENTRY_LINES.bank_line({ clearing: 995, bank_fees: -5 });
    const line = await post({ ...bank, kind: 'bank_line', resource_id: 'stmt_1:1', legs });
    return { opening, line };
  };
  const verify = async () => {
    const { stdout } = await fixture.cli('ledger', 'verify', '--full', '--json');
    const { data } = z
      .object({ data: z.object({ differences: z.array(z.record(z.string(), z.unknown())) }) })
      .parse(JSON.parse(stdout));
    return data.differences.map(({ check, subject }) => [check, subject]);
  };

  test('knows the books of bank accounts', async () => {
    await postLines();
    expect(await verify()).toEqual([]);
  });

  test('finds a bank account that is not there, or is of another currency', async () => {
    await postLines();
    const { bank, db, post } = fixture;
    const stored = db.collection<{ _id: string }>('bank_accounts');
    const account = await stored.findOneAndDelete({ _id: bank.account_id });
    expect(await verify()).toEqual([
      ['resource_missing', bank.account_id],
      ['resource_missing', bank.account_id],
    ]);
    if (account !== null) await stored.insertOne(account);
    const legs = ENTRY_LINES.bank_line({ clearing: 5 });
    await post({ ...bank, currency: 'USD', kind: 'bank_line', resource_id: 'stmt_1:2', legs });
    expect(await verify()).toEqual([['posting_differs', bank.account_id]]);
  });

  test('finds entries in books of the other sort', async () => {
    const { bank, post } = fixture;
    const id = await post({
      ...{ kind: 'bank_line', resource_id: 'stmt_1:3' },
      legs: ENTRY_LINES.bank_line({ clearing: 5 }),
    });
    const funded = await post({ ...bank, kind: 'funded', legs: ENTRY_LINES.funded('main', 5) });
    expect(await verify()).toEqual(
      expect.arrayContaining([
        ['entry_misplaced', id],
        ['resource_missing', 'acct_1'],
        ['entry_misplaced', funded],
      ]),
    );
  });
});

test('reports a book that does not sum to 0', async () => {
  await live();
  const books = fixture.db.collection<{ _id: string }>('ledger_books');
  await books.updateOne({ _id: fixture.bankBook }, { $inc: { cash: Long.fromNumber(7) } });
  const { totals, findings } = await fixture.read();
  expect(totals).toEqual([{ env: 'sandbox', currency: 'EUR', sum: 7 }]);
  expect(findings[0]).toEqual({
    ...{ code: 'book_unbalanced', amount: 7, currency: 'EUR', ids: [fixture.bankBook] },
    message: 'Books in sandbox EUR do not sum to 0: run ledger verify.',
  });
});

test('prints an aligned table for each currency', async () => {
  await live();
  const { stdout } = await fixture.cli('ledger', 'trial-balance', '--env', 'sandbox');
  const lines = stdout.replaceAll(fixture.bankBook, 'BANK:sandbox:EUR  ').split('\n');
  const pad = ' '.repeat(fixture.bankBook.length - 'acct_1:sandbox:EUR'.length);
  expect(lines.slice(0, 4)).toEqual([
    'EUR, sandbox',
    `BOOK              ${pad}  ACCOUNT                  BALANCE`,
    `acct_1:sandbox:EUR${pad}  balances.main.available   €10.00`,
    `acct_1:sandbox:EUR${pad}  clearing.sandbox         -€10.00`,
  ]);
  expect(stdout).toMatch(/^Total +€0\.00$/m);
  expect(stdout).toMatch(/^in_transit +€7\.00 +sandbox sandbox EUR: 1 movement/m);
});

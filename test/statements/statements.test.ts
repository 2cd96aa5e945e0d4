import { randomUUID } from 'node:crypto';
import { inTransaction } from '../../src/base/mongo';
import { readApprovalLimits } from '../../src/domain/operators/approval';
import { ENTRY_LINES } from '../../src/ledger/entry-lines';
import type { PlatformKind } from '../../src/ledger/ledger-accounts';
import { readTrialBalance } from '../../src/ledger-check/trial-balance';
import { verifyLedger } from '../../src/ledger-check/verify';
import { updateBankAccount } from '../../src/service/banks/bank-accounts';
import {
  abandonStatement,
  importMade,
  importStatements,
} from '../../src/service/banks/statements/import';
import {
  clearEntries,
  DIFFERENCE_ACCOUNTS,
  matchByHand,
  unmatchByHand,
} from '../../src/service/banks/statements/lines';
import { reconcileAccounts } from '../../src/service/banks/statements/reconciliation';
import { reverseOperation } from '../../src/service/money/balances/act';
import { adjustBalance, postPlatform } from '../../src/service/money/balances/adjust';
import { fundBalance } from '../../src/service/money/balances/fund';
import { readProvedBalances } from '../../src/service/money/read';
import { approve } from '../../src/service/operators/approvals/carry-out';
import { acknowledgeOfBankAccount, listAttention } from '../../src/service/operators/attention';
import { createMetricStore } from '../../src/store/metrics';
import type { MovementDocument } from '../../src/store/movements';
import { openMadeStatements } from '../../src/store/statements';
import { operatorsAudit } from '../support/audit';
import { readBalances } from '../support/book';
import { type CamtEntry, type CamtStatement, camt, TEST_DAY, TEST_IBAN } from '../support/camt';
import { retryTransient, useDatabase } from '../support/database';
import { useFixture } from '../support/fixture';

const OTHER_IBAN = 'GB82WEST12345698765432';
const database = useDatabase();
const buildDeps = () => {
  const { mongo, stores } = database;
  const now = () => new Date(`${TEST_DAY}T23:59:59.999Z`);
  return { mongo, stores, audit: operatorsAudit(stores), now };
};
const listFindings = async (now = buildDeps().now) =>
  (await readTrialBalance(database.mongo, database.db.databaseName, { now })).findings;

async function openAccount(currency = 'EUR', livemode = false) {
  const { mongo, stores } = database;
  // Entries belong to no IBAN, so that each account has a connector for itself.
  const connector = `bank_${randomUUID().slice(0, 8)}`;
  const own = { connector, livemode };
  const created = { created_at: `${TEST_DAY}T00:00:00.000Z`, closing: null };
  const account = { _id: `ba_${randomUUID()}`, ...own, iban: TEST_IBAN, currency, ...created };
  await mongo.withSession((session) => stores.bankAccounts.insert(account, session));
  const scope = { ...own, currency };
  const book = `${account._id}:${livemode ? 'live' : 'sandbox'}:${currency}`;

  const post = async (
    amount: number,
    { day = TEST_DAY, bank_reference }: { day?: string; bank_reference?: string } = {},
  ) => {
    const resource_id = randomUUID();
    const owner = { account_id: `acct_${connector}`, livemode, currency };
    const kind = amount > 0 ? 'payment_settled' : 'payout_captured';
    const lines =
      amount > 0
        ? ENTRY_LINES.payment_settled(connector, amount)
        : ENTRY_LINES.payout_captured('main', connector, -amount, 0);
    const bank = { at: `${day}T10:00:00.000Z`, value_date: day, bank_reference };
    const entry = { kind, resource_id, ...owner, lines, ...bank } as const;
    await inTransaction(mongo, (session) => stores.ledger.post(entry, session));
    const entry_id = `${kind}:${resource_id}`;
    return { entry_id, amount, reference: resource_id.replaceAll('-', '') };
  };

  const merchant = { account_id: `acct_${connector}`, livemode, balance_account: 'main', currency };
  const note = { operator: 'mia', reason: 'Ticket 42' };

  return {
    account,
    connector,
    post,
    /** Registers another account of the same bank. */
    register: (iban: string, other = currency) => {
      const second = { ...account, _id: `ba_${randomUUID()}`, iban, currency: other };
      return mongo.withSession((session) => stores.bankAccounts.insert(second, session));
    },
    fund: (amount: number, bank_reference?: string, more: Partial<typeof merchant> = {}) => {
      const money = { ...merchant, ...more, amount, connector, bank_reference };
      return fundBalance(buildDeps(), money, { note });
    },
    adjust: (amount: number, bank_reference?: string) => {
      const against = `clearing:${connector}` as const;
      return adjustBalance(buildDeps(), { ...merchant, amount, against, bank_reference }, note);
    },
    platform: (kind: PlatformKind, amount: number, bank_reference: string) => {
      const movement = { ...own, kind, currency, amount, bank_reference };
      return postPlatform(buildDeps(), movement, note, randomUUID());
    },
    reverse: (id: string) => reverseOperation(buildDeps(), id, note),
    movements: () => stores.movements.list({ connector }, 10),
    /** Names the movement of an entry, as a report does that comes after it. */
    name: ({ entry_id, amount }: { entry_id: string; amount: number }, bank_reference: string) => {
      const row: MovementDocument = {
        ...{ _id: `mv_${randomUUID()}`, ...own, account_id: `acct_${connector}`, order: 1 },
        ...{ resource: 'payment', resource_id: null, names: [bank_reference], bank_reference },
        ...{ direction: 'in', amount, currency, value_date: null, reason: null, sources: [] },
        ...{ applied: amount, resolutions: [], state: 'applied', entry: entry_id },
        reported_at: `${TEST_DAY}T11:00:00.000Z`,
      };
      return mongo.withSession((session) => stores.movements.insert(row, session));
    },
    proved: async () => {
      const { balances } = await readProvedBalances(database, merchant);
      const { rows } = await readTrialBalance(mongo, database.db.databaseName, buildDeps());
      const book = `${merchant.account_id}:${livemode ? 'live' : 'sandbox'}:${currency}`;
      const own = rows.filter((row) => row.book === book);
      const [row] = own.filter(({ account }) => account === 'balances.main.available');
      const [{ proved_until } = { proved_until: null }] = balances;
      expect(row?.proved_until).toBe(proved_until);
      return proved_until;
    },
    credited: async () =>
      (await stores.ledger.balances(merchant.account_id, livemode))[0]?.available ?? 0,
    write: (statement: CamtStatement, more: { message?: string } = {}) =>
      camt([{ currency, ...statement }], more),
    import: async (file: Buffer) => (await importStatements(buildDeps(), file, own)).statements,
    reconcile: async (day?: string) => {
      const [shown] = await reconcileAccounts(buildDeps(), { ...own, iban: TEST_IBAN, day });
      if (shown === undefined) throw new Error('not shown');
      return shown;
    },
    uncleared: async () =>
      (await stores.ledger.listUncleared({ ...scope, limit: 100 })).map((e) => e.entry_id),
    balance: async (path: string) => (await readBalances(stores, book))(path) ?? 0,
    stored: async () => {
      const count = (name: string, filter: object) =>
        database.db.collection(name).countDocuments(filter);
      const entries = await count('journal_entries', { book });
      const own = { bank_account_id: account._id };
      const lines = await count('statement_lines', own);
      return { entries, lines, statements: await count('statements', own) };
    },
    verify: async () =>
      (await verifyLedger(database.mongo, database.db.databaseName, { book })).differences,
    lines: (status?: string) =>
      database.db
        .collection('statement_lines')
        .find({ bank_account_id: account._id, ...(status && { status }) })
        .sort({ _id: 1 })
        .toArray(),
  };
}

const CHARGED =
  '<Chrgs><Rcrd><Amt Ccy="GBP">0.05</Amt><CdtDbtInd>DBIT</CdtDbtInd>' +
  '<ChrgInclInd>true</ChrgInclInd></Rcrd></Chrgs>';

const NOTIFICATION = { message: 'camt.054.001.08' };
const ACT = { operator: 'mia', reason: 'the bank has none' };

/** Expects a refusal by its code, and its words where a reader needs them. */
const refuses = (work: Promise<unknown>, code: string, words?: RegExp) =>
  expect(work).rejects.toMatchObject(
    words ? { code, message: expect.stringMatching(words) } : { code },
  );

type Step = 'insert' | 'insertLines' | 'complete' | 'ofAccount' | 'repeatSame';

/** Lets an import end at a step of the store, once others of its kind were done. */
async function killAt(step: Step, skipped: number, work: () => Promise<unknown>): Promise<void> {
  const { statements } = database.stores;
  const original = statements[step];
  let calls = 0;
  const stop = jest.spyOn(statements, step).mockImplementation((...args: unknown[]) => {
    calls += 1;
    if (calls > skipped) throw new Error(`killed at ${step}`);
    return Reflect.apply(original, statements, args);
  });
  await expect(work()).rejects.toThrow(`killed at ${step}`);
  stop.mockRestore();
}

const listIds = (rows: readonly { id: string }[]) => rows.map(({ id }) => id);
const listEntryIds = (rows: readonly { entry_id: string }[]) =>
  rows.map(({ entry_id }) => entry_id);

// First, while a trial balance of all books is short.
describe("the service's own money", () => {
  const readFindings = async (now = buildDeps().now) =>
    (await listFindings(now)).filter(({ currency }) => currency === 'CHF');
  const later = () => new Date('2026-11-26T12:00:00.000Z');

  test.each([
    ['fee_sweep', -300],
    ['interest', 7],
    ['interest', -7],
  ] as const)('has its book, so that a day with a line of %s %i closes', async (kind, amount) => {
    const bank = await openAccount('SEK');
    await bank.import(bank.write({ entries: [{ amount, bank_reference: 'P-1' }] }));
    expect(await bank.reconcile()).toMatchObject({ closed: false, theirs_only: [{ amount }] });
    const { operation_id } = await bank.platform(kind, amount, 'P-1');
    expect(await bank.reconcile()).toMatchObject({ closed: true, matched: 1 });
    await refuses(bank.platform(kind, amount, 'P-1'), 'bank_reference_used');
    const [movement] = await bank.movements();
    expect(movement).toMatchObject({ account_id: 'platform', entry: operation_id });
    expect(movement?.sources.map((source) => source.kind)).toEqual(['act', 'statement']);
  });

  test('moves between own accounts one end at a time, and a missing end is a finding', async () => {
    const [from, to] = [await openAccount('CHF'), await openAccount('CHF')];
    const left = await from.platform('transfer', -500, 'T-1');
    await from.import(from.write({ entries: [{ amount: -500, bank_reference: 'T-1' }] }));
    expect(await readFindings()).toEqual([]);
    expect(await readFindings(later)).toEqual([
      {
        ...{ code: 'transfer_open', amount: -500n, currency: 'CHF', ids: [left.operation_id] },
        message: expect.stringContaining('sandbox CHF: the other end of 1 transfer'),
      },
    ]);
    await to.platform('transfer', 500, 'T-2');
    await to.import(to.write({ entries: [{ amount: 500, bank_reference: 'T-2' }] }));
    expect(await readFindings(later)).toEqual([]);
    for (const bank of [from, to]) expect(await bank.reconcile()).toMatchObject({ closed: true });
  });

  test('is not what a live merchant was credited without a bank, which is a finding', async () => {
    const account_id = `acct_${randomUUID()}`;
    const owner = { account_id, livemode: true, balance_account: 'main', currency: 'CHF' };
    const { operation_id } = await fundBalance(buildDeps(), { ...owner, amount: 900 });
    expect(await readFindings()).toMatchObject([
      { code: 'funded_without_bank', amount: 900n, ids: [`${account_id}:live:CHF`] },
    ]);
    await reverseOperation(buildDeps(), operation_id, {});
    expect(await readFindings()).toEqual([]);
  });
});

describe('a balance is proved', () => {
  const [before, next] = ['2026-11-19', '2026-11-21'];

  test('until the last day before the first open one, whatever is posted for an earlier day', async () => {
    const bank = await openAccount();
    const paid = await bank.post(1000);
    expect(await bank.proved()).toBeNull();
    await bank.import(bank.write({ entries: [paid] }));
    expect(await bank.proved()).toBe(TEST_DAY);
    const late = await bank.post(70, { day: before });
    const opening = 1000;
    await bank.import(bank.write({ id: 'S-2', day: next, opening, entries: [] }));
    expect(await bank.proved()).toBe(TEST_DAY);
    const after = { id: 'S-3', day: '2026-11-22', opening };
    await bank.import(bank.write({ ...after, entries: [late] }));
    expect(await bank.proved()).toBe('2026-11-22');
    const line = (await bank.lines()).find(({ amount }) => amount === 1000);
    await unmatchByHand(buildDeps(), String(line?.['_id']), {});
    expect(await bank.proved()).toBeNull();
  });

  test('also after an interrupted import that was given up', async () => {
    const bank = await openAccount();
    const statement = bank.write({ entries: [await bank.post(1000)] });
    await killAt('complete', 0, () => bank.import(statement));
    const [line] = await bank.lines();
    await abandonStatement(buildDeps(), String(line?.['statement']), ACT);
    await bank.import(statement);
    expect(await bank.proved()).toBe(TEST_DAY);
  });

  test('by the bank accounts of all of its connectors in its currency', async () => {
    const bank = await openAccount();
    const paid = await bank.post(1000);
    await bank.import(bank.write({ entries: [paid] }));
    await bank.register(OTHER_IBAN);
    expect(await bank.proved()).toBeNull();
    await bank.import(bank.write({ id: 'S-2', iban: OTHER_IBAN, day: before }));
    expect(await bank.proved()).toBe(before);
  });

  test('where only a debt is on it, too', async () => {
    const bank = await openAccount();
    const owner = { account_id: `acct_${bank.connector}`, livemode: false, currency: 'EUR' };
    const lines = ENTRY_LINES.payment_clawed_back(bank.connector, 0, 700);
    const posted = { kind: 'payment_clawed_back', resource_id: randomUUID(), lines } as const;
    const named = { at: `${TEST_DAY}T10:00:00.000Z`, value_date: TEST_DAY, bank_reference: 'B-1' };
    await inTransaction(database.mongo, (session) =>
      database.stores.ledger.post({ ...posted, ...owner, ...named }, session),
    );
    await bank.import(bank.write({ entries: [{ amount: -700, bank_reference: 'B-1' }] }));
    const { balances } = await readProvedBalances(database, owner);
    const main = { balance_account: 'main', available: 0, proved_until: TEST_DAY };
    expect(balances).toMatchObject([main]);
  });
});

test('an imported statement is matched, booked and reconciled, and its day closes', async () => {
  const bank = await openAccount();
  const paid = await bank.post(1000, { bank_reference: 'B-1' });
  const sent = await bank.post(-400);
  const file = bank.write({
    opening: 50,
    entries: [
      { ...paid, bank_reference: 'B-1' },
      { ...sent, bank_reference: 'B-2' },
      { amount: -5, code: 'PMNT.MDOP.CHRG' },
    ],
  });
  const row = {
    ...{ id: expect.stringMatching(/^st_/), statement_id: 'S-1', kind: 'statement' },
    ...{ account: TEST_IBAN, day: TEST_DAY, lines: 3, matched: 2, booked: 1, open: 0 },
  };
  expect(await bank.import(file)).toEqual([{ ...row, already_imported: false }]);
  const stored = await bank.stored();
  expect(stored).toEqual({ statements: 1, lines: 3, entries: 4 });
  expect(await bank.import(file)).toEqual([{ ...row, already_imported: true }]);
  expect(await bank.stored()).toEqual(stored);
  expect(await bank.reconcile()).toEqual({
    ...{ account: TEST_IBAN, currency: 'EUR', day: TEST_DAY, closed: true },
    ...{ opening: 50, closing: 645, matched: 2, has_more: false },
    ...{ ours_only: [], theirs_only: [], different: [], findings: [] },
  });
  const accounts = ['cash', 'clearing', 'suspense.unmatched', 'expense.bank_fees'];
  const balances = await Promise.all([...accounts, 'external.opening'].map(bank.balance));
  // Below 0 is what the bank holds: the closing balance.
  expect(balances).toEqual([-645, 600, 0, -5, 50]);
  const closing = { amount: 645, day: TEST_DAY, statement_id: 'S-1' };
  const account = await database.stores.bankAccounts.get(bank.account._id);
  expect(account).toEqual({ ...bank.account, closing });
  expect(await bank.verify()).toEqual([]);
});

describe('a refused file leaves only its refusal', () => {
  const entries = [{ amount: 1000 }];
  const day = '2026-11-17';
  const bank = useFixture(async () => {
    const opened = await openAccount();
    await opened.import(opened.write({ id: 'S-0', day, entries: [{ amount: 50 }] }));
    return opened;
  });
  const future = [{ amount: 1, value_date: '2026-12-21' }];

  test.each<[code: string, CamtStatement, RegExp, cut?: number]>([
    ['statement_conflict', { id: 'S-0', day, entries }, /S-0 .* line 1 is €10.00 of .* has €0.50/],
    ['statement_gap', { day: '2026-11-16', opening: 50, entries }, /is older than the last one/],
    ['sum_mismatch', { opening: 50, closing: 1049, entries }, /S-1 .* lead .*: -€0.01 is missing/],
    ['wrong_currency', { currency: 'USD', opening: 50, entries }, /S-1 is in USD.* in EUR/],
    ['bank_account_unknown', { iban: OTHER_IBAN, entries }, /no bank account GB82WEST12345/],
    ['file_invalid', { opening: 50, entries: future }, /Line 1 of .* S-1 .* 2026-12-21/],
    ['file_invalid', { entries }, /well-formed/, 30],
  ])('with the code %s', async (code, statement, message, cut = 0) => {
    const before = await bank.stored();
    const count = () =>
      database.db.collection('statement_refusals').countDocuments({ connector: bank.connector });
    const refusals = await count();
    const file = bank.write(statement);
    for (const _ of ['first', 'repeat']) {
      await refuses(bank.import(file.subarray(0, file.length - cut)), code, message);
    }
    expect(await bank.stored()).toEqual(before);
    expect(await count()).toBe(refusals + 1);
  });

  test('also if only one statement of it is wrong', async () => {
    const right = { id: 'A', iban: TEST_IBAN, opening: 50, entries };
    const before = await bank.stored();
    const both = camt([right, { ...right, id: 'B', opening: 1_050, closing: 0 }]);
    await refuses(bank.import(both), 'sum_mismatch');
    expect(await bank.stored()).toEqual(before);
  });

  test('and values up to 30 days ahead are imported', async () => {
    const entries = [{ amount: 1000, value_date: '2026-12-20' }];
    expect(await bank.import(bank.write({ opening: 50, entries }))).toMatchObject([{ open: 1 }]);
  });
});

describe('a statement behind a missing one', () => {
  const named = { reference: 'X', bank_reference: 'B-1' };
  const setup = async () => {
    const bank = await openAccount();
    const first = { amount: 50, bank_reference: 'B-0' };
    await bank.import(bank.write({ id: 'S-1', day: '2026-11-17', entries: [first] }));
    const posted = await bank.post(1_000, { bank_reference: 'B-1' });
    const [unnamed, charge] = [{ amount: -300 }, { amount: -5, code: 'PMNT.MDOP.CHRG' }];
    const entries = [{ ...named, amount: 1_000 }, unnamed, charge];
    const missing = { id: 'S-2', day: '2026-11-18', opening: 50, entries: [{ amount: 10 }] };
    const late = bank.write(missing);
    const behind = { id: 'S-3', opening: 60, entries };
    const words =
      /S-3 opens at €0.60.* closed at €0.50: €0.10 differ. .*: 2026-11-18 to 2026-11-19/;
    const refused = (file = bank.write(behind)) =>
      refuses(bank.import(file), 'statement_gap', words);
    const expectAll = async (id: string, status: string) => {
      const own = (await bank.lines()).filter(({ statement }) => statement === id);
      expect(own.map((line) => line['status'])).toEqual([status, status, status]);
    };
    /** Imports the missing one, then this one. */
    const fill = async (file = bank.write(behind)) => {
      await bank.import(late);
      const [imported] = await bank.import(file);
      expect(imported).toMatchObject({ statement_id: 'S-3', matched: 1, booked: 1, open: 1 });
      expect(await bank.balance('cash')).toBe(-755);
      expect(await bank.uncleared()).toEqual([]);
      expect(await bank.verify()).toEqual([]);
    };
    const findOwn = () => {
      const own = { bank_account_id: bank.account._id, statement_id: 'S-3' };
      return database.db.collection('statements').find(own).toArray();
    };
    const turned = bank.write({ ...behind, entries: entries.toReversed() });
    return { ...bank, posted, behind, late, turned, refused, expectAll, fill, findOwn };
  };

  test('has its lines announced, which move no money, and are repeated when it is imported', async () => {
    const bank = await setup();
    await bank.refused();
    const stored = await bank.stored();
    const [announced, ...more] = await bank.findOwn();
    expect([announced, more]).toMatchObject([{ kind: 'notification', lines: 3 }, []]);
    const id = String(announced?._id);
    await bank.expectAll(id, 'announced');
    expect(await bank.balance('cash')).toBe(-50);
    expect(await bank.uncleared()).toEqual([bank.posted.entry_id]);
    await bank.refused();
    await bank.refused(bank.turned);
    expect(await bank.stored()).toEqual(stored);
    await bank.fill();
    await bank.expectAll(id, 'repeated');
    const [again] = await bank.import(bank.write(bank.behind));
    expect(again).toMatchObject({ kind: 'statement', already_imported: true });
  });

  test('is repeated whatever the order of its lines, and once it was given up announced again', async () => {
    const bank = await setup();
    await bank.refused();
    const id = String((await bank.findOwn())[0]?._id);
    await bank.import(bank.late);
    await killAt('complete', 0, () => bank.import(bank.turned));
    await bank.expectAll(id, 'repeated');
    const begun = (await database.stores.bankAccounts.get(bank.account._id))?.importing?._id;
    await abandonStatement(buildDeps(), begun?.toUpperCase() ?? '', ACT);
    await bank.expectAll(id, 'announced');
    await bank.fill(bank.turned);
    await bank.expectAll(id, 'repeated');
  });

  test.each(['insert', 'insertLines', 'complete', 'repeatSame'] as const)(
    'moves its money once, wherever a process ends: at %s',
    async (step) => {
      const bank = await setup();
      const importOnce = () => bank.import(bank.write(bank.behind));
      // Nothing is repeated yet.
      if (step !== 'repeatSame') await killAt(step, 0, importOnce);
      await bank.refused();
      const id = String((await bank.findOwn())[0]?._id);
      await bank.expectAll(id, 'announced');
      await bank.import(bank.late);
      await killAt(step, 0, importOnce);
      await bank.fill();
      await bank.expectAll(id, 'repeated');
    },
  );

  test('is announced with all others of its account in the file, and none that does not add up', async () => {
    const bank = await setup();
    const next = { id: 'S-4', day: '2026-11-21', opening: 755 };
    const write = (closing: number) =>
      camt([bank.behind, { ...next, closing, entries: [{ amount: 5 }] }]);
    const stored = await bank.stored();
    await refuses(bank.import(write(1)), 'sum_mismatch');
    expect(await bank.stored()).toEqual(stored);
    const notification = { id: 'N-1', entries: [{ ...named, amount: 1_000 }] };
    await bank.import(camt([notification], NOTIFICATION));
    await bank.refused(write(760));
    expect(await bank.lines('announced')).toHaveLength(5);
    await bank.import(bank.late);
    expect(await bank.import(write(760))).toMatchObject([{ matched: 1 }, { open: 1 }]);
    expect(await bank.lines('announced')).toEqual([]);
    expect(await bank.balance('cash')).toBe(-760);
  });

  test('is imported once where it comes several times at once with the missing one', async () => {
    const bank = await setup();
    const file = bank.write(bank.behind);
    const importOnce = (bytes: Buffer) => retryTransient(() => bank.import(bytes));
    for (const files of [[file, file, bank.late, file], [file, file], [file]]) {
      await Promise.allSettled(files.map(importOnce));
    }
    await bank.fill();
    expect(await bank.lines('announced')).toEqual([]);
  });
});

describe('the same statement in another message', () => {
  const entries = [
    { amount: 1_000, reference: 'X1', bank_reference: 'B-1' },
    { amount: -70, bank_reference: 'B-2' },
  ];
  const rows = [
    'statement_id,iban,currency,opening,closing,day,amount,value_date,reference,bank_reference',
    `S1,${TEST_IBAN},EUR,0,9.3,${TEST_DAY},10,${TEST_DAY},X1,B-1`,
    `S1,${TEST_IBAN},EUR,0,9.3,${TEST_DAY},-0.7,,,B-2`,
  ];
  test.each<[string, (write: (changes?: CamtStatement) => Buffer) => Buffer | string]>([
    ['with another id and order', (write) => write({ id: 's/1', entries: entries.toReversed() })],
    ['twice', () => camt([{ entries }, { entries, id: 'X' }])],
    ['as CSV', () => rows.join('\n')],
  ])('changes nothing: %s', async (_how, rewrite) => {
    const bank = await openAccount();
    const write = (changes?: CamtStatement) => bank.write({ entries, ...changes });
    const [imported] = await bank.import(write());
    const stored = await bank.stored();
    const again = { ...imported, already_imported: true };
    const found = await bank.import(Buffer.from(rewrite(write)));
    expect(found).toMatchObject(found.map(() => again));
    expect(await bank.stored()).toEqual(stored);
  });

  test('continues an import that was interrupted, unless its lines are in another order', async () => {
    const bank = await openAccount();
    await killAt('complete', 0, () => bank.import(bank.write({ entries })));
    const turned = bank.write({ id: 'X', entries: entries.toReversed() });
    await refuses(bank.import(turned), 'statement_incomplete');
    const row = { statement_id: 'S-1', lines: 2, already_imported: false };
    expect(await bank.import(bank.write({ id: 'X', entries }))).toMatchObject([row]);
    expect(await bank.stored()).toEqual({ statements: 1, lines: 2, entries: 2 });
  });

  test('is another where its id begins again each year, and has a refusal of its own', async () => {
    const bank = await openAccount();
    const write = (day: string, opening: number, closing = opening + 930) =>
      bank.write({ day, opening, closing, sequence: 1, entries });
    await bank.import(write('2025-12-31', 0));
    await refuses(bank.import(write('2026-01-02', 930, 5)), 'sum_mismatch');
    const [row] = await bank.import(write('2026-01-02', 930));
    expect(row).toMatchObject({ day: '2026-01-02', already_imported: false });
    expect(await bank.balance('cash')).toBe(-1_860);
  });

  test('is refused where it has days of another, in words', async () => {
    const bank = await openAccount();
    const write = (from: string, day: string, amounts: number[], opening = 0) => {
      const entries = amounts.map((amount) => ({ amount }));
      return bank.write({ id: `${from}-${day}`, from, day, opening, entries });
    };
    await bank.import(write('2026-11-16', '2026-11-16', [5]));
    await bank.import(write('2026-11-17', '2026-11-17', [7, -7], 5));
    for (const week of [
      write('2026-11-16', '2026-11-20', [5, 7, -7, 1]),
      write('2026-11-14', '2026-11-18', [], 5),
      write('2026-11-14', '2026-11-17', [], 5),
    ]) {
      await refuses(bank.import(week), 'statement_conflict', /has days of statement 2026-11-1[67]/);
    }
    expect(await bank.balance('cash')).toBe(-5);
  });
});

describe('a file of several accounts', () => {
  const third = 'FR1420041010050500013M02606';
  const write = (...statements: CamtStatement[]) =>
    camt(statements.map((each) => ({ id: '2026-324', entries: [{ amount: 25 }], ...each })));
  const openBoth = async () => {
    const bank = await openAccount();
    const importBoth = (file: Buffer) =>
      importStatements(buildDeps(), file, { connector: bank.connector, livemode: false });
    return {
      ...bank,
      importBoth,
      register: (iban = OTHER_IBAN, currency?: string) => bank.register(iban, currency),
    };
  };

  test('has those of unknown ones set aside, and imported once they are registered', async () => {
    const bank = await openBoth();
    const file = write({}, { iban: OTHER_IBAN });
    const first = await bank.importBoth(file);
    const [known, unknown] = [TEST_IBAN, OTHER_IBAN].map((account) => ({ account }));
    expect(first).toMatchObject({
      statements: [{ ...known, already_imported: false }],
      set_aside: [{ ...unknown, statement_id: '2026-324' }],
    });
    await bank.register();
    expect(await bank.importBoth(file)).toMatchObject({
      statements: [
        { ...known, already_imported: true },
        { ...unknown, already_imported: false },
      ],
      set_aside: [],
    });
    const none = bank.importBoth(write({ iban: third }, { iban: 'GB33BUKB20201555555555' }));
    await refuses(none, 'bank_account_unknown');
  });

  test('is imported of no account one of whose statements cannot be read', async () => {
    const bank = await openBoth();
    await bank.register();
    const next = { id: 'S-2', day: '2026-11-21', opening: 25, closing: 51 };
    const file = write({}, next, { iban: OTHER_IBAN }).toString();
    for (const unread of [file, file.replaceAll('<Ccy>EUR</Ccy>', '')]) {
      const wrong = unread.replace('>0.51<', '>0.515<');
      const words = new RegExp(`Of this file, ${OTHER_IBAN} was`);
      await refuses(bank.importBoth(Buffer.from(wrong)), 'file_invalid', words);
      expect(await bank.stored()).toEqual({ statements: 0, lines: 0, entries: 0 });
    }
  });

  test('is imported in the other currencies of an IBAN, unless one that cannot be read has none', async () => {
    const bank = await openBoth();
    for (const currency of ['GBP', 'USD']) await bank.register(TEST_IBAN, currency);
    const last = { currency: 'USD', opening: 25, closing: 51 };
    const wrong = write({}, { currency: 'GBP' }, last).toString().replace('>0.51<', '>0.515<');
    const unnamed = wrong.replaceAll('<Ccy>USD</Ccy>', '');
    const words = new RegExp(`Of this file, ${TEST_IBAN} was`);
    for (const [file, imported] of [
      [unnamed.replaceAll(' Ccy="USD"', ''), /^(?!.*Of this file)/],
      [unnamed, words],
      [wrong, words],
    ] as const) {
      await expect(bank.importBoth(Buffer.from(file))).rejects.toMatchObject({
        message: expect.stringMatching(imported),
      });
    }
    expect(await bank.stored()).toEqual({ statements: 1, lines: 1, entries: 1 });
  });

  test('is imported of each account but the one whose statement is refused', async () => {
    const bank = await openBoth();
    await bank.register();
    const wrong = write({ iban: OTHER_IBAN, closing: 1 }, {});
    const words = new RegExp(`is missing. Of this file, ${TEST_IBAN} was`);
    for (const _ of ['first', 'again']) {
      await refuses(bank.importBoth(wrong), 'sum_mismatch', words);
    }
    expect(await bank.balance('cash')).toBe(-25);
    const right = await bank.importBoth(write({ iban: OTHER_IBAN }));
    expect(right.statements).toMatchObject([{ account: OTHER_IBAN, already_imported: false }]);
  });
});

test('a line that names an entry of about its amount is matched within the tolerance, as a charge', async () => {
  const bank = await openAccount();
  await updateBankAccount(buildDeps(), bank.account._id, { tolerance: 3 });
  const [less, more, far] = [await bank.post(1_000), await bank.post(-500), await bank.post(200)];
  await bank.post(300);
  await bank.import(
    bank.write({
      entries: [
        { ...less, amount: 997 },
        { ...more, amount: -499 },
        { ...far, amount: 196 },
        { amount: 299 },
      ],
    }),
  );
  const open = { status: 'open', entries: [] };
  expect(await bank.lines()).toMatchObject([
    { status: 'matched', entries: [less.entry_id], parts: { clearing: 1_000, bank_fees: -3 } },
    { status: 'matched', entries: [more.entry_id], parts: { clearing: -500, bank_fees: 1 } },
    { ...open, different: far.entry_id },
    { ...open, different: null },
  ]);
  expect(await bank.balance('expense.bank_fees')).toBe(-2);
  await updateBankAccount(buildDeps(), bank.account._id, { tolerance: 4 });
  expect(await bank.reconcile()).toMatchObject({ closed: false, matched: 3 });
  expect(await bank.balance('expense.bank_fees')).toBe(-6);
  expect(await bank.verify()).toEqual([]);
});

test('a line whose text names an entry of another amount matches no entry of its own amount', async () => {
  const bank = await openAccount();
  const { reference } = await bank.post(-1_000);
  const { entry_id } = await bank.post(-990);
  await bank.import(bank.write({ entries: [{ amount: -990, info: `Payout ${reference}` }] }));
  expect(await bank.lines()).toMatchObject([{ status: 'open', entries: [] }]);
  expect(await bank.uncleared()).toContain(entry_id);
});

test('lines that are open for longer than their account allows call an operator until they match', async () => {
  const bank = await openAccount();
  const entries = [
    { amount: 5, bank_reference: 'B-1' },
    { amount: 7, bank_reference: 'B-2', day: '2026-11-19' },
  ];
  await bank.import(bank.write({ from: '2026-11-19', entries }));
  const list = async (day: string) => {
    const now = new Date(`${day}T12:00:00Z`);
    const { rows } = await listAttention(database.stores, { all: true, limit: 100, now });
    const own = rows.filter(({ resource_id }) => resource_id === bank.account._id);
    return own;
  };
  const counted = { resource: 'bank_account', livemode: 'false', reason: 'lines_open' };
  expect(await list('2026-11-24')).toEqual([]);
  const row = { reason: 'lines_open', amount: 7, currency: 'EUR', acknowledged: false };
  expect(await list('2026-11-25')).toMatchObject([{ ...row, remedy: expect.any(String) }]);
  await updateBankAccount(buildDeps(), bank.account._id, { open_days: 0 });
  const [{ id = '', amount } = {}] = await list('2026-11-25');
  expect(amount).toBe(12);
  const { stuck } = await createMetricStore(database.db).read(new Date('2026-11-25T12:00:00Z'));
  expect(stuck).toContainEqual(expect.objectContaining(counted));
  const deps = { ...buildDeps(), now: () => new Date('2026-11-25T12:00:00Z') };
  await refuses(acknowledgeOfBankAccount(deps, id, ACT), 'money_in_suspense');
  await bank.post(5, { bank_reference: 'B-1' });
  await bank.post(7, { bank_reference: 'B-2' });
  expect(await bank.reconcile()).toMatchObject({ closed: true, matched: 2, theirs_only: [] });
  expect(await list('2026-11-25')).toEqual([]);
  const balances = await Promise.all(['clearing', 'suspense.unmatched'].map(bank.balance));
  expect(balances).toEqual([12, 0]);
});

test('a line finds an entry by the name that its movement got later, and takes none of another name', async () => {
  const bank = await openAccount();
  const before = { day: '2026-03-01' };
  const named = await bank.post(1000, before);
  await bank.name(named, 'N-1');
  const answered = await bank.post(500, { ...before, bank_reference: 'answer' });
  await bank.name(answered, 'N-2');
  const other = await bank.post(250);
  await bank.name(other, 'N-3');
  await bank.import(
    bank.write({
      entries: [
        { amount: 1000, bank_reference: 'N-1' },
        { amount: 500, bank_reference: 'answer' },
        { amount: 250, bank_reference: 'N-4' },
      ],
    }),
  );
  expect(await bank.lines()).toMatchObject([
    { status: 'matched', entries: [named.entry_id] },
    { status: 'matched', entries: [answered.entry_id] },
    { status: 'open', entries: [] },
  ]);
});

test('concurrent imports of one file agree, and one of two statements for a day is refused', async () => {
  const bank = await openAccount();
  const posted = [];
  for (let number = 1; number <= 7; number += 1) posted.push(await bank.post(number));
  const many = Array.from({ length: 210 }, () => ({ amount: 3 }));
  const file = bank.write({ entries: [...many, ...posted] });
  const importOnce = (bytes: Buffer) => retryTransient(() => bank.import(bytes));
  const [first, second] = await Promise.all([importOnce(file), importOnce(file)]);
  const row = { lines: 217, matched: 7, open: 210 };
  expect([first, second]).toMatchObject([[row], [row]]);
  expect(await bank.stored()).toEqual({ statements: 1, lines: 217, entries: 217 });
  const sum = 630 + 28;
  const write = (id: string, amount: number) =>
    bank.write({ id, opening: sum, entries: [{ amount }, { amount: 9 - amount }] });
  const results = await Promise.allSettled([write('X', 2), write('Y', 3)].map(importOnce));
  expect(results.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
  const refused = results.find((result) => result.status === 'rejected');
  expect(refused?.reason.code).toMatch(/^statement_(conflict|gap|incomplete)$/);
  expect(await bank.balance('cash')).toBe(-sum - 9);
  expect(await bank.verify()).toEqual([]);
});

test.each(['has begun, and ends at once', 'has begun and ended'])(
  'a statement is incomplete, and fits later, where since its plan the one before it %s',
  async (when) => {
    const bank = await openAccount();
    const first = bank.write({ id: 'S-1', day: '2026-11-19', entries: [{ amount: 5 }] });
    const isBegun = when !== 'has begun and ended';
    const { bankAccounts } = database.stores;
    const { beginImport } = bankAccounts;
    const stop = jest.spyOn(bankAccounts, 'beginImport').mockImplementationOnce(async (...args) => {
      await (isBegun ? killAt('complete', 0, () => bank.import(first)) : bank.import(first));
      return await beginImport(...args);
    });
    stop.mockImplementationOnce(beginImport).mockImplementationOnce(async (...args) => {
      const isFree = await beginImport(...args);
      if (isBegun) await bank.import(first);
      return isFree;
    });
    const next = bank.write({ id: 'S-2', opening: 5 });
    await refuses(bank.import(next), 'statement_incomplete');
    stop.mockRestore();
    expect(await bank.import(next)).toMatchObject([{ already_imported: false }]);
  },
);

test('an import that stops at any write continues, and stores nothing twice', async () => {
  const bank = await openAccount();
  const posted = [];
  for (let number = 1; number <= 5; number += 1) posted.push(await bank.post(100 + number));
  const many = Array.from({ length: 700 }, () => ({ amount: 3 }));
  const file = bank.write({ opening: 9, entries: [...posted, ...many, ...posted] });
  const other = bank.write({ id: 'S-2', opening: 9 });
  const steps = [
    ['insert', 0],
    ['insertLines', 0],
    ['insertLines', 2],
    ['complete', 0],
    ['ofAccount', 0],
  ] as const;
  for (const [step, skipped] of steps) {
    await killAt(step, skipped, () => bank.import(file));
    if (step === 'insertLines') {
      await refuses(bank.import(other), 'statement_incomplete');
      expect(await bank.reconcile()).toMatchObject({ day: null, matched: 0 });
    }
  }
  expect(await bank.import(file)).toMatchObject([{ lines: 710, matched: 5, open: 705 }]);
  expect(await bank.stored()).toEqual({ statements: 1, lines: 710, entries: 711 });
  expect(await bank.uncleared()).toEqual([]);
  expect(await bank.verify()).toEqual([]);
});

test('each of eight kinds of difference is reported, and nothing else', async () => {
  const bank = await openAccount();
  const good = [];
  for (let number = 1; number <= 5; number += 1) {
    good.push({ ...(await bank.post(number * 111)), bank_reference: `B-${number}` });
  }
  const missing = await bank.post(2_001);
  const less = await bank.post(3_000);
  const twice = { ...(await bank.post(4_000)), bank_reference: 'B-4000' };
  const turned = await bank.post(5_000);
  const wrongBank = await bank.post(6_000, { bank_reference: 'B-6000' });
  const [one, other] = [await bank.post(7_000), await bank.post(7_000)];
  const late = await bank.post(8_000, { day: '2026-11-21' });
  const [shown] = await bank.import(
    bank.write({
      entries: [
        ...good,
        // Ours alone: `missing`. Theirs alone, of an amount that `missing` does not have:
        { amount: 2_002, reference: 'A-STRANGER', bank_reference: 'B-2002' },
        { ...less, amount: 2_999 },
        ...[twice, twice],
        // The bank took what it should have given.
        { ...turned, amount: -5_000 },
        // The amount of an entry to which the bank gave another reference.
        { amount: 6_000, bank_reference: 'B-6001' },
        // One of two entries of the same amount and day.
        { amount: 7_000 },
        // Booked although ours comes a day later.
        { amount: 8_000 },
      ],
    }),
  );
  const line = (number: number) => `${shown?.id}:${number}`;
  const day = await bank.reconcile();
  expect(day).toMatchObject({ day: TEST_DAY, closed: false, matched: 6, findings: [] });
  expect(day.different.map((each) => [each.line.id, each.entry.entry_id])).toEqual([
    [line(7), less.entry_id],
  ]);
  expect(new Set(listIds(day.theirs_only))).toEqual(new Set([6, 9, 10, 11, 12, 13].map(line)));
  expect(new Set(listEntryIds(day.ours_only))).toEqual(
    new Set([missing, turned, wrongBank, one, other].map(({ entry_id }) => entry_id)),
  );
  expect(await bank.uncleared()).toContain(late.entry_id);
  const open = 2_002 + 2_999 + 4_000 - 5_000 + 6_000 + 7_000 + 8_000;
  expect(await bank.balance('suspense.unmatched')).toBe(open);
  expect(await bank.verify()).toEqual([]);
});

describe('entries that cancel each other without a movement at the bank', () => {
  const clear = (ids: string[]) =>
    clearEntries(buildDeps(), ids, {
      ...{ operator: 'mia', reason: 'It never left', verified: undefined },
      limits: readApprovalLimits(),
    });

  test('are cleared together by an operator, so that their day closes', async () => {
    const bank = await openAccount();
    const [sent, back] = [await bank.post(-1_000), await bank.post(1_000)];
    const ids = [sent.entry_id, back.entry_id];
    await bank.import(bank.write({}));
    expect(await bank.reconcile()).toMatchObject({ closed: false });
    expect(await clear(ids)).toMatchObject(ids.map((entry_id) => ({ entry_id })));
    expect(await bank.uncleared()).toEqual([]);
    expect(await bank.reconcile()).toMatchObject({ closed: true, ours_only: [] });
    const own = (await listFindings()).filter(({ message }) => message.startsWith(bank.connector));
    expect(own).toEqual([]);
    const line = await database.db.collection('audit_log').findOne({ act: 'statement.cleared' });
    const after = { entries: ids, operator: 'mia', reason: 'It never left' };
    expect(line).toMatchObject({ after });
    await refuses(clear(ids), 'entry_not_open');
  });

  test('must sum to zero, be of one bank, and wait for a line; else all stay', async () => {
    const [bank, other] = [await openAccount(), await openAccount()];
    const [one, two] = [await bank.post(1_000), await bank.post(-999)];
    const [foreign, matched] = [await other.post(-1_000), await bank.post(-1_000)];
    await bank.import(bank.write({ entries: [{ ...matched }] }));
    const refused = (...ids: string[]) =>
      clear([one.entry_id, ...ids]).catch(({ code, message }) => `${code}: ${message}`);
    expect(await refused(two.entry_id)).toMatch(/^amounts_differ: .* sum to €0\.01: /);
    expect(await refused(foreign.entry_id)).toContain('entries_differ: The entries must be of one');
    expect(await refused(matched.entry_id)).toContain(`entry_not_open: ${matched.entry_id} does`);
    expect(await refused('payout_captured:none')).toContain('entry_not_found: There is no entry');
    expect(await bank.uncleared()).toEqual([two.entry_id, one.entry_id]);
  });
});

test('an entry is shown on the first open day that it belongs to, and on no other', async () => {
  const bank = await openAccount();
  const [first, second] = [await bank.post(1, { day: '2026-11-18' }), await bank.post(2)];
  await bank.import(bank.write({ id: 'S-1', day: '2026-11-18' }));
  await bank.import(bank.write({ id: 'S-2' }));
  const [early, latest] = [await bank.reconcile('2026-11-18'), await bank.reconcile()];
  const { entry_id } = first;
  expect(early.ours_only).toMatchObject([{ entry_id, amount: 1, day: '2026-11-18', age_days: 2 }]);
  expect(listEntryIds(latest.ours_only)).toEqual([second.entry_id]);
  expect(await bank.reconcile('2026-11-10')).toMatchObject({ day: '2026-11-10', ours_only: [] });
});

describe('the numbers of statements', () => {
  const setup = async (numbering?: 'continuous' | 'yearly') => {
    const bank = await openAccount();
    if (numbering !== undefined)
      await updateBankAccount(buildDeps(), bank.account._id, { numbering });
    let opening = 0;
    const next = async (sequence: number, day: string, amount = 0) => {
      const entries = amount === 0 ? [] : [{ amount, code: 'PMNT.MDOP.CHRG' }];
      const file = bank.write({ id: `S-${day}-${sequence}`, sequence, day, opening, entries });
      const imported = await bank.import(file);
      opening += amount;
      return imported;
    };
    /** Writes one of an earlier day. */
    const late = (sequence: number, opening: number, amount: number) => {
      const entries = [{ amount, code: 'PMNT.MDOP.CHRG' }];
      return bank.write({ id: `L-${sequence}`, sequence, day: '2026-11-17', opening, entries });
    };
    const listReasons = async () =>
      (
        await listAttention(database.stores, { all: false, limit: 100, now: buildDeps().now() })
      ).rows
        .filter(({ resource_id }) => resource_id === bank.account._id)
        .map(({ id, reason }) => ({ id, reason }));
    const acknowledge = async () => {
      const [{ id = '' } = {}] = await listReasons();
      return await acknowledgeOfBankAccount(buildDeps(), id, ACT);
    };
    return { ...bank, next, late, listReasons, acknowledge };
  };
  const missing = { code: 'statement_missing', amount: 0, currency: 'EUR' };

  test('jump over missing statements, whose day stays open until all have come', async () => {
    const bank = await setup('continuous');
    await bank.next(201, '2026-11-16', 100);
    const [jumped] = await bank.next(204, '2026-11-18');
    const message = expect.stringMatching(/number 204 .* follows number 201 /);
    const finding = { ...missing, message, ids: [jumped?.id] };
    expect(await bank.reconcile()).toMatchObject({ closed: false, findings: [finding] });
    expect(await bank.listReasons()).toMatchObject([{ reason: 'statement_missing' }]);
    const found = (await listFindings()).filter(({ code }) => code === 'statement_missing');
    expect(found.flatMap(({ ids }) => ids)).toContain(jumped?.id);
    const { late } = bank;
    for (const wrong of [late(203, 150, 50), late(202, 99, 50)]) {
      const message = expect.stringMatching(/Number 202 is missing/);
      await expect(bank.import(wrong)).rejects.toMatchObject({ code: 'statement_gap', message });
    }
    await bank.import(late(202, 100, 50));
    await refuses(bank.acknowledge(), 'statement_missing');
    await bank.import(late(203, 150, -50));
    expect(await bank.reconcile()).toMatchObject({ day: '2026-11-18', closed: true, findings: [] });
    expect(await bank.reconcile('2026-11-17')).toMatchObject({ closed: true, closing: 100 });
    expect(await bank.listReasons()).toEqual([]);
    expect(await bank.next(205, '2026-11-19')).toMatchObject([{ already_imported: false }]);
    expect(await bank.reconcile()).toMatchObject({ closed: true, findings: [] });
    expect(await bank.verify()).toEqual([]);
  });

  test('fill a gap in any order, also one of which an operator says that the bank has none', async () => {
    const bank = await setup('continuous');
    await bank.next(1, '2026-11-16');
    await bank.next(6, '2026-11-17');
    const { acknowledge, late } = bank;
    const done = { reason: 'statement_missing', resource_id: bank.account._id };
    expect(await acknowledge()).toMatchObject(done);
    const { stores } = database;
    expect(await stores.statements.closedUntil(bank.account._id)).toBe('2026-11-17');
    expect(await bank.reconcile()).toMatchObject({ closed: true, findings: [] });
    await bank.import(late(4, 0, 0));
    expect(await bank.listReasons()).toEqual([]);
    await bank.import(late(3, 70, -70));
    // Number 2 has to exist: it leads from 0 to 70.
    expect(await bank.listReasons()).toMatchObject([{ reason: 'statement_missing' }]);
    await refuses(acknowledge(), 'statement_missing');
    await refuses(bank.import(late(2, 0, 60)), 'statement_gap');
    await bank.import(late(2, 0, 70));
    expect(await bank.listReasons()).toEqual([]);
    expect(await bank.reconcile()).toMatchObject({ closed: true, findings: [] });
    expect(await bank.verify()).toEqual([]);
  });

  test('fill a gap by one file of all that are missing, which lead from each to the next', async () => {
    const bank = await setup('continuous');
    await bank.next(201, '2026-11-16', 100);
    await bank.next(204, '2026-11-18');
    const write = (...statements: [sequence: number, opening: number, amount: number][]) =>
      camt(
        statements.map(([sequence, opening, amount]) => {
          const entries = [{ amount, code: 'PMNT.MDOP.CHRG' }];
          return { id: `L-${sequence}`, sequence, day: '2026-11-17', opening, entries };
        }),
      );
    await refuses(bank.import(write([202, 100, 50], [203, 151, -51])), 'statement_gap');
    await bank.import(write([202, 100, 50], [203, 150, -50]));
    expect(await bank.listReasons()).toEqual([]);
    expect(await bank.reconcile()).toMatchObject({ day: '2026-11-18', closed: true, findings: [] });
    expect(await bank.verify()).toEqual([]);
  });

  test('fill a gap by two files, one of which is imported after the plan of the other', async () => {
    const bank = await setup('continuous');
    await bank.next(201, '2026-11-16', 100);
    await bank.next(204, '2026-11-18');
    const { statements } = database.stores;
    const { listMissing } = statements;
    const stop = jest.spyOn(statements, 'listMissing').mockImplementationOnce(async (id) => {
      const planned = await listMissing(id);
      await bank.import(bank.late(202, 100, 50));
      return planned;
    });
    await bank.import(bank.late(203, 150, -50));
    stop.mockRestore();
    expect(await bank.listReasons()).toEqual([]);
    expect(await bank.reconcile()).toMatchObject({ day: '2026-11-18', closed: true, findings: [] });
    expect(await bank.verify()).toEqual([]);
  });

  test('follow on where all statements of a day have one id, also after a late one', async () => {
    const bank = await setup('continuous');
    const rows = ['7 0 5', '8 5 5', '11 10 5', '9 10 3', '10 13 -3', '12 15 5'];
    for (const row of rows) {
      const [sequence, opening, amount = 0] = row.split(' ').map(Number);
      const entries = [{ amount, code: 'PMNT.MDOP.CHRG' }];
      await bank.import(bank.write({ sequence, opening, entries }));
    }
    const shown = { closed: true, opening: 0, closing: 20, findings: [] };
    expect(await bank.reconcile()).toMatchObject(shown);
  });

  const DAYS = ['16', '17', '18', '19', '20'].map((day) => `2026-11-${day}`);
  test.each<[string, [number, string][], string, boolean]>([
    ['continuous', DAYS.map((day, index) => [index + 7, day]), 'continuous', true],
    [
      'yearly',
      [
        [9, '2025-12-30'],
        [10, '2025-12-31'],
        ...DAYS.slice(2).map((day, index): [number, string] => [index + 1, day]),
      ],
      'yearly',
      true,
    ],
    ['none', DAYS.map((day) => [7, day]), 'none', false],
  ])('are learned from five statements: %s', async (_name, five, as, isFound) => {
    const bank = await setup();
    for (const [sequence, day] of five) await bank.next(sequence, day);
    const account = await database.stores.bankAccounts.get(bank.account._id);
    expect(account?.numbering).toEqual({ as, learned: true });
    await bank.next(40, '2026-11-21');
    expect((await bank.reconcile()).findings).toMatchObject(isFound ? [missing] : []);
  });

  test('that were learned may begin again at 1 in a new year, and a year that begins at 2 lacks a statement', async () => {
    const bank = await setup();
    for (const [index, day] of DAYS.entries()) await bank.next(index + 7, day);
    await bank.next(1, '2027-01-02');
    await bank.next(2, '2027-01-03');
    expect((await bank.reconcile()).findings).toEqual([]);
    await bank.next(2, '2028-01-03');
    const message = expect.stringMatching(/number 2 .* follows number 2 /);
    expect((await bank.reconcile()).findings).toMatchObject([{ ...missing, message }]);
  });
});

test('an interrupted import is given up, and the account takes its statements again', async () => {
  const bank = await openAccount();
  const [first, announced] = [await bank.post(500), await bank.post(7, { bank_reference: 'N' })];
  const named = { ...announced, bank_reference: 'N' };
  const [{ id: notified = '' } = {}] = await bank.import(
    bank.write({ id: 'N-1', entries: [named] }, NOTIFICATION),
  );
  const many = Array.from({ length: 210 }, () => ({ amount: 3 }));
  const lost = bank.write({ opening: 9, entries: [first, named, ...many] });
  await killAt('complete', 0, () => bank.import(lost));
  const other = bank.write({ opening: 20, entries: [first] });
  await refuses(bank.import(other), 'statement_conflict');
  const line = (await bank.lines()).find(({ statement }) => statement !== notified);
  const abandoned = await abandonStatement(buildDeps(), String(line?.['statement']), ACT);
  expect(abandoned).toMatchObject({ abandoned_at: expect.any(String), completed_at: null });
  expect(await abandonStatement(buildDeps(), abandoned._id, ACT)).toEqual(abandoned);
  const accounts = ['cash', 'clearing', 'suspense.unmatched', 'external.opening'];
  expect(await Promise.all(accounts.map(bank.balance))).toEqual([0, 0, 0, 0]);
  expect(await bank.uncleared()).toEqual([announced.entry_id, first.entry_id]);
  expect((await bank.lines()).filter(({ status }) => status === 'announced')).toHaveLength(1);
  const [imported] = await bank.import(other);
  expect(imported).toMatchObject({ lines: 1, matched: 1 });
  expect(await bank.balance('cash')).toBe(-520);
  const complete = abandonStatement(buildDeps(), imported?.id ?? '', ACT);
  await refuses(complete, 'statement_complete');
  expect(await bank.verify()).toEqual([]);
});

test.each([
  ['parts of which the statement has one', [30, 20], [30], [20]],
  ['two parts of one amount', [30, 30], [30], [30]],
  ['parts that the statement has as one sum', [30, 20], [50], []],
  ['a part with another amount in the statement', [30], [31], [30]],
])('a notification announces %s', async (_name, announced, stated, left) => {
  const bank = await openAccount();
  const toEntry = (amount: number) => ({ amount, bank_reference: 'BATCH' });
  const notify = (id: string, ...more: CamtEntry[]) =>
    bank.import(bank.write({ id, entries: [...announced.map(toEntry), ...more] }, NOTIFICATION));
  await notify('N-1');
  await bank.import(bank.write({ entries: stated.map(toEntry) }));
  await notify('N-2', { amount: 1, bank_reference: 'OTHER' });
  const waiting = (await bank.lines()).filter(({ status }) => status === 'announced');
  const amounts = waiting.map(({ amount }) => amount).sort();
  expect(amounts).toEqual([...left, ...left, 1].sort());
});

test('a notification changes no balance, and is reported if no statement repeats it in 5 days', async () => {
  const bank = await openAccount();
  const posted = await bank.post(1_000, { bank_reference: 'B-1' });
  const announced = [
    { ...posted, bank_reference: 'B-1' },
    { amount: 77, bank_reference: 'B-2', day: '2026-11-15' },
    { amount: 78, bank_reference: 'B-3', day: '2026-11-14' },
  ];
  const file = bank.write({ id: 'N-1', entries: announced }, NOTIFICATION);
  expect(await bank.import(file)).toMatchObject([
    { kind: 'notification', lines: 3, matched: 0, open: 3 },
  ]);
  expect(await bank.import(file)).toMatchObject([{ already_imported: true }]);
  expect(await bank.balance('cash')).toBe(0);
  expect(await bank.uncleared()).toEqual([posted.entry_id]);
  const entries = [{ amount: 1_000, bank_reference: 'B-1' }];
  expect(await bank.import(bank.write({ entries }))).toMatchObject([{ lines: 1, matched: 1 }]);
  expect(await bank.reconcile()).toMatchObject({
    ...{ closed: true, matched: 1, theirs_only: [] },
    findings: [{ code: 'not_repeated', amount: 78, currency: 'EUR', ids: [expect.any(String)] }],
  });
  const { db, stores } = database;
  const notRepeated = (await listFindings()).filter(({ code }) => code === 'not_repeated');
  expect(notRepeated).toMatchObject([{ amount: 78n, currency: 'EUR', ids: [expect.any(String)] }]);
  const statuses = (await bank.lines()).map(({ status }) => status).sort();
  expect(statuses).toEqual(['announced', 'announced', 'matched', 'repeated']);

  const resource_id = bank.account._id;
  const list = async (all: boolean) =>
    (await listAttention(stores, { all, limit: 100, now: buildDeps().now() })).rows.filter(
      (each) => each.resource_id === resource_id,
    );
  const id = `bank_account:${resource_id}:${Date.parse('2026-11-20')}`;
  const row = { id, reason: 'not_repeated', amount: 78, currency: 'EUR', acknowledged: false };
  expect(await list(false)).toMatchObject([row]);
  const counted = { resource: 'bank_account', livemode: 'false', reason: 'not_repeated' };
  const { stuck } = await createMetricStore(db).read(buildDeps().now());
  expect(stuck).toContainEqual(expect.objectContaining(counted));
  for (const _ of ['first', 'repeat']) await acknowledgeOfBankAccount(buildDeps(), id, ACT);
  expect(await list(false)).toEqual([]);
  expect(await list(true)).toMatchObject([{ ...row, acknowledged: true }]);
});

test('charges above the limit of a live bank account stay open until the limit is free again', async () => {
  const bank = await openAccount('GBP', true);
  const paid = await bank.post(900);
  const charge = (amount: number) => ({ amount, code: 'PMNT.MDOP.CHRG' });
  const less = { ...paid, amount: 895, bank_reference: 'B-1', more: CHARGED };
  const entries = [charge(-60_000), charge(-40_001), less, charge(39_995), charge(-1)];
  await bank.import(bank.write({ opening: 100_000, entries }));
  const read = async () => (await bank.lines()).map(({ status, different }) => [status, different]);
  const open = ['open', null];
  const booked = ['booked', null];
  const matched = ['matched', null];
  expect(await read()).toEqual([booked, open, matched, booked, open]);
  expect(await bank.balance('expense.bank_fees')).toBe(-20_010);
  await bank.post(77);
  await bank.reconcile();
  expect(await read()).toEqual([booked, open, matched, booked, open]);
  const later = { ...buildDeps(), now: () => new Date(Date.parse(TEST_DAY) + 3 * 86_400_000) };
  await reconcileAccounts(later, { connector: bank.connector, livemode: true });
  expect(await read()).toEqual([booked, booked, matched, booked, booked]);
  expect(await bank.verify()).toEqual([]);
});

describe('an operator', () => {
  const setup = async () => {
    const bank = await openAccount();
    const posted = [await bank.post(700), await bank.post(290)];
    await bank.import(bank.write({ entries: [{ amount: 1_000, reference: 'X' }] }));
    const [line] = await bank.lines();
    if (line === undefined) throw new Error('no line');
    const entries = posted.map(({ entry_id }) => entry_id);
    return { bank, id: String(line._id), entries };
  };

  test('matches a line with entries, books the difference, and unmatches it', async () => {
    const { bank, id, entries } = await setup();
    const deps = buildDeps();
    const refused = matchByHand(deps, id, { entries });
    const message = expect.stringMatching(/has €10.00, and the entries €9.90: €0.10 differ/);
    await expect(refused).rejects.toMatchObject({ code: 'amounts_differ', message });
    const fees = { entries, difference_to: 'expense.bank_fees' } as const;
    expect(await matchByHand(deps, id, fees)).toMatchObject({ status: 'matched', entries });
    expect(await bank.balance('expense.bank_fees')).toBe(10);
    expect(await bank.proved()).toBe(TEST_DAY);
    expect(await bank.reconcile()).toMatchObject({ closed: true, matched: 1 });
    await refuses(matchByHand(deps, id, fees), 'line_not_open');

    expect(await unmatchByHand(deps, id, {})).toMatchObject({ status: 'open', entries: [] });
    expect(await bank.balance('suspense.unmatched')).toBe(1_000);
    const fitting = await bank.post(1_000);
    // The operator's decision stands: nothing matches it again by itself.
    expect(await bank.reconcile()).toMatchObject({ closed: false, theirs_only: [{ id }] });
    const rest = { entries, difference_to: 'suspense.unmatched' } as const;
    expect(await matchByHand(deps, id, rest)).toMatchObject({ status: 'matched' });
    expect(await bank.balance('suspense.unmatched')).toBe(10);
    await unmatchByHand(deps, id, {});
    await matchByHand(deps, id, { entries: [fitting.entry_id] });
    const balances = await Promise.all(['clearing', 'suspense.unmatched'].map(bank.balance));
    expect(balances).toEqual([1_000, 0]);
    expect(await bank.verify()).toEqual([]);
  });

  test('cannot match an entry twice or of another account, nor a line that does not exist', async () => {
    const { bank, id, entries } = await setup();
    const { id: other } = await setup();
    const deps = buildDeps();
    const match = (line: string, ...names: string[]) =>
      matchByHand(deps, line, { entries: names, difference_to: 'expense.bank_fees' });
    await refuses(match(other, ...entries), 'entry_not_found');
    await refuses(match('st_none:1'), 'line_not_found');
    await refuses(unmatchByHand(deps, id, {}), 'line_not_matched');
    const added = [{ amount: 9, reference: 'Y' }];
    await bank.import(bank.write({ id: 'S-2', opening: 1_000, entries: added }));
    const [, second] = await bank.lines();
    const [first = ''] = entries;
    const both = await Promise.allSettled([match(id, first), match(String(second?._id), first)]);
    expect(both.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
    expect(await bank.uncleared()).toEqual(entries.slice(1));
  });

  test('needs a second one for charges whose sum on live is above the limit', async () => {
    const bank = await openAccount('CHF', true);
    const entries = [60_000, 60_001, -40_000].map((amount) => ({ amount, reference: 'X' }));
    await bank.import(bank.write({ entries }));
    const ids = (await bank.lines()).map(({ _id }) => String(_id));
    const deps = { ...buildDeps(), openActDeps: () => Promise.reject(new Error('no resource')) };
    const charge = { entries: [], difference_to: DIFFERENCE_ACCOUNTS[0] };
    const unsigned = matchByHand(deps, ids[0] ?? '', charge);
    await refuses(unsigned, 'operator_required');
    const match = async (id = '') => {
      const signed = { ...charge, operator: 'tom', reason: 'Ticket 42' };
      const verified = { operator_id: 'op_tom', name: 'tom', role: 'operator' } as const;
      return await matchByHand(deps, id, signed, { verified, limits: readApprovalLimits() });
    };
    expect(await match(ids[0])).toMatchObject({ status: 'booked' });
    const answered = await match(ids[1]);
    expect(answered).toMatchObject({ status: 'approval_required' });
    expect(await match(ids[1])).toEqual(answered);
    expect(await match(ids[2])).toMatchObject({ status: 'booked' });
    expect(await bank.balance('expense.bank_fees')).toBe(20_000);
    const operator = { operator_id: 'op_bo', name: 'bo', role: 'approver' } as const;
    const { approval_id = '' } = { approval_id: undefined, ...answered };
    const routes = { liveConnectors: '', sandboxConnectors: '' };
    const approving = { ...deps, ...routes, database: database.db.databaseName };
    const { approval } = await approve(approving, approval_id, { operator, reason: 'Seen' });
    const account_id = bank.account._id;
    expect(approval).toMatchObject({ state: 'done', amount: '60001', account_id });
    expect(await bank.balance('expense.bank_fees')).toBe(80_001);
    const after = { status: 'booked', operator: 'tom', approved_by: 'bo', approval_id };
    const audited = await database.db.collection('audit_log').findOne({ target: ids[1] });
    const before = { status: 'open', entries: [] };
    expect(audited).toMatchObject({ act: 'statement.matched', livemode: true, before, after });
  });

  test.each([
    ['that are paid in with a line that is paid out', [1_000], -1_000],
    ['that cancel each other, and charges no line to the bank by them', [1_000, -1_000], -700],
  ])('matches no entries %s', async (_what, posted, amount) => {
    const bank = await openAccount();
    const entries: string[] = [];
    for (const each of posted) entries.push((await bank.post(each)).entry_id);
    await bank.import(bank.write({ entries: [{ amount, reference: 'X' }] }));
    const [line] = await bank.lines();
    for (const difference_to of DIFFERENCE_ACCOUNTS) {
      const refused = matchByHand(buildDeps(), String(line?._id), { entries, difference_to });
      await refuses(refused, 'amounts_differ');
    }
    expect((await bank.uncleared()).sort()).toEqual(entries.toSorted());
  });
});

describe('money that an operator posts for a bank', () => {
  const wire = { amount: 1000, bank_reference: 'W-1' };

  test.each([
    ['fund', 'adjust'],
    ['adjust', 'fund'],
    ['fund', 'fund'],
  ] as const)('is posted once for its bank reference (%s, then %s)', async (first, second) => {
    const bank = await openAccount('EUR', true);
    await bank[first](1000, 'W-1');
    const message = expect.stringContaining('W-1 of bank_');
    const refused = { code: 'bank_reference_used', message };
    await expect(bank[second](1000, 'W-1')).rejects.toMatchObject(refused);
    await bank.import(bank.write({ entries: [wire] }));
    await expect(bank[second](10, 'W-1')).rejects.toMatchObject(refused);
    expect(await bank.reconcile()).toMatchObject({ closed: true, ours_only: [], theirs_only: [] });
    expect(await bank.credited()).toBe(1000);
  });

  test('is one movement, which a statement line names where the operator did not', async () => {
    const bank = await openAccount('EUR', true);
    const { operation_id } = await bank.fund(1000);
    const [act] = await bank.movements();
    expect(act).toMatchObject({
      ...{ names: [`act:${operation_id}`], direction: 'in', amount: 1000, state: 'applied' },
      ...{ resource: null, resource_id: null, entry: operation_id },
      sources: [{ kind: 'act', id: operation_id }],
    });
    await bank.import(bank.write({ entries: [wire] }));
    const [line] = await bank.lines();
    const source = { kind: 'statement', id: line?._id, at: expect.any(String) };
    const named = { bank_reference: 'W-1', names: ['W-1', `act:${operation_id}`] };
    const sources = [...(act?.sources ?? []), source];
    expect(await bank.movements()).toEqual([{ ...act, ...named, sources }]);
    await refuses(bank.adjust(1000, 'W-1'), 'bank_reference_used');
  });

  test('corrects another amount only by the difference that a statement shows', async () => {
    const bank = await openAccount();
    await bank.fund(1000, 'W-1');
    await bank.import(bank.write({ entries: [{ ...wire, amount: 1010 }] }));
    await refuses(bank.adjust(11, 'W-1'), 'bank_reference_used');
    await bank.adjust(10, 'W-1');
    expect(await bank.reconcile()).toMatchObject({ closed: true, matched: 1 });
    expect(await bank.credited()).toBe(1010);
  });

  test('frees its reference once it is reversed, unless a line has matched it', async () => {
    const bank = await openAccount();
    const mistake = await bank.fund(1000, 'W-1');
    await bank.reverse(mistake.operation_id);
    expect(await bank.movements()).toMatchObject([
      { state: 'resolved', resolutions: [{ as: 'never_happened', operator: 'mia' }] },
    ]);
    expect(await bank.uncleared()).toEqual([]);
    const { operation_id } = await bank.fund(1000, 'W-1');
    await bank.import(bank.write({ entries: [wire] }));
    await bank.reverse(operation_id);
    await refuses(bank.fund(1000, 'W-1'), 'bank_reference_used');
    expect(await bank.uncleared()).toEqual([`reversed:${operation_id}`]);
  });

  test('is one movement where operators post it at once, also for several merchants', async () => {
    const bank = await openAccount();
    const fund = (account_id: string) => bank.fund(1000, 'W-1', { account_id });
    const merchants = [1, 2, 3, 4].map((n) => `acct_${n}_${bank.connector}`);
    const all = await Promise.allSettled([...merchants.map(fund), bank.adjust(1000, 'W-1')]);
    const refused = all.flatMap((each) => (each.status === 'rejected' ? [each.reason] : []));
    expect(refused).toHaveLength(4);
    for (const error of refused) expect(error).toMatchObject({ code: 'bank_reference_used' });
    expect(await bank.movements()).toHaveLength(1);
  });
});

describe('a statement that a connector makes', () => {
  const makeDay = async (
    { account, connector }: Awaited<ReturnType<typeof openAccount>>,
    moved: readonly { bank_reference: string; amount: number; fee: number }[],
  ) => {
    const { iban, currency } = account;
    const lines = moved.map((line) => ({ ...line, kind: 'charge', is_fee: false }));
    const closing = lines.reduce((sum, { amount, fee }) => sum + amount - fee, 0);
    const day = { account: iban, currency, day: TEST_DAY, opening: 0, closing, lines };
    const made = { _id: `${iban} ${TEST_DAY}`, ...day, is_proved: true, made_at: TEST_DAY };
    await openMadeStatements(database.stores.statements.openConnectorDb(connector)).insertOne(made);
  };

  test('books a fee next to an amount, which no limit holds up to a tenth of it', async () => {
    const bank = await openAccount('EUR', true);
    await bank.post(10_000_000, { bank_reference: 'txn_1' });
    await bank.post(3_000_000, { bank_reference: 'txn_2' });
    await makeDay(bank, [
      { bank_reference: 'txn_1', amount: 10_000_000, fee: 150_000 },
      { bank_reference: 'txn_2', amount: 3_000_000, fee: 310_000 },
    ]);
    const source = { connector: bank.connector, livemode: true };
    const { statements } = await importMade(buildDeps(), source);
    expect(statements).toMatchObject([{ lines: 2, matched: 1, open: 1 }]);
    expect(await bank.balance('expense.bank_fees')).toBe(-150_000);
  });
});

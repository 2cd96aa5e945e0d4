import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import type { ClientSession, Collection, Db, Document, MongoClient } from 'mongodb';
import { Contention, connectMongo, inTransaction, isDuplicateKey } from '../../src/base/mongo';
import { sandboxIban } from '../../src/domain/banks/sandbox';
import { omitUndefined } from '../../src/domain/defined';
import type { PayoutStatus } from '../../src/domain/payout/payout';
import { createLedgerStore } from '../../src/ledger/book';
import {
  type EntryKind,
  type EntryLine,
  type NewEntry,
  operationId,
} from '../../src/ledger/entries';
import { ENTRY_LINES } from '../../src/ledger/entry-lines';
import { toBigInt } from '../../src/ledger/ledger-accounts';
import { InsufficientBalance } from '../../src/ledger/locks';
import { readTrialBalance } from '../../src/ledger-check/trial-balance';
import { verifyLedger } from '../../src/ledger-check/verify';
import {
  createMovementStore,
  type MovementDocument,
  sandboxBankDatabase,
} from '../../src/service/banks/sandbox';
import { writeDayStatements } from '../../src/service/banks/sandbox-bank/statements';
import { importStatementPath } from '../../src/service/banks/statements/import';
import { reconcileAccounts } from '../../src/service/banks/statements/reconciliation';
import type { Stores } from '../../src/store';
import { operatorsAudit } from '../support/audit';
import { retryUntilDone } from '../support/eventually';
import { useFixture } from '../support/fixture';
import { useProcesses, type WorkerProcess } from '../support/processes';
import { openRecords, type PayoutFacts, payoutFacts, type Records } from '../support/records';
import { mongodbUri } from '../support/servers';
import { expectWholeBook } from './whole-books';
import { createWorld, LATE, OPERATIONS, PAYMENTS, REFUNDS, type Step } from './wrong-money-world';

/**
 * Programs of random steps hold that the books stay whole in any order: steps of one batch run at
 * once, each perhaps twice. A program that fails is reported whole: to make it smaller would take
 * minutes.
 */
const processes = useProcesses();
/** Commands of operators, and what looks at the books, on the same database. */
const records = useFixture(
  () => openRecords(undefined, processes.left.records.db.databaseName),
  ({ close }) => close(),
);

jest.setTimeout(600_000);

const index = (length: number) => fc.nat({ max: length - 1 });
const kind = <K extends string>(name: K) => fc.constant(name);
const pickFrom = <K extends string>(...names: K[]) => fc.constantFrom(...names);
const often = <T>(weight: number, arbitrary: fc.Arbitrary<T>) => ({ weight, arbitrary });
const buildProgram = <T>(step: fc.Arbitrary<T>, least: number, most: number) =>
  fc.array(fc.array(step, { minLength: 1, maxLength: 4 }), { minLength: least, maxLength: most });

/** Runs programs, each for a merchant of its own, and looks at its books after each batch. */
async function holdAlways<T>(
  program: fc.Arbitrary<T[][]>,
  numRuns: number,
  open: () => Promise<{
    run: (step: T, isAlone: boolean) => Promise<unknown>;
    look: () => unknown;
  }>,
  examples: [T[][]][] = [],
): Promise<void> {
  await fc.assert(
    fc.asyncProperty(program, async (batches) => {
      const { run, look } = await open();
      for (const batch of batches) {
        await Promise.all(batch.map((step) => run(step, batch.length === 1)));
        await look();
      }
    }),
    { numRuns, examples, endOnFailure: true },
  );
}

describe('money of payments', () => {
  const amount = fc.integer({ min: 1, max: 1_100 });
  const fee = fc.integer({ min: 0, max: 999 });
  const settling = fc.record({ kind: kind('settle'), payment: index(PAYMENTS), fee });
  const of = { payment: index(PAYMENTS) };
  const take = { refund: index(REFUNDS), amount: fc.option(amount, { freq: 4 }) };
  const refunding = fc.record({ kind: kind('refund'), ...of, ...take });
  const to = pickFrom('settled', 'failed');
  const reporting = fc.record({ kind: kind('report'), refund: index(REFUNDS), to });
  const disputed = pickFrom('dispute_opened', 'dispute_won', 'dispute_lost');
  const taken = fc.integer({ min: 1, max: 600 });
  const operation = { operation: index(OPERATIONS) };
  const late = { late: index(LATE) };
  const step: fc.Arbitrary<Step> = fc.oneof(
    often(3, settling),
    often(3, refunding),
    reporting,
    fc.record({ kind: kind('dispute'), ...of }),
    often(2, fc.record({ kind: kind('claw_back'), ...of, operator: index(2) })),
    often(2, fc.record({ kind: disputed, amount: taken, ...of })),
    fc.record({ kind: kind('bear'), bearer: pickFrom('service', 'merchant') }),
    fc.record({ kind: kind('late'), ...late, amount, fee }),
    fc.record({ kind: kind('late_credited'), ...late, amount }),
    fc.record({ kind: kind('late_reversed'), ...late, amount: fc.option(amount) }),
    fc.record({ kind: kind('fund'), ...operation }),
    fc.record({
      kind: kind('adjust'),
      ...operation,
      against: pickFrom('adjustments', 'receivable'),
    }),
    often(2, fc.record({ kind: kind('reverse'), posting: index(2 * OPERATIONS + PAYMENTS) })),
  );
  const settle = (payment: number, fee = 0): Step => ({ kind: 'settle', payment, fee });
  const clawBack = (payment: number): Step => ({ kind: 'claw_back', payment, operator: 0 });
  const dispute = (payment: number): Step => ({ kind: 'dispute', payment });
  const refund = (refund: number, payment: number, amount: number): Step => {
    return { kind: 'refund', refund, payment, amount };
  };
  const twice = (taken: Step): [Step, boolean] => [taken, true];
  type Batches = [Step, boolean][][];
  /** A chargeback that is owed, collected and reversed: chance seldom comes by all of it. */
  const OWED: Batches = [
    [settle(0), { kind: 'late', late: 0, amount: 5, fee: 0 } as const].map(twice),
    [refund(0, 0, 700)].map(twice),
    [clawBack(0), refund(1, 0, 700)].map(twice),
    [settle(1), { kind: 'late_reversed', late: 0, amount: null } as const].map(twice),
    [{ kind: 'adjust', operation: 0, against: 'receivable' } as const, dispute(1)].map(twice),
    // The balance holds this refund: the dispute alone refuses it.
    [{ kind: 'reverse', posting: 0 } as const, refund(2, 1, 100)].map(twice),
  ];
  const bank = (kind: `dispute_${'opened' | 'won' | 'lost'}`, amount: number) =>
    twice({ kind, payment: 0, amount });
  /** A payment that the bank disputes twice, and gives back once. */
  const DISPUTED: Batches = [
    [settle(0)].map(twice),
    [bank('dispute_opened', 300), bank('dispute_won', 300)],
    [bank('dispute_opened', 701), twice(refund(0, 0, 700))],
    [bank('dispute_won', 300), twice(refund(1, 0, 300))],
    [bank('dispute_lost', 701)],
  ];
  /** Two reports about funds that nobody has reported yet: one of them names another amount. */
  const SENT_BACK_AT_ONCE: Batches = [
    [
      [{ kind: 'late_reversed', late: 1, amount: null }, true],
      [{ kind: 'late_reversed', late: 1, amount: 288 }, true],
      [{ kind: 'late', late: 1, amount: 794, fee: 0 }, false],
    ],
  ];
  /** Fees that the merchant bears at first, and not later. */
  const WITH_FEES: Batches = [
    [twice({ kind: 'bear', bearer: 'merchant' })],
    [twice(settle(0, 300)), twice({ kind: 'late', late: 0, amount: 500, fee: 499 })],
    [twice({ kind: 'bear', bearer: 'service' })],
    [twice(settle(1, 300)), twice({ kind: 'late_credited', late: 0, amount: 200 })],
    [twice({ kind: 'late_credited', late: 0, amount: 101 }), twice(refund(0, 0, 600))],
  ];

  const seen = new Set<string>();
  /** A step of `true` is asked of both processes. */
  const openMoney = async () => {
    const { left, right } = processes;
    const world = await createWorld(left, records);
    return {
      run: ([taken, isTwice]: [Step, boolean]) =>
        Promise.all((isTwice ? [left, right] : [left]).map((worker) => world.run(worker, taken))),
      look: async () => {
        for (const mark of await world.expectWhole()) seen.add(mark);
      },
    };
  };

  test('stays whole in any interleaving of settlements, refunds and their reports', async () => {
    const refunds = fc.oneof(settling, refunding, reporting);
    const once = fc.tuple<[Step, boolean]>(refunds, fc.constant(false));
    await holdAlways(buildProgram(once, 4, 10), 60, openMoney);
  });

  test('stays whole in any interleaving of money that goes wrong, and each act is booked once', async () => {
    const examples = [OWED, DISPUTED, SENT_BACK_AT_ONCE, WITH_FEES].map((each): [Batches] => [
      each,
    ]);
    await holdAlways(buildProgram(fc.tuple(step, fc.boolean()), 4, 8), 30, openMoney, examples);
    expect([...seen]).toEqual(
      expect.arrayContaining([
        ...['payment_held', 'payment_resolved', 'payment_clawed_back'],
        ...['refund_accepted', 'funded', 'adjusted', 'reversed', 'owed', 'payment_disputed'],
        'fees',
      ]),
    );
  });
});

describe('payouts', () => {
  const BALANCES = ['main', 'ads'] as const;
  const FUNDINGS = 3;
  const FUNDED = 1_000;
  const PAYOUTS = 7;
  /** From each state, where a payout can go at once; no state is skipped in the record. */
  const SENT: PayoutStatus[][] = [['sent'], ['sent', 'completed'], ['sent', 'returned']];
  const PATHS: Record<PayoutStatus, PayoutStatus[][]> = {
    created: [['submitted'], ...SENT.map((path) => ['submitted' as const, ...path]), ['failed']],
    submitted: [...SENT, ['failed']],
    ...{ sent: [['completed'], ['failed'], ['returned']], completed: [['returned']] },
    ...{ failed: [], returned: [] },
  };

  type PayoutStep =
    | { kind: 'fund'; funding: number; balance: number }
    | { kind: 'open'; payout: number }
    | { kind: 'transition'; payout: number; path: number };

  const of = { payout: index(PAYOUTS) };
  const step: fc.Arbitrary<PayoutStep> = fc.oneof(
    fc.record({ kind: kind('fund'), funding: index(FUNDINGS), balance: index(BALANCES.length) }),
    often(2, fc.record({ kind: kind('open'), ...of })),
    often(4, fc.record({ kind: kind('transition'), ...of, path: index(60) })),
  );
  const payout = fc.record({
    balance: index(BALANCES.length),
    amount: fc.integer({ min: 1, max: FUNDED / 2 }),
    fee: fc.constantFrom(0, 1, 50),
  });
  type Wanted = typeof payout extends fc.Arbitrary<infer T> ? T : never;

  const open = (of: number): PayoutStep => ({ kind: 'open', payout: of });
  const advance = (payout: number, path: number): PayoutStep => {
    return { kind: 'transition', payout, path };
  };
  /** Comes by every state, failed before it was sent and after: what chance makes proves no less. */
  const EVERY_STATE: PayoutStep[][] = [
    [0, 1, 2, 3, 4, 5, 6].map(open),
    [advance(1, 0), advance(2, 1), advance(3, 2), advance(4, 3), advance(5, 4), advance(6, 1)],
    [advance(6, 1)],
  ];

  type World = { account_id: string; payouts: PayoutFacts[] };

  async function run(
    { account_id, payouts }: World,
    taken: PayoutStep,
    { records: own, fund, openPayout, transitionPayout }: WorkerProcess = processes.left,
  ): Promise<void> {
    if (taken.kind === 'fund') {
      const facts = payoutFacts({ account_id, balance_account: getName(taken.balance) });
      const id = `fund_${account_id}_${getName(taken.balance)}_${taken.funding}`;
      // Once: a second posting of the same id is refused by the server.
      return await untilDone(() => fund(own, facts, FUNDED, id), /duplicate key/);
    }
    const facts = payouts[taken.payout];
    if (facts === undefined) return;
    if (taken.kind === 'open') {
      const { opening } = await openPayout(own, facts);
      if (opening.outcome === 'accepted') return;
      // As the workflow does after a refusal: the key is free, and nothing may follow. It is too late
      // for one of the same batch that had not been accepted by then.
      expect(opening.code).toMatch(/^(insufficient_|balance_account_not_|temporarily_un)/);
      const abandoning = { ...facts, created_at: '', accept_by_ms: 0 };
      await retryUntilDone(() => own.payouts.abandonPayout(abandoning));
      return;
    }
    const stored = await records.stores.payouts.get(facts.payout_id);
    if (stored === null) return;
    const paths = PATHS[stored.status];
    const to = paths[taken.path % paths.length];
    // Another of the same batch may be first; then this one does not begin where the record is.
    if (to === undefined) return;
    await untilDone(() => transitionPayout(own, facts, stored, to), /is not at version/);
  }

  const getName = (balance: number) => BALANCES[balance] ?? 'main';

  /** Repeats a call until it is done, or was by another one, as the error says. */
  async function untilDone(call: () => Promise<unknown>, done: RegExp): Promise<void> {
    const ignoreDone = (error: unknown) => {
      if (!done.test(String(error))) throw error;
    };
    await retryUntilDone(() => call().catch(ignoreDone));
  }

  /** Stored balances are the sums of their entry lines, none of a merchant below 0; all add up. */
  async function expectWhole({ account_id }: World): Promise<void> {
    const book = await expectWholeBook(records, account_id);
    const payouts = await records.stores.payouts.list({ account_id, livemode: false, limit: 100 });
    for (const name of BALANCES) {
      const held = payouts
        .filter(({ status }) => status === 'created' || status === 'submitted')
        .filter(({ balance_account }) => balance_account === name)
        .reduce((sum, { amount, fee }) => sum + amount + fee, 0);
      expect([name, book.sum(`balances.${name}.reserved`)]).toEqual([name, held]);
    }
  }

  /** Runs a program with an account of its own. @returns where its payouts stand then */
  async function live(batches: PayoutStep[][], wanted: Wanted[]): Promise<string[]> {
    const account_id = `acct_${randomUUID()}`;
    const payouts = wanted.map(({ balance, ...money }) =>
      payoutFacts({ account_id, balance_account: getName(balance), ...money }),
    );
    const world: World = { account_id, payouts };
    await run(world, { kind: 'fund', funding: 0, balance: 0 });
    for (const batch of batches) {
      const { left, right } = processes;
      const running = batch.map((taken, n) => run(world, taken, n % 2 === 0 ? left : right));
      await Promise.all(running);
      await expectWhole(world);
    }
    const all = await records.stores.payouts.list({ account_id, livemode: false, limit: 100 });
    return all.map(({ status, sent_at }) => (sent_at === null ? status : `${status}, sent`));
  }

  test('leave the books whole in any interleaving, and nothing below zero', async () => {
    const reached = new Set<string>();
    const small = Array.from({ length: PAYOUTS }, () => ({ balance: 0, amount: 50, fee: 1 }));
    const payouts = fc.array(payout, { minLength: PAYOUTS, maxLength: PAYOUTS });
    await fc.assert(
      fc.asyncProperty(buildProgram(step, 5, 12), payouts, async (batches, wanted) => {
        for (const end of await live(batches, wanted)) reached.add(end);
      }),
      { numRuns: 60, examples: [[EVERY_STATE, small]], endOnFailure: true },
    );
    expect([...reached].sort()).toEqual([
      ...['completed, sent', 'created', 'failed', 'failed, sent'],
      ...['returned, sent', 'sent, sent', 'submitted'],
    ]);
  });
});

test('the ledger of all these programs agrees with their resources and with the bank', async () => {
  const { differences } = await verifyLedger(records.mongo, records.db.databaseName);
  expect(differences).toEqual([]);
  expect(await reconcile(records)).toBeGreaterThan(0);
});

/** Two processes, each perhaps killed before any of its writes. */
describe('one book', () => {
  const database = `ledger_${randomUUID()}`;
  const clients = useFixture(
    async () => {
      const uri = mongodbUri();
      const all = await Promise.all(['left', 'right'].map((name) => connectMongo(uri, name)));
      await openLedger(all[0], createFuse(undefined)).ensureIndexes();
      return all;
    },
    async (all) => {
      await all[0]?.db(database).dropDatabase();
      for (const mongo of all) await mongo.close();
    },
  );

  function openLedger(mongo: MongoClient | undefined, fuse: Fuse) {
    if (mongo === undefined) throw new Error('There are two processes.');
    return createLedgerStore(fused(mongo.db(database), fuse));
  }

  const [SETTLED, REFUNDED] = ['payment_settled', 'refund_accepted'] as const;
  const KINDS = [SETTLED, REFUNDED, 'payout_reserved', 'payout_captured'] as const;
  type Act = (typeof KINDS)[number] | 'apply';
  const RESOURCES = 4;
  const WRITES = 6;

  const step = fc.record({
    act: fc.constantFrom<Act>(SETTLED, ...KINDS, 'apply'),
    resource: index(RESOURCES),
    process: fc.nat({ max: 1 }),
    dies: fc.option(fc.nat({ max: WRITES }), { freq: 3, nil: undefined }),
  });
  type BookStep = typeof step extends fc.Arbitrary<infer T> ? T : never;
  const LINES: Record<(typeof KINDS)[number], (amount: number) => EntryLine[]> = {
    payment_settled: (amount) => ENTRY_LINES.payment_settled('bank', amount),
    refund_accepted: (amount) => ENTRY_LINES.refund_accepted(amount - 30),
    payout_reserved: (amount) => ENTRY_LINES.payout_reserved('main', amount - 10, 5),
    payout_captured: (amount) => ENTRY_LINES.payout_captured('main', 'bank', amount - 10, 5),
  };
  function openWorld() {
    const account_id = `acct_${randomUUID()}`;
    const book = `${account_id}:sandbox:EUR`;
    const done = new Set<string>();
    const ledger = openLedger(clients[0], createFuse(undefined));
    const buildName = (kind: EntryKind, resource: number) => `${kind}:${resource}:${account_id}`;
    const available = async () =>
      Number((await ledger.balances(account_id, false))[0]?.available ?? 0);

    const run = async (
      { act, resource, process, dies }: BookStep,
      isAlone: boolean,
    ): Promise<void> => {
      const mongo = clients[process];
      if (mongo === undefined) return;
      const fuse = createFuse(dies);
      const own = openLedger(mongo, fuse);
      const commit = (work: (session: ClientSession) => Promise<unknown>) =>
        inTransaction(mongo, async (session) => {
          await work(session);
          fuse.burn();
        });
      if (act === 'apply') {
        await commit((session) => own.applyPending(book, session)).catch(expectKilled);
        return;
      }
      // A payout is captured once it was reserved: its document would say so.
      if (act === 'payout_captured' && !done.has(buildName('payout_reserved', resource))) return;
      const entry: NewEntry = {
        kind: act,
        resource_id: `${resource}:${account_id}`,
        ...{ account_id, livemode: false, currency: 'EUR', at: '2026-03-01T12:00:00.000Z' },
        lines: LINES[act](100 * (resource + 1)),
      };
      const before = isAlone ? await available() : 0;
      try {
        await commit((session) => own.post(entry, session));
        done.add(operationId(entry));
      } catch (error) {
        // Posted by another attempt, which acknowledges it.
        if (isDuplicateKey(error, '_id_')) return;
        if (!(error instanceof InsufficientBalance)) return expectKilled(error);
        // Refused alone, it did not fit.
        const taken = entry.lines.find(({ account }) => account === 'balances.main.available');
        if (isAlone) expect(before).toBeLessThan(-(taken?.amount ?? 0));
      }
    };

    const look = async () => {
      const { sum } = await expectWholeBook({ stores: { ledger } }, account_id);
      const posted = await ledger.collections.entries.find({ book }).toArray();
      expect(posted.map(({ _id }) => _id).sort()).toEqual([...done].sort());
      const [main] = await ledger.balances(account_id, false);
      expect(main?.available ?? 0).toBe(sum('balances.main.available'));
      expect(main?.reserved ?? 0).toBe(sum('balances.main.reserved'));
    };
    return { run, look };
  }

  /** A step that was killed did nothing, and neither did one that gave up on a busy machine. */
  function expectKilled(error: unknown): void {
    if (!(error instanceof Contention)) expect(error).toBeInstanceOf(Killed);
  }

  test('stays whole in any interleaving of credits, debits, applied entries and kills', async () => {
    await holdAlways(buildProgram(step, 4, 10), 60, async () => openWorld());
  });
});

/** End of a process before one of its writes. */
class Killed extends Error {}

interface Fuse {
  /** Writes that are still made; undefined for all. */
  left: number | undefined;
  burn: () => void;
}
function createFuse(left: number | undefined): Fuse {
  return {
    left,
    burn() {
      if (this.left === undefined) return;
      if (this.left === 0) throw new Killed('killed');
      this.left -= 1;
    },
  };
}

const WRITES: readonly PropertyKey[] = ['insertOne', 'updateOne', 'updateMany', 'deleteMany'];

/** A database whose writes burn a fuse, each before it is made. */
function fused(db: Db, fuse: Fuse): Db {
  const collection = (name: string) => fusedCollection(db.collection(name), fuse);
  return new Proxy(db, {
    get: (target, key) => (key === 'collection' ? collection : Reflect.get(target, key)),
  });
}

function fusedCollection(collection: Collection<Document>, fuse: Fuse) {
  return new Proxy(collection, {
    get: (target, key) => {
      const found: unknown = Reflect.get(target, key);
      if (typeof found !== 'function') return found;
      return (...args: unknown[]) => {
        if (WRITES.includes(key)) fuse.burn();
        return Reflect.apply(found, target, args);
      };
    },
  });
}

const CLEARING = /^clearing\.(.+)$/;

/**
 * Lets a bank move what the lines of all journal entries say, and imports its statements: each
 * movement has its entry, each entry its movement, what the bank kept is an expense, and the trial
 * balance has no finding but money in suspense, about which nobody has decided.
 * @returns the number of movements
 */
async function reconcile({ mongo, db, stores }: Pick<Records, 'mongo' | 'db' | 'stores'>) {
  const now = () => new Date();
  const database = db.databaseName;
  const own = mongo.db(sandboxBankDatabase(database));
  const movements = createMovementStore(own, now);
  await retryUntilDone(() => movements.ensureIndexes());
  const dataDir = mkdtempSync(join(tmpdir(), 'reconcile-'));
  try {
    const rows = await listMovements(stores, now());
    const connectors = new Set(rows.map(({ connector }) => connector));
    expect(connectors.size).toBe(1);
    const [connector = ''] = connectors;
    await movements.collection.insertMany(rows.map(({ connector: _, ...row }) => row));
    const deps = { mongo, stores, now, database, dataDir, audit: operatorsAudit(stores) };
    const source = { connector, livemode: false };
    const created_at = now().toISOString();
    for (const { file, currency } of await writeDayStatements(deps, created_at.slice(0, 10))) {
      const account = { ...source, iban: sandboxIban(currency), currency, created_at };
      const row = { _id: `ba_${currency}`, ...account, closing: null };
      await inTransaction(mongo, (session) => stores.bankAccounts.insert(row, session));
      await importStatementPath(deps, file, source);
    }
    const shown = await reconcileAccounts(deps, source);
    const open = shown.flatMap(({ ours_only, theirs_only, different }) => [
      ...[...ours_only, ...theirs_only, ...different],
    ]);
    // A correction by hand is matched by hand.
    const corrections = await stores.ledger.collections.states
      .find({ kind: 'reversed', uncleared: { $exists: true } })
      .toArray();
    const { findings } = await readTrialBalance(mongo, database, { now });
    expect(open).toMatchObject(corrections.map(() => ({ kind: 'reversed' })));
    const differences = findings.filter(({ code }) => code !== 'suspense');
    expect(differences.flatMap(({ ids }) => ids).sort()).toEqual(
      corrections.map(({ _id }) => _id).sort(),
    );
    const moved = new Set(rows.map(({ _id }) => _id));
    const fees = (await stores.movements.list({}, 10_000))
      .filter(({ entry }) => moved.has(entry ?? ''))
      .reduce((sum, { fee }) => sum + (fee?.amount ?? 0), 0);
    expect(fees).toBeGreaterThan(0);
    const ours = await stores.ledger.book('ba_EUR:sandbox:EUR');
    expect(ours?.expense?.['bank_fees']).toBe(-fees);
    return rows.length;
  } finally {
    rmSync(dataDir, { recursive: true, force: true });
    await retryUntilDone(() => own.dropDatabase());
  }
}

/** Lists a movement for each line of an entry on the account of a bank. */
async function listMovements(
  { ledger, movements }: Pick<Stores, 'ledger' | 'movements'>,
  booked_at: Date,
) {
  const rows: (MovementDocument & { connector: string })[] = [];
  const reported = await movements.list({}, 10_000);
  const fees = new Map(reported.map(({ entry, fee }) => [entry, fee?.amount]));
  for await (const { _id, kind, resource_id, book, lines } of ledger.collections.entries.find()) {
    for (const { account, amount } of lines) {
      const [, connector] = CLEARING.exec(account) ?? [];
      if (connector === undefined || kind === 'reversed') continue;
      const [moved, fee] = [-Number(toBigInt(amount)), fees.get(_id)];
      const currency = book.slice(book.lastIndexOf(':') + 1);
      // The line of a dispute has its fee, too.
      const money = moved > 0 ? { amount: moved, fee } : { amount: moved - (fee ?? 0) };
      rows.push({
        ...{ _id, decision: _id, resource: 'payment', name: 'settled', resource_id, connector },
        ...{ bank_reference: `SBX${rows.length}`, booked_at, statement: null, currency },
        ...{ day: booked_at.toISOString().slice(0, 10), ...omitUndefined(money) },
      });
    }
  }
  return rows;
}

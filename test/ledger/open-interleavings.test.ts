import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import type { ClientSession, MongoClient } from 'mongodb';
import { Contention, connectMongo, inTransaction, isDuplicateKey } from '../../src/base/mongo';
import { createLedgerStore } from '../../src/ledger/book';
import {
  type EntryKind,
  type EntryLine,
  type NewEntry,
  operationId,
} from '../../src/ledger/entries';
import { ENTRY_LINES } from '../../src/ledger/entry-lines';
import { InsufficientBalance } from '../../src/ledger/insufficient-balance';
import { mongodbUri } from '../support/servers';
import { createFuse, type Fuse, fused, Killed } from './fuse';
import { expectWholeBook } from './whole-books';

/**
 * Holds that balances are those of the entries, and nothing is overdrawn, applied twice or lost, in
 * any order of credits, debits and applications of pending entries from two processes: one by one or
 * at once, each perhaps twice and each perhaps killed before any of its writes.
 */
const database = `ledger_${randomUUID()}`;
let processes: MongoClient[];
beforeAll(async () => {
  const uri = mongodbUri();
  processes = await Promise.all(['left', 'right'].map((name) => connectMongo(uri, name)));
  await openLedger(processes[0], createFuse(undefined)).ensureIndexes();
});
afterAll(async () => {
  await processes?.[0]?.db(database).dropDatabase();
  for (const mongo of processes ?? []) await mongo.close();
});

function openLedger(mongo: MongoClient | undefined, fuse: Fuse) {
  if (mongo === undefined) throw new Error('There are two processes.');
  return createLedgerStore(fused(mongo.db(database), fuse));
}

const KINDS = ['payment_settled', 'refund_accepted', 'payout_reserved', 'payout_captured'] as const;
type Act = (typeof KINDS)[number] | 'apply';
const RESOURCES = 4;
const WRITES = 6;

const step = fc.record({
  act: fc.constantFrom<Act>('payment_settled', ...KINDS, 'apply'),
  resource: fc.nat({ max: RESOURCES - 1 }),
  process: fc.nat({ max: 1 }),
  /** Writes before it is killed. */
  dies: fc.option(fc.nat({ max: WRITES }), { freq: 3, nil: undefined }),
});
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;
const program = fc.array(fc.array(step, { minLength: 1, maxLength: 4 }), {
  minLength: 4,
  maxLength: 10,
});

/** Builds the entry lines of each act on a resource of an amount. */
const LINES: Record<(typeof KINDS)[number], (amount: number) => EntryLine[]> = {
  payment_settled: (amount) => ENTRY_LINES.payment_settled('bank', amount),
  refund_accepted: (amount) => ENTRY_LINES.refund_accepted(amount - 30),
  payout_reserved: (amount) => ENTRY_LINES.payout_reserved('main', amount - 10, 5),
  payout_captured: (amount) => ENTRY_LINES.payout_captured('main', 'bank', amount - 10, 5),
};

/** A merchant, and all entries that were acknowledged. */
function openWorld() {
  const account_id = `acct_${randomUUID()}`;
  const book = `${account_id}:sandbox:EUR`;
  const done = new Set<string>();
  const ledger = openLedger(processes[0], createFuse(undefined));
  const buildName = (kind: EntryKind, resource: number) => `${kind}:${resource}:${account_id}`;
  const available = async () =>
    Number((await ledger.balances(account_id, false))[0]?.available ?? 0);

  const run = async ({ act, resource, process, dies }: Step, isAlone: boolean): Promise<void> => {
    const mongo = processes[process];
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

  const expectWhole = async () => {
    const { sum } = await expectWholeBook({ stores: { ledger } }, account_id);
    const posted = await ledger.collections.entries.find({ book }).toArray();
    expect(posted.map(({ _id }) => _id).sort()).toEqual([...done].sort());
    const [main] = await ledger.balances(account_id, false);
    expect(main?.available ?? 0).toBe(sum('balances.main.available'));
    expect(main?.reserved ?? 0).toBe(sum('balances.main.reserved'));
  };
  return { run, expectWhole };
}

/** A step that was killed did nothing, and neither did one that gave up on a busy machine. */
function expectKilled(error: unknown): void {
  if (!(error instanceof Contention)) expect(error).toBeInstanceOf(Killed);
}

test('any interleaving of credits, debits, applied entries and kills keeps the book whole', async () => {
  await fc.assert(
    fc.asyncProperty(program, async (batches) => {
      const world = openWorld();
      for (const batch of batches) {
        await Promise.all(batch.map((taken) => world.run(taken, batch.length === 1)));
        await world.expectWhole();
      }
    }),
    { numRuns: 60, endOnFailure: true },
  );
}, 600_000);

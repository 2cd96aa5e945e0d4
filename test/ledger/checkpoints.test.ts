import { randomUUID } from 'node:crypto';
import { type Document, Long } from 'mongodb';
import { inTransaction } from '../../src/base/mongo';
import { createLedgerStore } from '../../src/ledger/book';
import { type NewEntry, operationId } from '../../src/ledger/entries';
import { ENTRY_LINES } from '../../src/ledger/entry-lines';
import {
  type CheckpointDocument,
  compareCheckpoints,
  listLastCheckpoints,
} from '../../src/ledger-check/checkpoints';
import { openSnapshots, readAll } from '../../src/ledger-check/snapshot';
import { type VerifyOptions, verifyLedger } from '../../src/ledger-check/verify';
import { useFixture } from '../support/fixture';
import { authorizedPayment, settle, useRecords } from '../support/records';

const HOUR_MS = 60 * 60_000;

const records = useRecords();
const stored = useFixture(async () => {
  const { entries, books } = records.stores.ledger.collections;
  const checkpoints = records.db.collection<CheckpointDocument>('ledger_checkpoints');
  const account_id = `acct_${randomUUID()}`;
  return { entries, books, checkpoints, account_id, book: `${account_id}:live:EUR` };
});
afterEach(async () => {
  const { db } = records;
  const names = (await db.listCollections().toArray()).map(({ name }) => name);
  await Promise.all(names.map((name) => db.collection(name).deleteMany({})));
});

/** Verifies an hour from now, when all entries are old enough for a checkpoint. */
const verify = (options: VerifyOptions = {}) =>
  verifyLedger(records.mongo, records.db.databaseName, {
    now: () => new Date(Date.now() + HOUR_MS),
    checkpointSize: { least: 2, most: 5 },
    ...options,
  });
const findFaults = async (options: VerifyOptions = {}) =>
  (await verify(options)).differences.map(({ check, subject, part }) => [check, subject, part]);
const findAllFaults = () => findFaults({ full: true });
const listCheckpoints = (book = stored.book) =>
  stored.checkpoints.find({ book }).sort({ number: 1 }).toArray();
const listSizes = async () => (await listCheckpoints()).map(({ entries }) => entries);
const listIds = async () => {
  const { entries, book } = stored;
  const rows = await entries.find({ book }).sort({ written_at: 1, _id: 1 }).toArray();
  return rows.map(({ _id }) => _id);
};

/** Posts credits of 1, 2, 3, … cents in this order. @param at time at which they were decided */
async function credit(times: number, { at = new Date(), currency = 'EUR' } = {}): Promise<void> {
  for (let n = 1; n <= times; n += 1) await post(n, { at: at.toISOString(), currency });
}

async function post(
  amount: number,
  changes: { at: string; currency?: string; resource_id?: string },
  ledger = records.stores.ledger,
): Promise<void> {
  const owner = { account_id: stored.account_id, livemode: true, currency: 'EUR' };
  const lines = ENTRY_LINES.funded('main', amount);
  const entry = { kind: 'funded', resource_id: randomUUID(), lines, ...owner, ...changes } as const;
  await inTransaction(records.mongo, (session) => ledger.post(entry, session));
}

/** Deletes an entry, and corrects the balances that it had changed. */
async function deleteEntry(_id = ''): Promise<void> {
  const entry = await stored.entries.findOneAndDelete({ _id });
  const sums = (entry?.lines ?? []).map(({ account, amount }) => [account, -Number(amount)]);
  await stored.books.updateOne({ _id: stored.book }, { $inc: Object.fromEntries(sums) });
}

function alter(value: unknown): unknown {
  if (typeof value === 'string') return `${value}0`;
  if (typeof value === 'boolean') return !value;
  if (Array.isArray(value)) return value.toReversed();
  return value instanceof Long ? value.add(1) : { ...Object(value), more: 1 };
}

test('each snapshot shows one moment of its own to all reads in it', async () => {
  const rows = records.db.collection('rows');
  const inSnapshot = openSnapshots(records.mongo, records.db.databaseName);
  const countTwice = () =>
    inSnapshot(async (read) => {
      const before = await readAll(read('rows', {}));
      await rows.insertOne({});
      return [before.length, (await readAll(read('rows', {}))).length];
    });
  await rows.insertOne({});
  expect(await countTwice()).toEqual([1, 1]);
  expect(await countTwice()).toEqual([2, 2]);
});

describe('checkpoints', () => {
  test('reveal a chain that was rebuilt, where its last hashes were stored elsewhere', async () => {
    const { book, checkpoints } = stored;
    await credit(12);
    await verify();
    const last = await listLastCheckpoints(records.db);
    expect(last).toEqual([{ book, number: 3, hash: expect.stringMatching(/^[0-9a-f]{64}$/) }]);
    expect(await compareCheckpoints(records.db, last)).toEqual([]);
    await credit(12);
    await verify();
    expect(await compareCheckpoints(records.db, last)).toEqual([]);

    await deleteEntry((await listIds())[0]);
    await checkpoints.deleteMany({});
    expect(await findAllFaults()).toEqual([]);
    const check = { check: 'checkpoint_not_as_kept', subject: `${book}:3`, part: null };
    const found = (await listCheckpoints())[2]?.hash;
    const differs = { ...check, expected: last[0]?.hash, found };
    expect(await compareCheckpoints(records.db, last)).toEqual([differs]);
    await checkpoints.deleteMany({});
    expect(await compareCheckpoints(records.db, last)).toMatchObject([{ found: null }]);
  });

  test('cover each old entry once, and form a chain', async () => {
    await credit(12);
    const clean = { postings: 12, differences: [], checkpoints_sealed: 0 };
    expect(await verify()).toEqual({
      ...{ ...clean, checkpoints_sealed: 3 },
      ...{ books: 1, differences_total: 0 },
    });
    const chain = await listCheckpoints();
    const ids = await listIds();
    expect(
      chain.map(({ number, entries, total, from, to, previous }) => {
        return [number, entries, total, from?.entry, to.entry, previous];
      }),
    ).toEqual([
      [1, 5, 5, undefined, ids[4], null],
      [2, 5, 10, ids[4], ids[9], chain[0]?.hash],
      [3, 2, 12, ids[9], ids[11], chain[1]?.hash],
    ]);
    expect(chain.at(-1)?.sums).toEqual([
      { account: 'balances.main.available', amount: '78' },
      { account: 'external.funding', amount: '-78' },
    ]);
    expect(await verify()).toMatchObject(clean);
    expect(await verify({ full: true })).toMatchObject(clean);
    expect(await listCheckpoints()).toEqual(chain);
  });

  test('cover neither entries of a moment ago nor fewer than the least number', async () => {
    await credit(4);
    const none = { postings: 4, differences: [], checkpoints_sealed: 0 };
    expect(await verify({ now: () => new Date() })).toMatchObject(none);
    expect(await verify({ checkpointSize: { least: 5, most: 9 } })).toMatchObject(none);
  });

  test('follow the time of the write, not the time of the decision', async () => {
    await credit(3);
    await verify();
    await credit(2, { at: new Date(Date.now() - 48 * HOUR_MS) });
    expect(await findFaults()).toEqual([]);
    expect(await listSizes()).toEqual([3, 2]);
    expect(await findAllFaults()).toEqual([]);
  });

  test('reveal an entry that was deleted, although the balances were corrected', async () => {
    const { book } = stored;
    await credit(7);
    await verify();
    await deleteEntry((await listIds())[1]);
    expect(await findFaults()).toEqual([
      ['balance_differs', book, 'balances.main.available'],
      ['balance_differs', book, 'external.funding'],
    ]);
    const counts = { subject: `${book}:1`, part: 'entries', expected: 5, found: 4 };
    const { differences } = await verify({ full: true });
    expect(differences).toEqual([{ check: 'checkpoint_differs', ...counts }]);
  });

  test('reveal an entry that was added before them, and one that was exchanged', async () => {
    const first = `${stored.book}:1`;
    await credit(10);
    await verify();
    const [oldest, second] = await listIds();
    const at = (await stored.entries.findOne({ _id: oldest }))?.written_at ?? '';
    const past = createLedgerStore(records.db, () => new Date(Date.parse(at) - 1));
    await post(5, { at, resource_id: 'late' }, past);
    expect(await findAllFaults()).toEqual([['posting_behind_checkpoint', first, 'entries']]);
    await deleteEntry(second);
    expect(await findAllFaults()).toEqual([['checkpoint_differs', first, 'hash']]);
    await deleteEntry('funded:late');
    expect(await findAllFaults()).toEqual([['checkpoint_differs', first, 'entries']]);
  });

  const FIELDS = [
    ...['kind', 'resource_id', 'step', 'at', 'lines', 'value_date', 'note', 'bank_reference'],
    ...['bank_day', 'bank_amount', 'account_id', 'livemode', 'currency', 'balance_account'],
    ...['type', 'position', 'fee'],
  ];

  test('reveal a change of any field of an entry', async () => {
    const { account_id, entries, book } = stored;
    const entry: NewEntry = {
      ...{ kind: 'adjusted', resource_id: 'a', step: '1', account_id, livemode: true },
      ...{ currency: 'EUR', at: new Date().toISOString(), value_date: '2026-03-01', fee: 1 },
      ...{ bank_reference: 'B-1', note: { operator: 'mia', reason: 'Why' } },
      lines: ENTRY_LINES.adjusted('main', 5, 'clearing:bank'),
    };
    await inTransaction(records.mongo, (session) => records.stores.ledger.post(entry, session));
    await credit(1);
    await verify();
    const _id = operationId(entry);
    const row: Document = { ...(await entries.findOne({ _id }, { promoteLongs: false })) };
    const order = ['_id', 'book', 'written_at'];
    expect(Object.keys(row).toSorted()).toEqual([...FIELDS, ...order].toSorted());
    for (const field of FIELDS) {
      const setField = (value: unknown) => entries.updateOne({ _id }, { $set: { [field]: value } });
      await setField(alter(row[field]));
      const found = (await findAllFaults()).find(([check]) => check === 'checkpoint_differs');
      expect([field, found]).toEqual([field, ['checkpoint_differs', `${book}:1`, 'hash']]);
      await setField(row[field]);
    }
    expect(await findAllFaults()).toEqual([]);
  });

  test('reveal that one of them was deleted or changed', async () => {
    const { book, checkpoints } = stored;
    await credit(15);
    await verify();
    await checkpoints.updateOne({ _id: `${book}:3` }, { $set: { 'sums.0.amount': '7' } });
    await checkpoints.deleteOne({ _id: `${book}:2` });
    expect(await findAllFaults()).toEqual([
      ['checkpoint_broken', `${book}:3`, 'number'],
      ['checkpoint_broken', `${book}:3`, 'previous'],
    ]);
    await checkpoints.deleteMany({ number: 3 });
    expect(await verify()).toMatchObject({ differences: [], checkpoints_sealed: 2 });
    expect(await findAllFaults()).toEqual([]);
  });

  test('cover no entry that differs, so that each run reports it again', async () => {
    await credit(12);
    const _id = (await listIds())[5] ?? '';
    const rows = records.db.collection<{ _id: string }>('journal_entries');
    const setKind = (kind: string) => rows.updateOne({ _id }, { $set: { kind } });
    await setKind('gift');
    for (const _run of [1, 2]) {
      expect(await findFaults()).toEqual([
        ['posting_misnamed', _id, null],
        ['posting_unknown', _id, 'kind'],
      ]);
    }
    expect(await listSizes()).toEqual([5]);
    await setKind('funded');
    expect(await findFaults()).toEqual([]);
    expect(await listSizes()).toEqual([5, 5, 2]);
  });

  test('form one chain, also when several verifications run at once', async () => {
    await credit(20);
    const runs = await Promise.all([verify(), verify(), verify({ full: true }), verify()]);
    for (const run of runs) expect(run).toMatchObject({ postings: 20, differences: [] });
    await verify();
    expect(runs.reduce((sum, run) => sum + run.checkpoints_sealed, 0)).toBeGreaterThan(0);
    expect((await listCheckpoints()).map(({ number }) => number)).toEqual([1, 2, 3, 4]);
    expect(await findAllFaults()).toEqual([]);
  });

  test('continue where a killed verification ended', async () => {
    await credit(12);
    let calls = 0;
    const now = () => {
      calls += 1;
      if (calls === 3) throw new Error('killed');
      return new Date(Date.now() + HOUR_MS);
    };
    await expect(verify({ now })).rejects.toThrow('killed');
    expect(await listCheckpoints()).toHaveLength(1);
    expect(await verify()).toMatchObject({ differences: [], checkpoints_sealed: 2 });
    expect(await findAllFaults()).toEqual([]);
  });
});

describe('a verification', () => {
  test('of one book reads no other', async () => {
    await credit(3);
    await credit(3, { currency: 'USD' });
    const book = `${stored.account_id}:live:USD`;
    await stored.books.updateMany({}, { $inc: { 'external.funding': 1 } });
    expect(await findFaults({ book })).toEqual([
      ['balance_differs', book, 'external.funding'],
      ['book_unbalanced', book, null],
    ]);
    expect(await listCheckpoints(book)).toHaveLength(1);
    expect(await listCheckpoints()).toEqual([]);
  });

  test('compares the resources that changed since the day before the last clean one', async () => {
    const payments = records.db.collection<{ _id: string }>('payments');
    const old = { updated_at: new Date(Date.now() - 48 * HOUR_MS).toISOString() };
    const readVerified = () =>
      records.db.collection<{ _id: string }>('ledger_verified').findOne({ _id: 'resources' });
    const owner = { account_id: stored.account_id, livemode: true };
    const first = await authorizedPayment(records, owner);
    const second = await authorizedPayment(records, owner);
    const change = (payment_id: string, fields: object) =>
      payments.updateOne({ _id: payment_id }, { $set: fields });
    await settle(records, first);
    await payments.updateMany({}, { $set: old });
    expect(await findFaults({ checkpointSize: { least: 1, most: 5 } })).toEqual([]);
    const before = await readVerified();

    await change(first.payment_id, { amount: 5 });
    expect(await findFaults()).toEqual([]);
    const differs = (id: string) => ['posting_differs', id, `payment_settled:${id}`];
    expect(await findAllFaults()).toEqual([differs(first.payment_id)]);

    // An outage of two days delays the write of a transition: the resource is old, its entry new.
    await settle(records, second);
    await change(second.payment_id, { ...old, amount: 6 });
    expect(await findFaults()).toEqual([differs(second.payment_id)]);

    await change(first.payment_id, { updated_at: new Date().toISOString() });
    const clean = await readVerified();
    expect(clean).not.toEqual(before);
    expect(await findFaults()).toContainEqual(differs(first.payment_id));
    expect(await readVerified()).toEqual(clean);
  });

  test('is exact beyond 2^53', async () => {
    const { book, books, entries } = stored;
    const large = Long.fromBigInt(2n ** 53n + 1n);
    await credit(1);
    const lines = [
      { account: 'external.funding', amount: large.negate() },
      { account: 'balances.main.available', amount: large },
    ];
    await entries.updateOne({ _id: (await listIds())[0] }, { $set: { lines } });
    const available = 'balances.main.available';
    const setBalances = (balances: Record<string, Long>) =>
      records.db.collection(books.collectionName).updateOne({}, { $set: balances });
    await setBalances({ [available]: large, 'external.funding': large.negate() });
    await credit(2);
    expect(await findFaults()).toEqual([]);
    expect(await findAllFaults()).toEqual([]);
    await setBalances({ [available]: large.subtract(1) });
    const sums = { expected: '9007199254740996', found: '9007199254740992' };
    expect((await verify()).differences).toEqual([
      { check: 'balance_differs', subject: book, part: available, ...sums },
      { check: 'book_unbalanced', subject: book, part: null, expected: 0, found: -4 },
    ]);
  });
});

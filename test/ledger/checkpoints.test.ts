import { randomUUID } from 'node:crypto';
import { Long } from 'mongodb';
import { inTransaction } from '../../src/base/mongo';
import { createLedgerStore } from '../../src/ledger/book';
import { ENTRY_LINES } from '../../src/ledger/entry-lines';
import type { CheckpointDocument } from '../../src/ledger-check/checkpoints';
import { compareCheckpoints, listLastCheckpoints } from '../../src/ledger-check/heads';
import { type VerifyOptions, verifyLedger } from '../../src/ledger-check/verify';
import { authorizedPayment, openRecords, type Records, settle } from '../support/records';

const SEALING = { least: 2, most: 5 };
const HOUR_MS = 60 * 60_000;

let records: Records;
let account_id: string;
let book: string;
beforeEach(async () => {
  records = await openRecords();
  account_id = `acct_${randomUUID()}`;
  book = `${account_id}:live:EUR`;
});
afterEach(async () => await records?.close());

/** Verifies an hour from now, when all postings are old enough to be sealed. */
const verify = (options: VerifyOptions = {}) =>
  verifyLedger(records.mongo, records.db.databaseName, {
    now: () => new Date(Date.now() + HOUR_MS),
    checkpointSize: SEALING,
    ...options,
  });
/** Names of what a verification finds, with the part at fault. */
const faults = async (options: VerifyOptions = {}) =>
  (await verify(options)).differences.map(({ check, subject, part }) => [check, subject, part]);
const ledger = () => records.stores.ledger.collections;
const checkpoints = () => records.db.collection<CheckpointDocument>('ledger_checkpoints');
const sealed = (of = book) => checkpoints().find({ book: of }).sort({ number: 1 }).toArray();
const ids = async (of = book) =>
  (await ledger().postings.find({ book: of }).sort({ written_at: 1, _id: 1 }).toArray()).map(
    ({ _id }) => _id,
  );

/** Credits of 1, 2, 3, … cents, written in this order. @param at time at which they were decided */
async function credit(times: number, at = new Date(), currency = 'EUR'): Promise<void> {
  for (let n = 1; n <= times; n += 1) {
    const legs = ENTRY_LINES.funded('main', n);
    const of = { account_id, livemode: true, currency, at: at.toISOString(), legs };
    await inTransaction(records.mongo, (session) =>
      records.stores.ledger.post({ kind: 'funded', resource_id: randomUUID(), ...of }, session),
    );
  }
}

/** Takes a posting out, and corrects the balances that it had moved. */
async function takeOut(_id: string): Promise<void> {
  const posting = await ledger().postings.findOneAndDelete({ _id });
  const moved = (posting?.legs ?? []).map(({ account, amount }) => [account, -Number(amount)]);
  await ledger().books.updateOne({ _id: book }, { $inc: Object.fromEntries(moved) });
}

describe('checkpoints of the ledger', () => {
  test('show a chain that was rebuilt to whoever has stored its last ones elsewhere', async () => {
    await credit(12);
    await verify();
    const stored = await listLastCheckpoints(records.db);
    expect(stored).toEqual([{ book, number: 3, hash: expect.stringMatching(/^[0-9a-f]{64}$/) }]);
    expect(await compareCheckpoints(records.db, stored)).toEqual([]);
    await credit(12);
    await verify();
    expect(await compareCheckpoints(records.db, stored)).toEqual([]);

    await takeOut((await ids()).at(0) ?? '');
    await checkpoints().deleteMany({});
    expect(await faults({ full: true })).toEqual([]);
    const [{ hash: expected } = { hash: '' }] = stored;
    const found = (await sealed()).at(2)?.hash;
    expect(await compareCheckpoints(records.db, stored)).toEqual([
      { check: 'checkpoint_not_as_kept', subject: `${book}:3`, part: null, expected, found },
    ]);
    await checkpoints().deleteMany({});
    expect(await compareCheckpoints(records.db, stored)).toMatchObject([{ found: null }]);
  });

  test('seal what is old, each chained to the one before, and once', async () => {
    await credit(12);
    expect(await verify()).toEqual({
      books: 1,
      postings: 12,
      differences: [],
      differences_total: 0,
      checkpoints_sealed: 3,
    });
    const chain = await sealed();
    const all = await ids();
    expect(
      chain.map(({ number, postings, total, from, to, previous }) => ({
        number,
        postings,
        total,
        from: from?.posting,
        to: to.posting,
        previous,
      })),
    ).toEqual([
      { number: 1, postings: 5, total: 5, from: undefined, to: all[4], previous: null },
      { number: 2, postings: 5, total: 10, from: all[4], to: all[9], previous: chain[0]?.hash },
      { number: 3, postings: 2, total: 12, from: all[9], to: all[11], previous: chain[1]?.hash },
    ]);
    expect(chain.at(-1)?.sums).toEqual([
      { account: 'balances.main.available', amount: '78' },
      { account: 'external.funding', amount: '-78' },
    ]);
    expect(await verify()).toMatchObject({ postings: 12, checkpoints_sealed: 0 });
    expect(await verify({ full: true })).toMatchObject({
      postings: 12,
      differences: [],
      checkpoints_sealed: 0,
    });
    expect(await sealed()).toEqual(chain);
  });

  test('leave out what was written a moment ago, and too few', async () => {
    await credit(4);
    expect(await verify({ now: () => new Date() })).toMatchObject({
      postings: 4,
      differences: [],
      checkpoints_sealed: 0,
    });
    expect(await verify({ checkpointSize: { least: 5, most: 9 } })).toMatchObject({
      postings: 4,
      checkpoints_sealed: 0,
    });
  });

  test('go by the time of the write: a move that was decided before them comes behind', async () => {
    await credit(3);
    await verify();
    await credit(2, new Date(Date.now() - 48 * HOUR_MS));
    expect(await faults()).toEqual([]);
    expect((await sealed()).map(({ postings }) => postings)).toEqual([3, 2]);
    expect(await faults({ full: true })).toEqual([]);
  });

  test('tell a posting and its balance that were taken out together', async () => {
    await credit(7);
    await verify();
    const [, second = ''] = await ids();
    await takeOut(second);
    expect(await faults()).toEqual([
      ['balance_differs', book, 'balances.main.available'],
      ['balance_differs', book, 'external.funding'],
    ]);
    expect((await verify({ full: true })).differences).toEqual([
      {
        check: 'checkpoint_differs',
        subject: `${book}:1`,
        part: 'postings',
        expected: 5,
        found: 4,
      },
    ]);
  });

  test('tell a posting behind them, and one that was exchanged or changed', async () => {
    await credit(10);
    await verify();
    const [first = '', second = ''] = await ids();
    const original = await ledger().postings.findOne({ _id: first }, { promoteLongs: false });
    const written_at = original?.written_at ?? '';
    const past = createLedgerStore(records.db, () => new Date(Date.parse(written_at) - 1));
    const of = { account_id, livemode: true, currency: 'EUR', at: written_at };
    const resource_id = 'late';
    await inTransaction(records.mongo, (session) =>
      past.post(
        { kind: 'funded', resource_id, ...of, legs: ENTRY_LINES.funded('main', 5) },
        session,
      ),
    );
    expect(await faults({ full: true })).toEqual([
      ['posting_behind_checkpoint', `${book}:1`, 'postings'],
    ]);
    await takeOut(second);
    expect(await faults({ full: true })).toEqual([['checkpoint_differs', `${book}:1`, 'hash']]);
    await takeOut('funded:late');
    expect(await faults({ full: true })).toEqual([['checkpoint_differs', `${book}:1`, 'postings']]);
  });

  test.each([
    [
      'an amount of both legs',
      { 'legs.0.amount': Long.fromNumber(-9), 'legs.1.amount': Long.fromNumber(9) },
    ],
    ['the time of the move', { at: '2020-01-01T00:00:00.000Z' }],
  ])('tell that %s was changed', async (_what, change) => {
    await credit(6);
    await verify();
    const [first = ''] = await ids();
    await ledger().postings.updateOne({ _id: first }, { $set: change });
    expect(await faults({ full: true })).toContainEqual([
      'checkpoint_differs',
      `${book}:1`,
      'hash',
    ]);
  });

  test('tell one of them that is gone, and one that was changed itself', async () => {
    await credit(15);
    await verify();
    await checkpoints().updateOne({ _id: `${book}:3` }, { $set: { 'sums.0.amount': '7' } });
    await checkpoints().deleteOne({ _id: `${book}:2` });
    expect(await faults({ full: true })).toEqual([
      ['checkpoint_broken', `${book}:3`, 'number'],
      ['checkpoint_broken', `${book}:3`, 'previous'],
    ]);
    await checkpoints().deleteMany({ number: 3 });
    expect(await verify()).toMatchObject({ differences: [], checkpoints_sealed: 2 });
    expect(await faults({ full: true })).toEqual([]);
  });

  test('do not seal what differs, so that it is told again', async () => {
    await credit(12);
    const [, , , , , sixth = ''] = await ids();
    await records.db
      .collection<{ _id: string }>('ledger_postings')
      .updateOne({ _id: sixth }, { $set: { kind: 'gift' } });
    const told = [
      ['posting_misnamed', sixth, null],
      ['posting_unknown', sixth, 'kind'],
    ];
    expect(await faults()).toEqual(told);
    expect(await faults()).toEqual(told);
    expect((await sealed()).map(({ postings }) => postings)).toEqual([5]);
    await ledger().postings.updateOne({ _id: sixth }, { $set: { kind: 'funded' } });
    expect(await faults()).toEqual([]);
    expect((await sealed()).map(({ postings }) => postings)).toEqual([5, 5, 2]);
  });

  test('are one chain, also when several verify at once', async () => {
    await credit(20);
    const runs = await Promise.all([verify(), verify(), verify({ full: true }), verify()]);
    for (const run of runs) expect(run).toMatchObject({ postings: 20, differences: [] });
    await verify();
    expect(runs.reduce((sum, run) => sum + run.checkpoints_sealed, 0)).toBeGreaterThan(0);
    expect((await sealed()).map(({ number }) => number)).toEqual([1, 2, 3, 4]);
    expect(await faults({ full: true })).toEqual([]);
  });

  test('go on from where a verification was killed', async () => {
    await credit(12);
    let clock = 0;
    const dies = () => {
      clock += 1;
      if (clock === 3) throw new Error('killed');
      return new Date(Date.now() + HOUR_MS);
    };
    await expect(verify({ now: dies })).rejects.toThrow('killed');
    expect(await sealed()).toHaveLength(1);
    expect(await verify()).toMatchObject({ differences: [], checkpoints_sealed: 2 });
    expect(await faults({ full: true })).toEqual([]);
  });

  test('hold while money moves', async () => {
    let isOver = false;
    const moving = (async () => {
      while (!isOver) await credit(5);
    })();
    try {
      for (let run = 0; run < 8; run += 1) {
        expect(await faults({ full: run % 2 === 0, now: () => new Date() })).toEqual([]);
      }
    } finally {
      isOver = true;
      await moving;
    }
    expect(await faults()).toEqual([]);
  });
});

describe('a verification', () => {
  test('of one book looks at no other', async () => {
    await credit(3);
    await credit(3, new Date(), 'USD');
    const dollars = `${account_id}:live:USD`;
    await ledger().books.updateMany({}, { $inc: { 'external.funding': 1 } });
    expect(await faults({ book: dollars })).toEqual([
      ['balance_differs', dollars, 'external.funding'],
      ['book_unbalanced', dollars, null],
    ]);
    expect((await sealed(dollars)).length).toBe(1);
    expect(await sealed()).toEqual([]);
  });

  test('compares resources that have moved since the last clean one, or the day before it', async () => {
    const payments = records.db.collection<{ _id: string }>('payments');
    const old = { updated_at: new Date(Date.now() - 48 * HOUR_MS).toISOString() };
    const verified = () =>
      records.db.collection<{ _id: string }>('ledger_verified').findOne({ _id: 'resources' });
    const first = await authorizedPayment(records, { account_id, livemode: true });
    const second = await authorizedPayment(records, { account_id, livemode: true });
    await settle(records, first);
    await payments.updateMany({}, { $set: old });
    expect(await faults({ checkpointSize: { least: 1, most: 5 } })).toEqual([]);
    const before = await verified();

    await payments.updateOne({ _id: first.payment_id }, { $set: { amount: 5 } });
    expect(await faults()).toEqual([]);
    const differs = (id: string) => ['posting_differs', id, `payment_settled:${id}`];
    expect(await faults({ full: true })).toEqual([differs(first.payment_id)]);

    // An outage of two days between a move and its write: the resource is old, its posting new.
    await settle(records, second);
    await payments.updateOne({ _id: second.payment_id }, { $set: { ...old, amount: 6 } });
    expect(await faults()).toEqual([differs(second.payment_id)]);

    await payments.updateOne(
      { _id: first.payment_id },
      { $set: { updated_at: new Date().toISOString() } },
    );
    const clean = await verified();
    expect(clean).not.toEqual(before);
    expect(await faults()).toContainEqual(differs(first.payment_id));
    expect(await verified()).toEqual(clean);
  });

  test('is exact beyond 2^53', async () => {
    const most = 2n ** 53n;
    await credit(1);
    const [_id = ''] = await ids();
    const legs = [
      { account: 'external.funding', amount: Long.fromBigInt(-most - 1n) },
      { account: 'balances.main.available', amount: Long.fromBigInt(most + 1n) },
    ];
    await ledger().postings.updateOne({ _id }, { $set: { legs } });
    const kept = {
      'balances.main.available': Long.fromBigInt(most + 1n),
      'external.funding': Long.fromBigInt(-most - 1n),
    };
    await records.db.collection('ledger_books').updateOne({}, { $set: kept });
    await credit(2);
    expect(await faults()).toEqual([]);
    expect(await faults({ full: true })).toEqual([]);
    const less = { 'balances.main.available': Long.fromBigInt(most) };
    await records.db.collection('ledger_books').updateOne({}, { $set: less });
    expect((await verify()).differences).toEqual([
      {
        check: 'balance_differs',
        subject: book,
        part: 'balances.main.available',
        expected: '9007199254740996',
        found: '9007199254740992',
      },
      { check: 'book_unbalanced', subject: book, part: null, expected: 0, found: -4 },
    ]);
  });
});

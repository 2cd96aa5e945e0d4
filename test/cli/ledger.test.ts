import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import { join } from 'node:path';
import { type Document, Long, MongoClient } from 'mongodb';
import { eventId } from '../../src/base/ids';
import { verifyLedger } from '../../src/ledger-check/verify';
import { useFixture } from '../support/fixture';
import { mongodbUri } from '../support/servers';
import { openProvisioning } from './cli';
import { difference, Report, useLedgerSetting } from './ledger-setting';

const setting = useLedgerSetting();
const ids = useFixture(async () => setting.ids);
const paidOut = useFixture(async () => setting.paidOut);

/** Asserts that `ledger verify` finds these differences and no other, in any order. */
async function expectDifferences(...expected: ReturnType<typeof difference>[]) {
  const found = await setting.differences();
  expect(found).toHaveLength(expected.length);
  expect(found).toEqual(expect.arrayContaining(expected));
}
const missing = (id: string, kind: string) => ['posting_missing', id, kind];
const extra = (id: string, kind: string) => ['posting_extra', id, `${kind}:${id}`];

describe('ledger verify', () => {
  test('finds no difference in an empty database, and refuses a book that does not exist', async () => {
    const empty = await openProvisioning();
    expect(await empty.json('ledger', 'verify')).toEqual({
      data: {
        ...{ books: 0, postings: 0, differences: [], differences_total: 0 },
        ...{ checkpoints_sealed: 0, heads: [] },
      },
    });
    expect((await empty.cli('ledger', 'verify')).stdout).toBe(
      '0 postings in 0 books: nothing differs.\n',
    );
    const refused = await empty.refusal('ledger', 'verify', '--book', 'acct_none:live:EUR');
    expect(refused.code).toBe('book_not_found');
    await empty.close();
  });

  test('finds no difference in the books that the product wrote', async () => {
    expect(await setting.differences()).toEqual([]);
    expect(await setting.differences('--full')).toEqual([]);
    const { exit, stdout } = await setting.cli('ledger', 'verify');
    expect({ exit, stdout }).toEqual({
      exit: 0,
      stdout: '28 postings in 4 books: nothing differs.\n',
    });
  });

  test('reports a checkpoint of the file of --against that the book lacks', async () => {
    const folder = mkdtempSync(join(os.tmpdir(), 'heads-'));
    const file = join(folder, 'heads.json');
    const heads = [{ book: 'acct_gone:live:EUR', number: 1, hash: 'ab' }];
    writeFileSync(file, JSON.stringify({ data: { heads } }));
    const { exit, stdout } = await setting.cli('ledger', 'verify', '--against', file, '--json');
    expect(exit).toBe(1);
    const [found] = Report.parse(JSON.parse(stdout)).data.differences;
    expect(found).toMatchObject({ check: 'checkpoint_not_as_kept', expected: 'ab', found: null });
    writeFileSync(file, '{}');
    const refused = await setting.cli('ledger', 'verify', '--against', file, '--json');
    expect(JSON.parse(refused.stderr).error).toMatchObject({ code: 'file_invalid' });
    rmSync(folder, { recursive: true });
  });

  test('reads each book from one snapshot, so that money may move meanwhile', async () => {
    const client = new MongoClient(mongodbUri(), {
      monitorCommands: true,
      runtimeAdapters: { os },
    });
    const writes: Document[] = [];
    const reads: { collection: string; concern: Document }[] = [];
    client.on('commandStarted', ({ commandName, command }) => {
      const concern: Document = command['readConcern'] ?? {};
      if (commandName === 'find') reads.push({ collection: command['find'], concern });
      if (commandName === 'update')
        writes.push({ after: reads.length, ...command['writeConcern'] });
    });
    await verifyLedger(await client.connect(), setting.database);
    await client.close();
    const moments = reads.filter(({ concern }) => concern['level'] === 'snapshot');
    // A snapshot is of what a majority has: by then it has all.
    expect(writes[0]).toEqual({ after: 0, w: 'majority', j: true });
    const books = moments.filter(({ collection }) => collection === 'ledger_books');
    expect(books).toHaveLength(4);
    for (const { concern } of books) {
      expect(concern['atClusterTime']).toBeDefined();
      const same = moments.filter(
        (read) => read.concern['atClusterTime'] === concern['atClusterTime'],
      );
      expect(same.map(({ collection }) => collection)).toContain('ledger_postings');
    }
    const resources = ['payments', 'refunds', 'payouts', 'events', 'idempotency'];
    expect(reads.filter(({ collection }) => resources.includes(collection))).toEqual(
      moments.filter(({ collection }) => resources.includes(collection)),
    );
  });

  test('finds a stored balance that its entry lines do not sum to', async () => {
    await setting.change('ledger_books', setting.book, {
      'balances.main.available': 5,
      'external.funding': '7',
    });
    expect(await setting.differences()).toEqual([
      difference('balance_differs', setting.book, 'balances.main.available', 100_009_999_999, 5),
      difference('balance_differs', setting.book, 'external.funding', -11_000_000, '7'),
      expect.objectContaining({ check: 'book_unbalanced', subject: setting.book, expected: 0 }),
    ]);
  });

  test('finds a balance without entry lines, lines without a balance, and a deleted book', async () => {
    const { book, account_id } = setting;
    const books = setting.documents('ledger_books');
    const dollars = `${account_id}:sandbox:USD`;
    await setting.change('ledger_books', book, { 'balances.other': { available: 0 } });
    await books.updateOne({ _id: book }, { $unset: { 'transit.refunds': 1 } });
    await books.deleteOne({ _id: dollars });
    const found = await setting.differences();
    expect(found.filter(({ subject }) => subject === book)).toEqual([
      difference('balance_differs', book, 'balances.other.available', null, 0),
      difference('balance_differs', book, 'transit.refunds', 700, null),
      difference('book_unbalanced', book, null, 0, -700),
    ]);
    expect(found.filter(({ subject }) => subject === dollars)).toEqual([
      difference('balance_differs', dollars, 'balances.main.available', 10_000_000, null),
      difference('balance_differs', dollars, 'balances.marketing.available', 1_000_000, null),
      difference('balance_differs', dollars, 'external.funding', -11_000_000, null),
    ]);
  });

  test('finds a negative balance, though every entry line is there', async () => {
    const part = 'balances.marketing.available';
    await setting.post(`funded:${randomUUID()}`, part, 'external.funding', 1_000_001);
    expect(await setting.differences()).toEqual([
      difference('balance_negative', setting.book, part, 'at least 0', -1),
    ]);
  });

  test('finds an entry whose lines do not sum to 0, and the book that it unbalances', async () => {
    const id = `funded:sandbox_funds:${setting.account_id}:main:EUR`;
    await setting.change('ledger_postings', id, { 'legs.1.amount': Long.fromNumber(10_000_001) });
    await setting
      .documents('ledger_books')
      .updateOne({ _id: setting.book }, { $inc: { 'balances.main.available': 1 } });
    expect(await setting.differences()).toEqual([
      difference('posting_unbalanced', id, null, 0, 1),
      difference('book_unbalanced', setting.book, null, 0, 1),
    ]);
  });

  test('finds an id that does not follow from the content, and an unknown kind', async () => {
    const pounds = `${setting.account_id}:sandbox:GBP`;
    await setting.post('funded:a', 'external.funding', 'balances.main.available', 1);
    await setting.change('ledger_postings', 'funded:a', { resource_id: 'b' });
    await setting.post('gift:c', 'external.funding', 'balances.main.available', 1);
    await setting.change('ledger_books', pounds, { account_id: 'acct_other' });
    expect(await setting.differences()).toEqual([
      difference('posting_misnamed', 'funded:a', null, 'funded:b', 'funded:a'),
      difference('posting_unknown', 'gift:c', 'kind', null, 'gift'),
      difference('book_misnamed', pounds, null, 'acct_other:sandbox:GBP', pounds),
    ]);
  });

  test('lists 100 differences, counts the others, and says on stderr how many there are', async () => {
    const faulty = Array.from({ length: 150 }, (_, n) => ({
      ...{ _id: `funded:${n}`, kind: 'funded', resource_id: `${n}`, book: setting.book },
      legs: [{ account: 'external.funding', amount: 1 }],
    }));
    await setting.documents('ledger_postings').insertMany(faulty);
    const { exit, stdout, stderr } = await setting.cli('ledger', 'verify');
    expect(exit).toBe(1);
    expect(stderr).toBe('The ledger has 151 differences.\n');
    expect(stdout).toMatch(/^178 postings in 4 books: 151 differences\.\n\nCHECK +SUBJECT +PART/);
    expect(stdout.match(/^posting_unbalanced +funded:\d+ +- +0 +1$/gm)).toHaveLength(100);
    expect(stdout).toMatch(/\n\nThere are 51 more\.\n$/);
    const inJson = await setting.cli('ledger', 'verify', '--json');
    const { data } = Report.parse(JSON.parse(inJson.stdout));
    expect([data.differences.length, data.differences_total]).toEqual([100, 151]);
  });
});

describe('ledger verify, of events and idempotency records', () => {
  test('finds a version without its event', async () => {
    const event = eventId('payment', ids.settled, 3);
    const ofPayout = eventId('payout', paidOut.failed, 3);
    await setting.documents('events').deleteOne({ _id: event });
    await setting.documents('payouts').updateOne({ _id: paidOut.failed }, { $inc: { version: 1 } });
    expect(await setting.differences()).toEqual([
      difference('event_missing', ids.settled, 'version 3', event, null),
      difference('event_missing', paidOut.failed, 'version 3', ofPayout, null),
    ]);
  });

  test('accepts that an event is missing which the retention may have deleted', async () => {
    const event = eventId('payment', ids.settled, 3);
    await setting.documents('events').deleteOne({ _id: event });
    const old = new Date(Date.now() - 400 * 86_400_000).toISOString();
    await setting.change('payments', ids.settled, { created_at: old });
    const runs = setting.documents('schedule_runs');
    await runs.insertOne({ _id: 'retention', events_before: old });
    expect(await setting.differences('--full')).toEqual([
      difference('event_missing', ids.settled, 'version 3', event, null),
    ]);
    const events_before = new Date(Date.parse(old) + 1).toISOString();
    await runs.updateOne({ _id: 'retention' }, { $set: { events_before } });
    expect(await setting.differences('--full')).toEqual([]);
  });

  test('finds an event of a deleted resource, with --full', async () => {
    const event = { _id: `evt_${randomUUID()}`, type: 'refund.settled', resource_id: 'nothing' };
    const place = { account_id: setting.account_id, livemode: false, position: 'none' };
    await setting.documents('events').insertOne({ ...event, ...place });
    expect(await setting.differences()).toEqual([]);
    expect(await setting.differences('--full')).toEqual([
      difference('event_without_resource', event._id, 'resource_id', 'nothing', null),
    ]);
  });

  test('finds an unknown status', async () => {
    await setting.change('payments', ids.authorized, { status: 'clawed_back' });
    expect(await setting.differences()).toEqual([
      difference('status_unknown', ids.authorized, 'status', null, 'clawed_back'),
    ]);
  });

  test('finds a refund whose payment is in the other environment, or does not exist', async () => {
    await setting.change('payments', ids.refunded, { livemode: true });
    await setting.change('refunds', ids.failed, { payment_id: 'nothing' });
    const found = await setting.differences();
    const misplaced = found.filter(({ check }) => check === 'refund_misplaced');
    expect(misplaced).toHaveLength(3);
    for (const id of [ids.back, ids.processing]) {
      expect(misplaced).toContainEqual(
        difference('refund_misplaced', id, 'livemode', 'true', 'false'),
      );
    }
    expect(misplaced).toContainEqual(
      difference('refund_misplaced', ids.failed, 'payment_id', 'nothing', null),
    );
  });

  test('finds an idempotency record without its resource, and one left open next to it', async () => {
    const records = setting.documents('idempotency');
    const request = { stored: {} };
    await records.updateOne({ resource_id: ids.settled }, { $set: { request } });
    await records.updateOne({ resource_id: ids.authorized }, { $set: { resource_id: 'nothing' } });
    // A recipient is written before its idempotency record is emptied.
    await setting.documents('recipients').insertOne({ _id: 'recipient', kid: 'k1' });
    const use = { resource_id: 'recipient', operation: 'createRecipient' };
    await records.insertOne({ _id: 'recipient-record', ...use, request: {} });
    await expectDifferences(
      difference('claim_left_open', ids.settled, 'createPayment', null, 'open'),
      difference('claim_without_resource', 'nothing', 'createPayment', 'nothing', null),
    );
  });

  test('finds money of the sandbox bank in a live book', async () => {
    const _id = `funded:${randomUUID()}`;
    await setting.post(_id, 'clearing.sandbox', 'balances.main.available', 5);
    expect(await setting.differences()).toEqual([]);
    const live = `${setting.account_id}:live:EUR`;
    await setting.change('ledger_postings', _id, { book: live });
    expect(await setting.differences()).toContainEqual(
      difference('sandbox_in_live', _id, 'clearing.sandbox', null, live),
    );
  });
});

describe('ledger verify, of payments and refunds', () => {
  const misplaced = (subject: string, part: string, expected: string, found: string) =>
    difference('refund_misplaced', subject, part, expected, found);

  test('finds a settled payment without its entry, and an entry of a payment that is not settled', async () => {
    await setting.documents('ledger_postings').deleteOne({ _id: `payment_settled:${ids.settled}` });
    await setting.change('payments', ids.authorized, { status: 'settled' });
    await setting.change('payments', ids.refunded, { status: 'failed' });
    const found = (await setting.differences()).filter(({ subject }) => subject !== setting.book);
    const moved = (amount: number) =>
      `balances.main.available ${amount}, clearing.bank -${amount} in ${setting.book}`;
    const entry = `payment_settled:${ids.refunded}`;
    const expected = [
      difference('posting_missing', ids.settled, 'payment_settled', moved(99_999_999_999), null),
      expect.objectContaining({ check: 'posting_missing', subject: ids.authorized }),
      difference('posting_extra', ids.refunded, entry, null, moved(1_000)),
      ...[ids.back, ids.failed, ids.processing].map((id) =>
        misplaced(id, 'status of the payment', 'settled', 'failed'),
      ),
    ];
    expect(found).toHaveLength(expected.length);
    expect(found).toEqual(expect.arrayContaining(expected));
  });

  test('finds a second entry of one kind, and an entry of a resource that does not exist', async () => {
    const accounts = ['clearing.bank', 'balances.main.available'] as const;
    await setting.post('payment_settled:again', ...accounts, 1_000);
    await setting.change('ledger_postings', 'payment_settled:again', { resource_id: ids.refunded });
    await setting.post('payment_settled:nobody', ...accounts, 5);
    await setting.documents('refunds').deleteOne({ _id: ids.failed });
    const found = await setting.differences();
    expect(found.map(({ check, subject }) => [check, subject]).sort()).toEqual(
      [
        ['claim_without_resource', ids.failed],
        ['posting_extra', ids.refunded],
        ['posting_misnamed', 'payment_settled:again'],
        ['resource_missing', 'nobody'],
        ['resource_missing', ids.failed],
        ['resource_missing', ids.failed],
      ].sort(),
    );
  });

  test('finds an amount, a connector and a currency that differ from those of the entry', async () => {
    const { book } = setting;
    const dollars = `${setting.account_id}:sandbox:USD`;
    await setting.change('payments', ids.settled, { amount: 99_999_999_998 });
    await setting.change('refunds', ids.back, { connector: 'other' });
    await setting.change('refunds', ids.failed, { currency: 'USD' });
    const differs = (kind: string, id: string, expected: string, found: string) =>
      difference('posting_differs', id, `${kind}:${id}`, expected, found);
    const accepted = 'balances.main.available -200, transit.refunds 200 in';
    const failed = 'balances.main.available 200, transit.refunds -200 in';
    await expectDifferences(
      misplaced(ids.back, 'connector', 'bank', 'other'),
      misplaced(ids.failed, 'currency', 'EUR', 'USD'),
      differs(
        ...(['payment_settled', ids.settled] as const),
        `balances.main.available 99999999998, clearing.bank -99999999998 in ${book}`,
        `balances.main.available 99999999999, clearing.bank -99999999999 in ${book}`,
      ),
      differs(
        ...(['refund_settled', ids.back] as const),
        `clearing.other 300, transit.refunds -300 in ${book}`,
        `clearing.bank 300, transit.refunds -300 in ${book}`,
      ),
      differs('refund_accepted', ids.failed, `${accepted} ${dollars}`, `${accepted} ${book}`),
      differs('refund_failed', ids.failed, `${failed} ${dollars}`, `${failed} ${book}`),
    );
  });

  test('finds a refund whose status its entries do not support', async () => {
    await setting.change('refunds', ids.back, { status: 'failed' });
    await setting.change('payments', ids.refunded, { refunded: 500 + 200 });
    const found = await setting.differences();
    expect(found.map(({ check, subject, part }) => [check, subject, part])).toEqual([
      missing(ids.back, 'refund_failed'),
      extra(ids.back, 'refund_settled'),
    ]);
  });

  test('finds a payment that counts other refunds than it has, or more than its amount', async () => {
    const tooMuch = 100_000_000_000;
    await setting.change('payments', ids.refunded, { refunded: 0 });
    await setting.change('payments', ids.settled, { refunded: tooMuch });
    await expectDifferences(
      difference('refunded_differs', ids.refunded, 'refunded', 1_000, 0),
      difference('refunded_differs', ids.settled, 'refunded', 0, tooMuch),
      difference('refunded_exceeds', ids.settled, 'refunded', 'at most 99999999999', tooMuch),
    );
  });
});

describe('ledger verify, of payouts', () => {
  const expectParts = async (...parts: string[][]) => {
    const found = await setting.differences();
    expect(found.map(({ check, subject, part }) => [check, subject, part]).sort()).toEqual(
      parts.sort(),
    );
  };

  test('finds a status that the entries do not support', async () => {
    await setting.change('payouts', paidOut.created, { status: 'sent' });
    await setting.change('payouts', paidOut.sent, { status: 'submitted' });
    await setting.change('payouts', paidOut.completed, { status: 'returned' });
    await setting.change('payouts', paidOut.returned, { status: 'failed' });
    await expectParts(
      missing(paidOut.created, 'payout_captured'),
      extra(paidOut.sent, 'payout_captured'),
      missing(paidOut.completed, 'payout_returned'),
      missing(paidOut.returned, 'payout_reversed'),
      extra(paidOut.returned, 'payout_returned'),
    );
  });

  test('expects a release of a failed payout that was not sent, and else a reversal', async () => {
    await setting.change('payouts', paidOut.failed, { sent_at: '2026-03-01T12:00:00.000Z' });
    await setting.change('payouts', paidOut.failedAfterSent, { sent_at: null });
    await expectParts(
      missing(paidOut.failed, 'payout_captured'),
      missing(paidOut.failed, 'payout_reversed'),
      extra(paidOut.failed, 'payout_released'),
      missing(paidOut.failedAfterSent, 'payout_released'),
      extra(paidOut.failedAfterSent, 'payout_captured'),
      extra(paidOut.failedAfterSent, 'payout_reversed'),
    );
  });

  test('finds an amount, a fee, a balance and a connector that differ from those of the entry', async () => {
    await setting.change('payouts', paidOut.created, { fee: 49 });
    await setting.change('payouts', paidOut.submitted, { balance_account: 'main' });
    await setting.change('payouts', paidOut.sent, { connector: 'other' });
    await setting.change('payouts', paidOut.returned, { amount: 999, fee: 51 });
    const differs = (kind: string, id: string, expected: string, found: string) => {
      const inBook = (text: string) => `${text} in ${setting.payoutsBook}`;
      return difference('posting_differs', id, `${kind}:${id}`, inBook(expected), inBook(found));
    };
    const reserved = (balance: string, amount: number) =>
      `balances.${balance}.available -${amount}, balances.${balance}.reserved ${amount}`;
    const captured = (connector: string, amount: number, fee: number) =>
      `balances.ads.reserved -1050, clearing.${connector} ${amount}, income.fees ${fee}`;
    const returned = (amount: number) =>
      `balances.ads.available ${amount}, clearing.bank -${amount}`;
    const [ads, bank] = [reserved('ads', 1_050), captured('bank', 1_000, 50)];
    await expectDifferences(
      differs('payout_reserved', paidOut.created, reserved('ads', 1_049), ads),
      differs('payout_reserved', paidOut.submitted, reserved('main', 1_050), ads),
      differs('payout_captured', paidOut.sent, captured('other', 1_000, 50), bank),
      differs('payout_captured', paidOut.returned, captured('bank', 999, 51), bank),
      differs('payout_returned', paidOut.returned, returned(999), returned(1_000)),
    );
  });

  test('finds entries of a payout that does not exist', async () => {
    await setting.documents('payouts').deleteOne({ _id: paidOut.sent });
    await expectParts(
      ['claim_without_resource', paidOut.sent, 'createPayout'],
      ['resource_missing', paidOut.sent, `payout_captured:${paidOut.sent}`],
      ['resource_missing', paidOut.sent, `payout_reserved:${paidOut.sent}`],
    );
  });
});

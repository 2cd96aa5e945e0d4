import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import { dirname, join } from 'node:path';
import { type Document, Long, MongoClient } from 'mongodb';
import { eventId } from '../../src/base/ids';
import { inTransaction } from '../../src/base/mongo';
import { createLedgerStore } from '../../src/ledger/book';
import { type NewEntry, operationId } from '../../src/ledger/entries';
import { ENTRY_LINES } from '../../src/ledger/entry-lines';
import type { Check } from '../../src/ledger-check/compare';
import { readTrialBalance } from '../../src/ledger-check/trial-balance';
import type { TrialBalanceOptions } from '../../src/ledger-check/trial-balance-clearing';
import { type VerifyOptions, verifyLedger } from '../../src/ledger-check/verify';
import { addBankAccount } from '../../src/service/banks/bank-accounts';
import { fundSandbox } from '../../src/service/money/balances/fund';
import { operatorsAudit } from '../support/audit';
import { retryUntilDone } from '../support/eventually';
import { useFixture } from '../support/fixture';
import {
  authorizedPayment,
  openRecords,
  openRefund,
  type Records,
  settle,
  transitionRefund,
} from '../support/records';
import { mongodbUri } from '../support/servers';
import { commandsIn } from './cli';

/** Writes around the validators, as before they were set. */
const PAST_VALIDATORS = { bypassDocumentValidation: true } as const;

const account_id = 'acct_ledger';
const book = `${account_id}:sandbox:EUR`;
const MOST = 99_999_999_999;
/** Time at which entries of a trial balance are posted unless it says otherwise. */
const POSTED_AT = '2026-03-04T05:06:07.089Z';
const NEXT_DAY = '2026-03-05T00:00:00.000Z';
type Stored = { _id: string } & Document;

/** Makes 7 journal entries: a payment authorised, two settled, one of these sent back in refunds. */
async function payIn(records: Records) {
  const payment = (amount: number) => authorizedPayment(records, { account_id, amount });
  const [open, great, small] = [await payment(700), await payment(MOST), await payment(1_000)];
  await settle(records, great);
  await settle(records, small);
  const refund = async (amount: number | null, to?: 'settled' | 'failed') => {
    const { refund_id, opening } = await openRefund(records, small, amount);
    expect(opening.outcome).toBe('accepted');
    if (to !== undefined) await transitionRefund(records, small, refund_id, to);
    return refund_id;
  };
  return {
    authorized: open.payment_id,
    settled: great.payment_id,
    refunded: small.payment_id,
    back: await refund(300, 'settled'),
    failed: await refund(200, 'failed'),
    processing: await refund(null),
  };
}

type Ledger = Awaited<ReturnType<typeof openLedger>>;
type Entry = Pick<NewEntry, 'kind' | 'lines'> & Partial<NewEntry>;

/** A small healthy database, to falsify past the service and to restore. */
async function openLedger() {
  const records = await openRecords();
  const { db, mongo, stores } = records;
  const database = db.databaseName;
  const deps = { mongo, stores, now: () => new Date(), audit: operatorsAudit(stores) };
  await retryUntilDone(() => fundSandbox(deps, account_id));
  const ids = await payIn(records);
  await inTransaction(mongo, (session) => stores.ledger.applyPending(book, session));
  const account = { connector: 'sandbox', livemode: false, currency: 'EUR' };
  const routes = { liveConnectors: '', sandboxConnectors: '' };
  const { _id: bank } = await addBankAccount(
    { ...deps, ...routes },
    { ...account, iban: 'DE89370400440532013000' },
  );
  const documents = (name: string) => db.collection<Stored>(name);
  const listNames = async () => (await db.collections()).map((each) => each.collectionName);
  const saved = new Map<string, Stored[]>();
  for (const name of await listNames()) {
    saved.set(name, await documents(name).find({}, { promoteLongs: false }).toArray());
  }
  const hash = async (): Promise<Record<string, string>> =>
    (await db.command({ dbHash: 1 }))['collections'];
  const hashes = await hash();
  const post = async (change: Entry, at = POSTED_AT) => {
    const owner = { account_id: 'acct_1', livemode: false, currency: 'EUR', at };
    const entry = { ...owner, resource_id: randomUUID(), ...change };
    const store = createLedgerStore(db, () => new Date(at));
    await inTransaction(mongo, (session) => store.post(entry, session));
    return operationId(entry);
  };
  return {
    ...records,
    database,
    ids,
    bank,
    documents,
    post,
    ...commandsIn({ DATA_DIR: 'none', MONGODB_URI: mongodbUri(), MONGODB_DB: database }),
    /** Writes collections that have changed as they were. */
    restore: async () => {
      for (const [name, found] of Object.entries(await hash())) {
        if (found === hashes[name]) continue;
        await documents(name).deleteMany();
        const all = saved.get(name) ?? [];
        if (all.length > 0) await documents(name).insertMany(all);
      }
    },
    /** Sets fields of one document. */
    change: async (name: string, _id: string, fields: Document) => {
      const change = { $set: fields };
      const { modifiedCount } = await documents(name).updateOne({ _id }, change, PAST_VALIDATORS);
      expect(modifiedCount).toBe(1);
    },
    /** Writes an entry to the book of euros, and its balances. */
    insertEntry: async (_id: string, from: string, to: string, amount: number) => {
      const [kind = '', resource_id = ''] = _id.split(':');
      const lines = Object.entries({ [from]: -amount, [to]: amount }).map(([account, sum]) => {
        return { account, amount: Long.fromNumber(sum) };
      });
      const entry = { _id, book, kind, resource_id, at: '2026-03-01T12:00:00.000Z', lines };
      await documents('journal_entries').insertOne(entry);
      const changes = { [from]: -amount, [to]: amount };
      const books = documents('ledger_books');
      await books.updateOne({ _id: book }, { $inc: changes }, PAST_VALIDATORS);
    },
    /** Posts an opening and a line of a statement to the book of the bank account. */
    postLines: async () => {
      const [opening, lines] = [ENTRY_LINES.bank_opening(500), { clearing: 995, bank_fees: -5 }];
      return [
        await post({ account_id: bank, kind: 'bank_opening', resource_id: bank, lines: opening }),
        await post({ account_id: bank, kind: 'bank_line', lines: ENTRY_LINES.bank_line(lines) }),
      ] as const;
    },
    settle: (amount: number, change: Partial<NewEntry> = {}) => {
      const lines = ENTRY_LINES.payment_settled('sandbox', amount);
      return post({ kind: 'payment_settled', lines, ...change });
    },
    clear: (id: string) => {
      const store = createLedgerStore(db, () => new Date(NEXT_DAY));
      return inTransaction(mongo, (session) => store.clear([id], session));
    },
    verify: async (options: VerifyOptions = {}) => {
      const { differences, differences_total } = await verifyLedger(mongo, database, options);
      expect(differences_total).toBe(differences.length);
      return differences.map(({ check, subject, part, expected, found }): Row => {
        return [check, subject, part, expected, found];
      });
    },
    readTrial: (options: Omit<TrialBalanceOptions, 'now'> = {}) =>
      readTrialBalance(mongo, database, { now: () => new Date(), ...options }),
  };
}

type Row = [check: Check, subject: string, part: unknown, expected: unknown, found: unknown];

const ledger: Ledger = useFixture(openLedger, (opened) => opened.close());
const documents = (name: string) => ledger.documents(name);
const change = (...args: Parameters<Ledger['change']>) => ledger.change(...args);
afterEach(() => ledger.restore());

const text: unknown = expect.any(String);
const missing = (id: string, kind: string): Row => ['posting_missing', id, kind, text, null];
const lost = (id: string, entry: string): Row => ['resource_missing', id, entry, id, null];
const differs = (id: string, kind: string, expected: string, found: string): Row => {
  return ['posting_differs', id, `${kind}:${id}`, expected, found];
};

describe('a verification of the ledger', () => {
  test('finds no difference in books that the product wrote, of merchants and of a bank account', async () => {
    await ledger.postLines();
    const lines = ENTRY_LINES.adjusted('main', 5, 'clearing:sandbox');
    await ledger.post({ kind: 'adjusted', lines });
    expect(await ledger.verify()).toEqual([]);
    expect(await ledger.verify({ full: true })).toEqual([]);
  });

  const FALSIFIED: Record<string, (ledger: Ledger) => Promise<Row[]>> = {
    'a stored balance that its entry lines do not sum to': async () => {
      const balances = { 'balances.main.available': 5, 'external.funding': '7' };
      await change('ledger_books', book, balances);
      return [
        ['balance_differs', book, 'balances.main.available', 100_009_999_999, 5],
        ['balance_differs', book, 'external.funding', -11_000_000, '7'],
        ['book_unbalanced', book, null, 0, expect.any(Number)],
      ];
    },
    'a balance without entry lines, lines without a balance, and a deleted book': async () => {
      const dollars = `${account_id}:sandbox:USD`;
      await change('ledger_books', book, { 'balances.other': { available: 0 } });
      await documents('ledger_books').updateOne({ _id: book }, { $unset: { transit: 1 } });
      await documents('ledger_books').deleteOne({ _id: dollars });
      return [
        ['balance_differs', book, 'balances.other.available', null, 0],
        ['balance_differs', book, 'transit.refunds', 700, null],
        ['book_unbalanced', book, null, 0, -700],
        ['balance_differs', dollars, 'balances.main.available', 10_000_000, null],
        ['balance_differs', dollars, 'balances.marketing.available', 1_000_000, null],
        ['balance_differs', dollars, 'external.funding', -11_000_000, null],
      ];
    },
    'a negative balance, though every entry line is there': async () => {
      const part = 'balances.marketing.available';
      await ledger.insertEntry(`funded:${randomUUID()}`, part, 'external.funding', 1_000_001);
      return [['balance_negative', book, part, 'at least 0', -1]];
    },
    'an entry whose lines do not sum to 0, and the book that it unbalances': async () => {
      const id = `funded:sandbox_funds:${account_id}:main:EUR`;
      await change('journal_entries', id, { 'lines.1.amount': Long.fromNumber(10_000_001) });
      const more = { $inc: { 'balances.main.available': 1 } };
      await documents('ledger_books').updateOne({ _id: book }, more);
      return [
        ['posting_unbalanced', id, null, 0, 1],
        ['book_unbalanced', book, null, 0, 1],
      ];
    },
    'an id that does not follow from the content, and an unknown kind': async () => {
      const pounds = `${account_id}:sandbox:GBP`;
      await ledger.insertEntry('funded:a', 'external.funding', 'balances.main.available', 1);
      await change('journal_entries', 'funded:a', { resource_id: 'b' });
      await ledger.insertEntry('gift:c', 'external.funding', 'balances.main.available', 1);
      await change('ledger_books', pounds, { account_id: 'acct_other' });
      return [
        ['posting_misnamed', 'funded:a', null, 'funded:b', 'funded:a'],
        ['posting_unknown', 'gift:c', 'kind', null, 'gift'],
        ['book_misnamed', pounds, null, 'acct_other:sandbox:GBP', pounds],
      ];
    },
    'entries of a bank account that does not exist': async ({ bank }) => {
      const [opening, line] = await ledger.postLines();
      await documents('bank_accounts').deleteOne({ _id: bank });
      return [lost(bank, opening), lost(bank, line)];
    },
    'an entry of a bank account in a book of another currency': async ({ bank }) => {
      const lines = ENTRY_LINES.bank_line({ clearing: 5 });
      const dollars = { account_id: bank, currency: 'USD' };
      const id = await ledger.post({ ...dollars, kind: 'bank_line', lines });
      return [['posting_differs', bank, id, `${bank}:sandbox:EUR`, `${bank}:sandbox:USD`]];
    },
    'an entry of a bank in a book of a merchant, and the other way round': async ({ bank }) => {
      const lines = ENTRY_LINES.bank_line({ clearing: 5 });
      const id = await ledger.post({ kind: 'bank_line', lines });
      const funded = { kind: 'funded', lines: ENTRY_LINES.funded('main', 5) } as const;
      const other = await ledger.post({ account_id: bank, ...funded });
      return [
        ['entry_misplaced', id, 'book', null, 'acct_1:sandbox:EUR'],
        lost('acct_1', id),
        ['entry_misplaced', other, 'book', null, `${bank}:sandbox:EUR`],
      ];
    },
    'a transition without its event': async ({ ids }) => {
      const event = eventId('payment', ids.settled, 3);
      await documents('events').deleteOne({ _id: event });
      await documents('refunds').updateOne({ _id: ids.failed }, { $inc: { transition: 1 } });
      return [
        ['event_missing', ids.settled, 'transition 3', event, null],
        ['event_missing', ids.failed, 'transition 3', eventId('refund', ids.failed, 3), null],
      ];
    },
    'money of the sandbox bank in a live book': async () => {
      const lines = ENTRY_LINES.adjusted('main', 5, 'clearing:sandbox');
      const id = await ledger.post({ kind: 'adjusted', livemode: true, lines });
      return [['sandbox_in_live', id, 'clearing.sandbox', null, 'acct_1:live:EUR']];
    },
    'an unknown status': async ({ ids }) => {
      await change('payments', ids.authorized, { status: 'clawed_back' });
      return [['status_unknown', ids.authorized, 'status', null, 'clawed_back']];
    },
    'an idempotency record without its resource, and one left open next to it': async ({ ids }) => {
      const records = documents('idempotency_records');
      const open = { request: { stored: {} } };
      await records.updateOne({ resource_id: ids.settled }, { $set: open });
      const gone = { resource_id: 'nothing' };
      await records.updateOne({ resource_id: ids.authorized }, { $set: gone });
      // A recipient is written before its idempotency record is emptied.
      await documents('recipients').insertOne({ _id: 'recipient', kid: 'k1' });
      const use = { resource_id: 'recipient', operation: 'createRecipient' };
      await records.insertOne({ _id: 'recipient-record', ...use, request: {} });
      return [
        ['claim_left_open', ids.settled, 'createPayment', null, 'open'],
        ['claim_without_resource', 'nothing', 'createPayment', 'nothing', null],
      ];
    },
    'a refund whose payment is in the other environment, or does not exist': async ({ ids }) => {
      await change('payments', ids.refunded, { livemode: true });
      await change('refunds', ids.failed, { payment_id: 'nothing' });
      const elsewhere = ['livemode', 'true', 'false'] as const;
      return [
        ['refund_misplaced', ids.back, ...elsewhere],
        ['refund_misplaced', ids.processing, ...elsewhere],
        ['refund_misplaced', ids.failed, 'payment_id', 'nothing', null],
        ['posting_differs', ids.refunded, `payment_settled:${ids.refunded}`, text, text],
      ];
    },
    'a settled payment without its entry, and an entry of one that is not settled': async ({
      ids,
    }) => {
      await documents('journal_entries').deleteOne({ _id: `payment_settled:${ids.settled}` });
      const without = { 'balances.main.available': -MOST, 'clearing.bank': MOST };
      await documents('ledger_books').updateOne({ _id: book }, { $inc: without });
      await change('payments', ids.authorized, { status: 'settled' });
      await change('payments', ids.refunded, { status: 'failed' });
      const describeLines = (amount: number) =>
        `balances.main.available ${amount}, clearing.bank -${amount} in ${book}`;
      const entry = `payment_settled:${ids.refunded}`;
      return [
        ['posting_missing', ids.settled, 'payment_settled', describeLines(MOST), null],
        missing(ids.authorized, 'payment_settled'),
        ['posting_extra', ids.refunded, entry, null, describeLines(1_000)],
        ...[ids.back, ids.failed, ids.processing].map((id): Row => {
          return ['refund_misplaced', id, 'status of the payment', 'settled', 'failed'];
        }),
      ];
    },
    'a second entry of one kind, and one of a resource that does not exist': async ({ ids }) => {
      const accounts = ['clearing.bank', 'balances.main.available'] as const;
      const again = 'payment_settled:again';
      await ledger.insertEntry(again, ...accounts, 1_000);
      await change('journal_entries', again, { resource_id: ids.refunded });
      await ledger.insertEntry('payment_settled:nobody', ...accounts, 5);
      await documents('refunds').deleteOne({ _id: ids.failed });
      const expected = `payment_settled:${ids.refunded}`;
      return [
        ['claim_without_resource', ids.failed, 'createRefund', ids.failed, null],
        ['posting_extra', ids.refunded, text, null, text],
        ['posting_misnamed', again, null, expected, again],
        lost('nobody', 'payment_settled:nobody'),
        lost(ids.failed, `refund_accepted:${ids.failed}`),
        lost(ids.failed, `refund_failed:${ids.failed}`),
      ];
    },
    'an amount, a connector and a currency that differ from the entry': async ({ ids }) => {
      const dollars = `${account_id}:sandbox:USD`;
      await change('payments', ids.settled, { amount: MOST - 1 });
      await change('refunds', ids.back, { connector: 'other' });
      await change('refunds', ids.failed, { currency: 'USD' });
      const settled = (amount: number) =>
        `balances.main.available ${amount}, clearing.bank -${amount} in ${book}`;
      const back = (name: string) => `clearing.${name} 300, transit.refunds -300 in ${book}`;
      const accepted = 'balances.main.available -200, transit.refunds 200 in';
      const failed = 'balances.main.available 200, transit.refunds -200 in';
      return [
        ['refund_misplaced', ids.back, 'connector', 'bank', 'other'],
        ['refund_misplaced', ids.failed, 'currency', 'EUR', 'USD'],
        differs(ids.settled, 'payment_settled', settled(MOST - 1), settled(MOST)),
        differs(ids.back, 'refund_settled', back('other'), back('bank')),
        differs(ids.failed, 'refund_accepted', `${accepted} ${dollars}`, `${accepted} ${book}`),
        differs(ids.failed, 'refund_failed', `${failed} ${dollars}`, `${failed} ${book}`),
      ];
    },
    'a payment that counts other refunds than it has, or more than its amount': async ({ ids }) => {
      const tooMuch = MOST + 1;
      await change('payments', ids.refunded, { refunded: 0 });
      await change('payments', ids.settled, { refunded: tooMuch });
      return [
        ['refunded_differs', ids.refunded, 'refunded', 1_000, 0],
        ['refunded_differs', ids.settled, 'refunded', 0, tooMuch],
        ['refunded_exceeds', ids.settled, 'refunded', 'at most 99999999999', tooMuch],
      ];
    },
  };

  test.each(Object.entries(FALSIFIED))('finds %s', async (_, falsify) => {
    const expected = await falsify(ledger);
    const found = await ledger.verify();
    expect(found).toHaveLength(expected.length);
    expect(found).toEqual(expect.arrayContaining(expected));
  });

  test('accepts that an event is missing which the retention may have deleted', async () => {
    const { change, documents, ids, verify } = ledger;
    const event = eventId('payment', ids.settled, 3);
    await documents('events').deleteOne({ _id: event });
    const old = new Date(Date.now() - 400 * 86_400_000).toISOString();
    await change('payments', ids.settled, { created_at: old });
    const runs = documents('schedule_runs');
    await runs.insertOne({ _id: 'retention', events_before: old });
    expect(await verify({ full: true })).toEqual([
      ['event_missing', ids.settled, 'transition 3', event, null],
    ]);
    const events_before = new Date(Date.parse(old) + 1).toISOString();
    await runs.updateOne({ _id: 'retention' }, { $set: { events_before } });
    expect(await verify({ full: true })).toEqual([]);
  });

  test('finds an event of a deleted resource when it is full, and leaves out a test event', async () => {
    const about = { type: 'refund.settled', resource_id: 'nothing', account_id, livemode: false };
    const events = [{}, { test: true }].map((data, position) => {
      return { _id: `evt_${position}`, ...about, data, position };
    });
    await ledger.documents('events').insertMany(events);
    expect(await ledger.verify()).toEqual([]);
    expect(await ledger.verify({ full: true })).toEqual([
      ['event_without_resource', 'evt_0', 'resource_id', 'nothing', null],
    ]);
  });

  test('reads each book from one snapshot, so that money may move meanwhile', async () => {
    const runtimeAdapters = { os };
    const client = new MongoClient(mongodbUri(), { monitorCommands: true, runtimeAdapters });
    const writes: Document[] = [];
    const reads: { collection: string; concern: Document }[] = [];
    client.on('commandStarted', ({ commandName, command }) => {
      const concern: Document = command['readConcern'] ?? {};
      if (commandName === 'find') reads.push({ collection: command['find'], concern });
      if (commandName !== 'update') return;
      writes.push({ after: reads.length, ...command['writeConcern'] });
    });
    await verifyLedger(await client.connect(), ledger.database);
    await client.close();
    // A snapshot is of what a majority has: by then it has all.
    expect(writes[0]).toEqual({ after: 0, w: 'majority', j: true });
    const of = (...names: string[]) => reads.filter(({ collection }) => names.includes(collection));
    const books = of('ledger_books').filter(({ concern }) => concern['level'] === 'snapshot');
    expect(books).toHaveLength(3);
    for (const { concern } of books) {
      const { atClusterTime } = concern;
      expect(atClusterTime).toBeDefined();
      const same = reads.filter((each) => each.concern['atClusterTime'] === atClusterTime);
      expect(same.map(({ collection }) => collection)).toContain('journal_entries');
    }
    const resources = of('payments', 'refunds', 'payouts', 'events', 'idempotency_records');
    const levels = new Set(resources.map(({ concern }) => concern['level']));
    expect([...levels]).toEqual(['snapshot']);
  });
});

describe('ledger verify', () => {
  test('prints that nothing differs, of all books or one, and refuses one that does not exist', async () => {
    const verify = 'ledger verify';
    const stdout = '13 postings in 3 books: nothing differs.\n';
    expect(await ledger.cli(verify)).toEqual({ exit: 0, stdout, stderr: '' });
    const data = {
      ...{ books: 1, postings: 9, differences: [], differences_total: 0 },
      ...{ checkpoints_sealed: 0, heads: [] },
    };
    expect(await ledger.json(`${verify} --full --book ${book}`)).toEqual({ data });
    const { code } = await ledger.refusal(`${verify} --book acct_none:live:EUR`);
    expect(code).toBe('book_not_found');
    const event = { _id: 'evt_1', type: 'refund.settled', resource_id: 'nothing' };
    await ledger.documents('events').insertOne({ ...event, account_id, livemode: false });
    expect((await ledger.cli(verify)).exit).toBe(0);
    expect((await ledger.cli(`${verify} --full`)).exit).toBe(1);
  });

  test('lists 100 differences, counts the others, and says on stderr how many there are', async () => {
    const faulty = Array.from({ length: 150 }, (_, n) => ({
      ...{ _id: `funded:${n}`, kind: 'funded', resource_id: `${n}`, book },
      lines: [{ account: 'external.funding', amount: 1 }],
    }));
    await ledger.documents('journal_entries').insertMany(faulty, PAST_VALIDATORS);
    const { exit, stdout, stderr } = await ledger.cli('ledger', 'verify');
    expect({ exit, stderr }).toEqual({ exit: 1, stderr: 'The ledger has 151 differences.\n' });
    expect(stdout).toMatch(/^163 postings in 3 books: 151 differences\.\n\nCHECK +SUBJECT +PART/);
    expect(stdout.match(/^posting_unbalanced +funded:\d+ +- +0 +1$/gm)).toHaveLength(100);
    expect(stdout).toMatch(/\n\nThere are 51 more\.\n$/);
    const inJson = await ledger.cli('ledger', 'verify', '--json');
    const { data } = JSON.parse(inJson.stdout);
    expect([data.differences.length, data.differences_total]).toEqual([100, 151]);
    expect(JSON.parse(inJson.stderr).error.code).toBe('ledger_differs');
  });

  test('reports a checkpoint of the file of --against that the book lacks', async () => {
    const file = join(mkdtempSync(join(os.tmpdir(), 'heads-')), 'heads.json');
    const heads = [{ book: 'acct_gone:live:EUR', number: 1, hash: 'ab' }];
    writeFileSync(file, JSON.stringify({ data: { heads } }));
    const verify = `ledger verify --against ${file}`;
    const { exit, stdout } = await ledger.cli(verify, '--json');
    const found = { check: 'checkpoint_not_as_kept', expected: 'ab', found: null };
    const { data } = JSON.parse(stdout);
    expect([exit, data]).toMatchObject([1, { differences: [found], differences_total: 1 }]);
    writeFileSync(file, '{}');
    expect((await ledger.refusal(verify)).code).toBe('file_invalid');
    rmSync(dirname(file), { recursive: true });
  });
});

describe('a trial balance', () => {
  beforeEach(async () => {
    for (const name of ['journal_entries', 'entry_states', 'ledger_books']) {
      await ledger.documents(name).deleteMany();
    }
  });

  const postLine = (fields: Entry) => ledger.post({ account_id: ledger.bank, ...fields }, NEXT_DAY);

  /** Imports a statement: one line matches, one is a fee, and one is unknown. */
  async function importStatement() {
    const paid = await ledger.settle(1_000);
    const waiting = await ledger.settle(700, { account_id: 'acct_2' });
    const { bank_opening, bank_line } = ENTRY_LINES;
    await postLine({ kind: 'bank_opening', lines: bank_opening(500) });
    await postLine({ kind: 'bank_line', lines: bank_line({ clearing: 1_000 }) });
    await ledger.clear(paid);
    await postLine({ kind: 'bank_line', lines: bank_line({ bank_fees: -5 }) });
    const unknown = { kind: 'bank_line', resource_id: 'stmt_1:3' } as const;
    await postLine({ ...unknown, lines: bank_line({ unmatched: 33 }) });
    return { paid, waiting, bankBook: `${ledger.bank}:sandbox:EUR` };
  }

  const inTransit = (amount: bigint, ...ids: string[]) => ({
    ...{ code: 'in_transit', amount, currency: 'EUR', ids },
    message: expect.stringMatching(
      /^sandbox sandbox EUR: \d movements? on no statement; the oldest is of 2026-03-04, \d+ days old\.$/,
    ),
  });
  const unmatched = {
    ...{ code: 'unmatched', amount: 33n, currency: 'EUR', ids: ['stmt_1:3'] },
    message: expect.stringContaining('1 statement line without an entry; the oldest is of 2026-03'),
  };
  const empty = { rows: [], rows_total: 0, totals: [], findings: [] };
  const readFindings = async () => (await ledger.readTrial()).findings;

  test('has money in transit and unmatched statement lines, also of a past time', async () => {
    const { paid, waiting, bankBook } = await importStatement();
    const { rows, rows_total, totals, findings } = await ledger.readTrial();
    expect(rows.map((row) => [row.book, row.account, row.balance])).toEqual([
      ['acct_1:sandbox:EUR', 'balances.main.available', 1_000n],
      ['acct_1:sandbox:EUR', 'clearing.sandbox', -1_000n],
      ['acct_2:sandbox:EUR', 'balances.main.available', 700n],
      ['acct_2:sandbox:EUR', 'clearing.sandbox', -700n],
      [bankBook, 'cash', -1_528n],
      [bankBook, 'clearing', 1_000n],
      [bankBook, 'expense.bank_fees', -5n],
      [bankBook, 'external.opening', 500n],
      [bankBook, 'suspense.unmatched', 33n],
    ]);
    expect(rows_total).toBe(9);
    expect(totals).toEqual([{ env: 'sandbox', currency: 'EUR', sum: 0n }]);
    expect(findings).toEqual([inTransit(700n, waiting), unmatched]);
    const then = await ledger.readTrial({ at: POSTED_AT });
    expect(then.rows).toHaveLength(4);
    expect(then.findings).toEqual([inTransit(1_700n, ...[waiting, paid].sort())]);
    expect(await ledger.readTrial({ at: NEXT_DAY })).toEqual(await ledger.readTrial());
    expect(await ledger.readTrial({ at: '2026-03-04T05:06:07.088Z' })).toEqual(empty);
  });

  test('counts a line that is matched or unmatched later in its current state, and a book out of balance', async () => {
    const { waiting, bankBook } = await importStatement();
    const line = { resource_id: 'stmt_1:3', step: '1' };
    const { bank_line_matched, bank_line_unmatched } = ENTRY_LINES;
    const lines = bank_line_matched({ clearing: 33 });
    await postLine({ ...line, kind: 'bank_line_matched', lines });
    await ledger.clear(await ledger.settle(33));
    expect(await readFindings()).toEqual([inTransit(700n, waiting)]);
    // Two open lines, though they sum to 0.
    const less = { kind: 'bank_line', resource_id: 'stmt_1:4' } as const;
    await postLine({ ...less, lines: ENTRY_LINES.bank_line({ unmatched: -33 }) });
    const back = bank_line_unmatched({ clearing: 33 });
    await postLine({ ...line, kind: 'bank_line_unmatched', lines: back });
    // The entry still counts as matched.
    const differing = { code: 'clearing_differs', amount: -33n, ids: [bankBook] };
    const open = { code: 'unmatched', amount: 0n, ids: ['stmt_1:3', 'stmt_1:4'] };
    expect(await readFindings()).toMatchObject([inTransit(700n, waiting), open, differing]);
    const books = ledger.documents('ledger_books');
    await books.updateOne({ _id: bankBook }, { $inc: { cash: Long.fromNumber(7) } });
    const { totals, findings } = await ledger.readTrial();
    expect(totals).toEqual([{ env: 'sandbox', currency: 'EUR', sum: 7n }]);
    expect(findings[0]).toEqual({
      ...{ code: 'book_unbalanced', amount: 7n, currency: 'EUR', ids: [bankBook] },
      message: 'Books in sandbox EUR do not sum to 0: run ledger verify.',
    });
  });

  const creditEther = (livemode: boolean) => {
    const lines = ENTRY_LINES.crypto_payment_credited('evm', 10n ** 20n);
    const ether = { kind: 'crypto_payment_credited', currency: 'ETH.ethereum' } as const;
    return ledger.post({ ...ether, livemode, lines });
  };

  test('sums each environment and each asset by itself', async () => {
    await ledger.settle(700, { livemode: true });
    await creditEther(false);
    const { rows, totals, findings } = await ledger.readTrial();
    expect(rows.map((row) => `${row.book} ${row.balance}`)).toEqual([
      ...['acct_1:live:EUR 700', 'acct_1:live:EUR -700'],
      'acct_1:sandbox:ETH.ethereum 100000000000000000000',
      'acct_1:sandbox:ETH.ethereum -100000000000000000000',
    ]);
    expect(totals).toEqual([
      { env: 'sandbox', currency: 'ETH.ethereum', sum: 0n },
      { env: 'live', currency: 'EUR', sum: 0n },
    ]);
    // No bank account is registered on live.
    const unproved = { amount: 700n, currency: 'EUR', ids: [] };
    expect(findings).toMatchObject([{ code: 'no_bank_account', ...unproved }]);
    expect((await ledger.readTrial({ livemode: true })).rows).toEqual(rows.slice(0, 2));
    expect((await ledger.readTrial({ livemode: false })).rows).toEqual(rows.slice(2));
  });

  test('is printed by `ledger trial-balance` in a table for each currency, or as JSON', async () => {
    const command = 'ledger trial-balance';
    expect(await ledger.json(command)).toEqual(empty);
    const none = await ledger.cli(command);
    expect(none.stdout).toBe('There are no books.\n\nFindings: none.\n');
    const { bankBook } = await importStatement();
    const { stdout } = await ledger.cli(`${command} --env sandbox`);
    const rows = stdout.replaceAll(bankBook, 'BANK:sandbox:EUR  ').split('\n');
    const pad = ' '.repeat(bankBook.length - 'acct_1:sandbox:EUR'.length);
    expect(rows.slice(0, 4)).toEqual([
      'EUR, sandbox',
      `BOOK              ${pad}  ACCOUNT                  BALANCE`,
      `acct_1:sandbox:EUR${pad}  balances.main.available   €10.00`,
      `acct_1:sandbox:EUR${pad}  clearing.sandbox         -€10.00`,
    ]);
    expect(stdout).toMatch(/^Total +€0\.00$/m);
    expect(stdout).toMatch(/^in_transit +€7\.00 +sandbox sandbox EUR: 1 movement/m);
    expect(await ledger.json(`${command} --at ${POSTED_AT}`)).toMatchObject({
      ...{ rows: [{ account: 'balances.main.available', balance: 1_000 }, {}, {}, {}] },
      ...{ rows_total: 4, totals: [{ env: 'sandbox', currency: 'EUR', sum: 0 }] },
      findings: [{ code: 'in_transit', amount: 1_700 }],
    });
    expect(await ledger.json(`${command} --env live`)).toEqual(empty);
    await creditEther(true);
    expect(await ledger.json(`${command} --env live`)).toMatchObject({
      ...{ rows: [{ balance: String(10n ** 20n) }, {}], totals: [{ sum: '0' }] },
    });
  });
});

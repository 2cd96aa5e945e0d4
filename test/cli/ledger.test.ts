import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import { join } from 'node:path';
import { type Document, Long, MongoClient } from 'mongodb';
import { verifyLedger } from '../../src/ledger-check/verify';
import { mongodbUri } from '../support/servers';
import { openProvisioning } from './cli';
import { difference, Report, useLedgerSetting } from './ledger-setting';

const setting = useLedgerSetting();

describe('ledger verify', () => {
  test('finds nothing where there is nothing', async () => {
    const empty = await openProvisioning();
    expect(await empty.json('ledger', 'verify')).toEqual({
      data: {
        books: 0,
        postings: 0,
        differences: [],
        differences_total: 0,
        checkpoints_sealed: 0,
        heads: [],
      },
    });
    expect((await empty.cli('ledger', 'verify')).stdout).toBe(
      '0 postings in 0 books: nothing differs.\n',
    );
    const refused = await empty.refusal('ledger', 'verify', '--book', 'acct_none:live:EUR');
    expect(refused.code).toBe('book_not_found');
    await empty.close();
  });

  test('finds nothing wrong with payments, refunds and payouts that the product wrote', async () => {
    expect(await setting.differences()).toEqual([]);
    const { exit, stdout } = await setting.cli('ledger', 'verify');
    expect({ exit, stdout }).toEqual({
      exit: 0,
      stdout: '28 postings in 4 books: nothing differs.\n',
    });
  });

  test('compares its checkpoints with those of a file', async () => {
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

  test('reads a book in one moment, so that money may move meanwhile', async () => {
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
    const kept = moments.filter(({ collection }) => collection === 'ledger_books');
    expect(kept).toHaveLength(4);
    for (const { concern } of kept) {
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

  test('tells a kept balance that its legs do not sum to', async () => {
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

  test('tells a balance without legs, legs without a balance, and a book that is gone', async () => {
    await setting.change('ledger_books', setting.book, { 'balances.other': { available: 0 } });
    await setting
      .documents('ledger_books')
      .updateOne({ _id: setting.book }, { $unset: { 'transit.refunds': 1 } });
    await setting.documents('ledger_books').deleteOne({ _id: `${setting.account_id}:sandbox:USD` });
    const found = await setting.differences();
    expect(found.filter(({ subject }) => subject === setting.book)).toEqual([
      difference('balance_differs', setting.book, 'balances.other.available', null, 0),
      difference('balance_differs', setting.book, 'transit.refunds', 700, null),
      difference('book_unbalanced', setting.book, null, 0, -700),
    ]);
    expect(found.filter(({ subject }) => subject.endsWith(':USD'))).toEqual(
      Object.entries({
        'balances.main.available': 10_000_000,
        'balances.marketing.available': 1_000_000,
        'external.funding': -11_000_000,
      }).map(([part, expected]) =>
        difference('balance_differs', `${setting.account_id}:sandbox:USD`, part, expected, null),
      ),
    );
  });

  test('tells a balance that is negative, though every leg is there', async () => {
    await setting.post(
      `funded:${randomUUID()}`,
      'balances.marketing.available',
      'external.funding',
      1_000_001,
    );
    expect(await setting.differences()).toEqual([
      difference(
        'balance_negative',
        setting.book,
        'balances.marketing.available',
        'at least 0',
        -1,
      ),
    ]);
  });

  test('tells a posting whose legs do not sum to 0, and the book it unbalances', async () => {
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

  test('tells names that the content does not give', async () => {
    await setting.post('funded:a', 'external.funding', 'balances.main.available', 1);
    await setting.change('ledger_postings', 'funded:a', { resource_id: 'b' });
    await setting.post('gift:c', 'external.funding', 'balances.main.available', 1);
    await setting.change('ledger_books', `${setting.account_id}:sandbox:GBP`, {
      account_id: 'acct_other',
    });
    expect(await setting.differences()).toEqual([
      difference('posting_misnamed', 'funded:a', null, 'funded:b', 'funded:a'),
      difference('posting_unknown', 'gift:c', 'kind', null, 'gift'),
      difference(
        'book_misnamed',
        `${setting.account_id}:sandbox:GBP`,
        null,
        'acct_other:sandbox:GBP',
        `${setting.account_id}:sandbox:GBP`,
      ),
    ]);
  });

  test('lists 100 differences and counts the others, in a table with words on stderr', async () => {
    const legs = [{ account: 'external.funding', amount: 1 }];
    const faulty = Array.from({ length: 150 }, (_, n) => ({
      _id: `funded:${n}`,
      kind: 'funded',
      resource_id: `${n}`,
      book: setting.book,
      legs,
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

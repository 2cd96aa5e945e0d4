import { randomUUID } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inTransaction } from '../../src/base/mongo';
import { type BankDecision, sandboxIban } from '../../src/domain/banks/sandbox';
import { ensureKeys } from '../../src/encryption/ensure-keys';
import { createMovementStore, sandboxBankDatabase } from '../../src/service/banks/sandbox';
import {
  type StatementFile,
  writeDayStatements,
  writeDueStatements,
} from '../../src/service/banks/sandbox-bank/statements';
import { readStatementFile } from '../../src/statements/read';
import { openMadeStatements } from '../../src/store/statements';
import { keepStatements } from '../../stack/statements';
import { useDatabase } from '../support/database';
import { eventually, retryUntilDone } from '../support/eventually';
import { useFreshFixture } from '../support/fixture';
import { mongodbUri } from '../support/servers';

const database = useDatabase();

describe('statements of the sandbox bank', () => {
  const DAY = '2026-11-20';

  /** A bank with movements of its own, and a clock that the test sets. */
  const bank = useFreshFixture(async () => {
    const { mongo, stores } = database;
    const name = `${database.db.databaseName}_${randomUUID().slice(0, 8)}`;
    const dataDir = mkdtempSync(join(tmpdir(), 'statements-'));
    const clock = { time: `${DAY}T10:00:00Z` };
    const now = () => new Date(clock.time);
    const own = mongo.db(sandboxBankDatabase(name));
    const movements = createMovementStore(own, now);
    await movements.ensureIndexes();
    const deps = { mongo, stores, database: name, dataDir, now };
    let booked = 0;
    return {
      clock,
      folder: join(dataDir, 'statements'),
      collection: (of: string) => own.collection(of),
      book: async (amount: number, change: Partial<BankDecision> = {}) => {
        booked += 1;
        const decision = {
          ...(amount > 0
            ? ({ resource: 'payment', name: 'settled' } as const)
            : ({ resource: 'payout', name: 'sent' } as const)),
          ...{ resource_id: `0b7d6d52-4a3f-4a5d-9b53-${String(booked).padStart(12, '0')}` },
          ...{ bank_reference: `B-${booked}`, decision: `cb_${booked}`, currency: 'EUR' },
          ...change,
          amount: Math.abs(amount),
        };
        await retryUntilDone(() =>
          inTransaction(mongo, (session) => movements.book(decision, session)),
        );
      },
      writeDue: () => writeDueStatements(deps),
      writeDay: (day = DAY) => writeDayStatements(deps, day),
      close: async () => {
        await own.dropDatabase();
        rmSync(dataDir, { recursive: true, force: true });
      },
    };
  });
  afterEach(() => bank.close());

  const formatBrief = ({ statement_id, day, opening, closing, lines }: StatementFile) =>
    [statement_id, day, opening, closing, lines].join(' ');
  const readText = (file: StatementFile | undefined) => readFileSync(file?.file ?? '', 'utf8');

  test('writes a statement of each account after each day, also for days that were missed', async () => {
    await bank.book(1_000);
    await bank.book(-300);
    await bank.book(77, { currency: 'JPY' });
    bank.clock.time = '2026-11-21T00:01:00Z';
    expect(await bank.writeDue()).toEqual([]);
    bank.clock.time = '2026-11-21T00:03:00Z';
    await bank.book(5_000);
    const first = ['SBX-EUR-000001 2026-11-20 0 700 2', 'SBX-JPY-000001 2026-11-20 0 77 1'];
    expect((await bank.writeDue()).map(formatBrief)).toEqual(first);
    bank.clock.time = '2026-11-23T09:00:00Z';
    const files = await bank.writeDue();
    expect(files.map(formatBrief)).toEqual([
      ...first,
      'SBX-EUR-000002 2026-11-21 700 5700 1',
      'SBX-JPY-000002 2026-11-21 77 77 0',
      'SBX-EUR-000003 2026-11-22 5700 5700 0',
      'SBX-JPY-000003 2026-11-22 77 77 0',
    ]);
    const names = files.map(({ day, statement_id }) => `${day}-${statement_id}.xml`);
    expect(readdirSync(bank.folder).sort()).toEqual(names.sort());
    expect(await bank.writeDue()).toEqual(files);
  });

  test('writes on demand what the last statement does not cover, and the same files again', async () => {
    expect(await bank.writeDay()).toEqual([]);
    await bank.book(1_000);
    const first = await bank.writeDay();
    const text = readText(first[0]);
    bank.clock.time = `${DAY}T11:00:00Z`;
    expect(await bank.writeDay()).toEqual(first);
    await bank.book(250);
    const both = await bank.writeDay();
    const briefs = ['SBX-EUR-000001 2026-11-20 0 1000 1', 'SBX-EUR-000002 2026-11-20 1000 1250 1'];
    expect(both.map(formatBrief)).toEqual(briefs);
    rmSync(first[0]?.file ?? '');
    expect(await bank.writeDay()).toEqual(both);
    expect(readText(first[0])).toBe(text);
    bank.clock.time = '2026-11-21T12:00:00Z';
    await bank.book(-50);
    expect((await bank.writeDay()).map(formatBrief)).toEqual([
      ...[...briefs, 'SBX-EUR-000003 2026-11-20 1250 1250 0'],
    ]);
    expect((await bank.writeDay('2026-11-21')).map(formatBrief)).toEqual([
      'SBX-EUR-000004 2026-11-21 1250 1200 1',
    ]);
    await expect(bank.writeDay('2026-11-22')).rejects.toThrow('has not begun');
  });

  test('puts each movement on one statement, however many processes write them while the bank books', async () => {
    const COUNT = 60;
    const booking = Array.from({ length: COUNT }, (_, n) => bank.book(n + 1));
    const writing = Array.from({ length: 4 }, async () => {
      for (let round = 0; round < 5; round += 1) await retryUntilDone(() => bank.writeDay());
    });
    await Promise.all([...booking, ...writing]);
    const files = await bank.writeDay();
    expect(files.reduce((sum, { lines }) => sum + lines, 0)).toBe(COUNT);
    const closings = files.map(({ closing }) => closing);
    expect(closings.at(-1)).toBe((COUNT * (COUNT + 1)) / 2);
    expect(files.map(({ opening }) => opening)).toEqual([0, ...closings.slice(0, -1)]);
  });

  test('completes a statement that a killed process began', async () => {
    await bank.book(1_000);
    await bank.book(500);
    const whole = await bank.writeDay();
    const text = readText(whole[0]);
    // As it stands after the first movement was added.
    const movements = bank.collection('movements');
    const [, second] = await movements.find().sort({ booked_at: 1, _id: 1 }).toArray();
    await movements.updateOne({ _id: second?._id }, { $set: { statement: null } });
    const credits = { count: 1, sum: 1_500 - Number(second?.['amount']) };
    await bank.collection('statements').updateOne({}, { $set: { state: 'open', credits } });
    rmSync(bank.folder, { recursive: true });
    expect(await bank.writeDay()).toEqual(whole);
    expect(readText(whole[0])).toBe(text);
  });

  test('writes a valid camt.053 file with both balances, the totals and an entry for each movement', async () => {
    await bank.book(-1_234_567, { currency: 'KWD' });
    await bank.book(20, { currency: 'KWD', bank_reference: 'A & <B>' });
    const [file] = await bank.writeDay();
    expect(readText(file)).toContain(
      '<TxsSummry><TtlCdtNtries><NbOfNtries>1</NbOfNtries><Sum>0.020</Sum></TtlCdtNtries>' +
        '<TtlDbtNtries><NbOfNtries>1</NbOfNtries><Sum>1234.567</Sum></TtlDbtNtries></TxsSummry>',
    );
    const day = { day: DAY, value_date: DAY, currency: 'KWD' };
    const [first, second] = [1, 2].map((n) => `0b7d6d524a3f4a5d9b5300000000000${n}`);
    const { format, statements } = await readStatementFile(Buffer.from(readText(file)));
    expect(format).toBe('camt.053.001.08');
    expect(statements).toMatchObject([
      {
        ...{ statement_id: 'SBX-KWD-000001', sequence: '1', iban: sandboxIban('KWD') },
        ...{ from_day: DAY, to_day: DAY, balances: { opening: 0, closing: -1_234_547 } },
        lines: [
          { ...day, amount: -1_234_567, reference: first, bank_reference: 'B-1' },
          { ...day, amount: 20, reference: second, bank_reference: 'A %26 %3CB%3E' },
        ],
      },
    ]);
    expect(file?.account).toBe(sandboxIban('KWD'));
    await bank.book(700, { resource: 'payout', resource_id: 'back', name: 'returned' });
    await bank.writeDay();
    for (const name of readdirSync(bank.folder)) {
      const { statements } = await readStatementFile(readFileSync(join(bank.folder, name)));
      const [statement, ...more] = statements;
      const sum = (statement?.lines ?? []).reduce((total, { amount }) => total + amount, 0);
      expect([more, statement?.balances]).toEqual([[], { opening: 0, closing: sum }]);
    }
  });
});

const DAY_MS = 86_400_000;
const dataDir = mkdtempSync(join(tmpdir(), 'stack-statements-'));
afterAll(() => rmSync(dataDir, { recursive: true }));

async function run(sandboxAutoplay: 'on' | 'off', lines: string[]) {
  const config = {
    ...{ mongodbUri: mongodbUri(), mongodbPort: 1, mongodbLogin: undefined, sepa: undefined },
    ...{ mongodbDb: database.db.databaseName, liveConnectors: '', sandboxConnectors: '' },
    ...{ dataDir, sandboxAutoplay },
  };
  const progress = { line: (line: string) => void lines.push(line) };
  return await keepStatements(config, ensureKeys(dataDir), progress, new AbortController().signal);
}

test('the launcher registers the sandbox accounts, and with autoplay imports the statements of past days', async () => {
  const { mongo, db, stores } = database;
  const earlier = () => new Date(Date.now() - 2 * DAY_MS);
  const own = mongo.db(sandboxBankDatabase(db.databaseName));
  const movements = createMovementStore(own, earlier);
  const payment = { resource: 'payment', name: 'settled', decision: 'd' } as const;
  await movements.ensureIndexes();
  for (const currency of ['AUD', 'CHF']) {
    const own = { resource_id: currency, bank_reference: `B-${currency}` };
    const movement = { ...payment, ...own, amount: 1_234, currency };
    await inTransaction(mongo, (session) => movements.book(movement, session));
  }
  const lines: string[] = [];
  const list = async () => (await stores.bankAccounts.list()).map(({ iban }) => iban);
  const manual = await run('off', lines);
  expect(await list()).toEqual(expect.arrayContaining(['EUR', 'GBP', 'USD'].map(sandboxIban)));
  await eventually('the accounts that moved money', async () => (await list()).length === 5);
  await manual.stop();
  const closing = async (currency: string) =>
    (await stores.bankAccounts.list({ currency }))[0]?.closing;
  expect(await closing('CHF')).toBeNull();

  const folder = join(dataDir, 'statements');
  const [damaged = ''] = readdirSync(folder).filter((name) => name.includes('AUD'));
  writeFileSync(join(folder, damaged), 'no statement');
  const isImported = async (currency: string) => (await closing(currency))?.amount === 1_234;
  const first = await run('on', lines);
  await eventually('a statement after one that is refused', () => isImported('CHF'));
  await first.stop();
  expect(await closing('AUD')).toBeNull();
  expect(lines).toEqual([expect.stringMatching(/^Sandbox statements: /)]);

  rmSync(join(folder, damaged));
  const second = await run('on', lines);
  await eventually('the statement that is written again', () => isImported('AUD'));
  await second.stop();
  await own.dropDatabase();
  expect(lines).toHaveLength(1);
});

test('statements that connectors have made are imported, whatever one of them cannot explain', async () => {
  const { mongo, db, stores } = database;
  const created_at = new Date().toISOString();
  const made = {
    ...{ _id: 'acct_1 EUR 2026-11-20', account: 'acct_1', currency: 'EUR', day: '2026-11-20' },
    ...{ lines: [], opening: 0, is_proved: true, made_at: created_at },
  };
  const names = ['acme', 'zeta'].map((name) => `${name}-${randomUUID().slice(0, 8)}`);
  for (const [index, connector] of names.entries()) {
    const own = { connector, livemode: false, iban: 'acct_1', currency: 'EUR', closing: null };
    const account = { _id: `ba_${randomUUID()}`, ...own, created_at: `2026-11-0${index + 1}` };
    await retryUntilDone(() =>
      inTransaction(mongo, (session) => stores.bankAccounts.insert(account, session)),
    );
    const closing = index === 0 ? 5 : 0;
    const statements = openMadeStatements(mongo.db(`${db.databaseName}_${connector}`));
    await statements.insertOne({ ...made, closing });
  }
  const lines: string[] = [];
  const running = await run('off', lines);
  const find = async (connector?: string) => (await stores.bankAccounts.list({ connector }))[0];
  await eventually('the statement of the second', async () => (await find(names[1]))?.closing);
  await running.stop();
  expect((await find(names[0]))?.closing).toBeNull();
  expect(lines).toEqual([expect.stringContaining('do not lead from its opening')]);
  for (const name of names) await mongo.db(`${db.databaseName}_${name}`).dropDatabase();
});

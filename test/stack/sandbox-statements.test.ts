import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inTransaction } from '../../src/base/mongo';
import { sandboxIban } from '../../src/domain/sandbox/movement';
import {
  createMovementStore,
  sandboxBankDatabase,
} from '../../src/service/banks/sandbox-bank/movements';
import { keepStatements } from '../../stack/sandbox-statements';
import { useDatabase } from '../support/database';
import { eventually } from '../support/http';
import { mongodbUri } from '../support/servers';

const DAY_MS = 86_400_000;

const database = useDatabase();
const dataDir = mkdtempSync(join(tmpdir(), 'stack-statements-'));
afterAll(async () => {
  rmSync(dataDir, { recursive: true });
});

test('registers the sandbox accounts, and with autoplay imports the statements of past days', async () => {
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
  const ended = new AbortController();
  const lines: string[] = [];
  const run = async (sandboxAutoplay: 'on' | 'off') => {
    const server = { mongodbUri: mongodbUri(), mongodbPort: 1, mongodbLogin: undefined };
    const config = { ...server, mongodbDb: db.databaseName, dataDir, sandboxAutoplay };
    const progress = { line: (line: string) => void lines.push(line) };
    return await keepStatements(config, progress, ended.signal);
  };
  const list = async () => (await stores.bankAccounts.list()).map(({ iban }) => iban);
  const manual = await run('off');
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
  const first = await run('on');
  await eventually('a statement after one that is refused', () => isImported('CHF'));
  await first.stop();
  expect(await closing('AUD')).toBeNull();
  expect(lines).toEqual([expect.stringMatching(/^Sandbox statements: /)]);

  rmSync(join(folder, damaged));
  const second = await run('on');
  await eventually('the statement that is written again', () => isImported('AUD'));
  await second.stop();
  await own.dropDatabase();
  expect(lines).toHaveLength(1);
});

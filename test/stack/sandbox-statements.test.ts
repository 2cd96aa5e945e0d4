import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inTransaction } from '../../src/base/mongo';
import { sandboxIban } from '../../src/domain/sandbox/movement';
import { createMovementStore, sandboxBankDatabase } from '../../src/service/sandbox-bank/movements';
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

test('the accounts are registered; with autoplay on the statements of past days are imported, too', async () => {
  const { mongo, db, stores } = database;
  const earlier = () => new Date(Date.now() - 2 * DAY_MS);
  const own = mongo.db(sandboxBankDatabase(db.databaseName));
  const movements = createMovementStore(own, earlier);
  const money = { amount: 1_234, currency: 'CHF', bank_reference: 'B-1' };
  const payment = {
    resource: 'payment',
    resource_id: 'p',
    name: 'settled',
    decision: 'd',
  } as const;
  await movements.ensureIndexes();
  await inTransaction(mongo, (session) => movements.book({ ...payment, ...money }, session));
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
  await eventually('the account that moved money', async () => (await list()).length === 4);
  await manual.stop();
  const closing = async () => (await stores.bankAccounts.list({ currency: 'CHF' }))[0]?.closing;
  expect(await closing()).toBeNull();

  const automatic = await run('on');
  await eventually('a statement', async () => (await closing())?.amount === 1_234);
  await automatic.stop();
  await own.dropDatabase();
  expect(lines).toEqual([]);
});

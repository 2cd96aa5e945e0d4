import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { inTransaction } from '../../src/base/mongo';
import { sandboxIban } from '../../src/domain/sandbox/movement';
import { createMovementStore, sandboxBankDatabase } from '../../src/service/sandbox-bank/movements';
import { inOneDay } from '../api/window';
import { retryUntilDone } from '../support/insist';
import { openProvisioning, type Provisioning } from './cli';

test(
  'sandbox statement writes the files of a day, and registers their accounts',
  inOneDay(async () => {
    const service = await openProvisioning();
    await writeStatement(service).finally(service.close);
  }),
);

async function writeStatement(service: Provisioning) {
  expect(await service.json('sandbox', 'statement')).toEqual({ data: [] });
  const now = () => new Date();
  const day = now().toISOString().slice(0, 10);
  const { mongo, db, folder } = service;
  const movements = createMovementStore(mongo.db(sandboxBankDatabase(db.databaseName)), now);
  await retryUntilDone(() => movements.ensureIndexes());
  const money = { amount: 1_234, currency: 'CHF', bank_reference: 'B-1' };
  const payment = {
    resource: 'payment',
    resource_id: 'p',
    name: 'settled',
    decision: 'd',
  } as const;
  await inTransaction(mongo, (session) => movements.book({ ...payment, ...money }, session));

  const statement = {
    ...{ file: join(folder, 'statements', `${day}-SBX-CHF-000001.xml`) },
    ...{ statement_id: 'SBX-CHF-000001', account: sandboxIban('CHF'), currency: 'CHF', day },
    ...{ opening: 0, closing: 1_234, lines: 1 },
  };
  expect(await service.json('sandbox', 'statement')).toEqual({ data: [statement] });
  expect(await service.json('sandbox', 'statement', '--date', day)).toEqual({ data: [statement] });
  expect(readFileSync(statement.file, 'utf8')).toContain('<Amt Ccy="CHF">12.34</Amt>');
  const { stdout } = await service.cli('sandbox', 'statement');
  expect(stdout).toContain(`${statement.file}  ${statement.account}  1 line  CHF`);
  expect(await service.json('bank-account', 'list')).toMatchObject({
    data: [{ connector: 'sandbox', env: 'sandbox', iban: sandboxIban('CHF'), currency: 'CHF' }],
  });
  expect((await service.refusal('sandbox', 'statement', '--date', '2999-01-01')).code).toBe(
    'invalid_usage',
  );
  expect((await service.refusal('sandbox', 'statement', '--date', 'today')).message).toMatch(
    'YYYY-MM-DD',
  );
}

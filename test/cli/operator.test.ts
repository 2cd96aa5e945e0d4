import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fundBalance } from '../../src/service/money/balances/fund';
import { createOperator, revokeOperator, verifyOperator } from '../../src/service/operators/keys';
import { camt, TEST_IBAN } from '../support/camt';
import { asOperator, commandsIn, everythingStored, useProvisioning } from './cli';

const service = useProvisioning();

const TYPED = ['--operator', 'mia', '--reason', 'Ticket 42'];
const MAIN = ['--balance-account', 'main', '--currency', 'EUR'];
const fund = (account_id: string, env: string, ...more: string[]) => [
  ...['balance', 'fund', account_id, '--env', env, ...MAIN, '--amount', '100'],
  ...(env === 'live' ? ['--connector', 'acme', '--bank-reference', account_id] : []),
  ...more,
];
const BANK = { LIVE_CONNECTORS: 'acme=visa' };
const withKey = (OPERATOR_KEY: string) => commandsIn({ ...service.env, ...BANK, OPERATOR_KEY });

test('operator create shows a key once, which is listed without its secret, audited, and revoked once by id or name', async () => {
  const { deps, stores } = service;
  const create = ['operator', 'create', 'ana', '--role', 'approver'];
  const { key, ...operator } = Object(await service.json(...create));
  expect(key).toMatch(/^opkey_/);
  const operator_id: unknown = expect.stringMatching(/^op_/);
  expect(operator).toEqual({ operator_id, name: 'ana', role: 'approver' });
  const row = { ...operator, created_at: expect.any(String), revoked_at: null };
  expect(await service.json('operator', 'list')).toEqual({ data: [row] });
  expect(await everythingStored(service.db)).not.toContain(key.slice('opkey_'.length));
  const [line] = await stores.auditLog.list({ limit: 1, act: 'operator.created' });
  expect(line).toMatchObject({
    ...{ account_id: null, actor: { via: 'command_line' }, target: operator.operator_id },
    after: { name: 'ana', role: 'approver' },
  });
  const next = await createOperator(deps, { name: 'Ana', role: 'operator' });
  const revoked_at: unknown = expect.any(String);
  const id = operator.operator_id;
  expect(await revokeOperator(deps, id)).toMatchObject([{ name: 'ana' }]);
  expect(await verifyOperator(deps, next.key)).toMatchObject({ name: 'Ana' });
  const refused = { code: 'operator_key_revoked' };
  await expect(verifyOperator(deps, key)).rejects.toMatchObject(refused);
  const first = await service.json('operator', 'revoke', 'ANA');
  expect(first).toMatchObject({
    data: [
      { operator_id: id, revoked_at },
      { operator_id: next.operator_id, revoked_at },
    ],
  });
  expect(await service.json('operator', 'revoke', 'ana')).toEqual(first);
  const lines = await stores.auditLog.list({ limit: 10, act: 'operator.revoked' });
  expect(lines).toHaveLength(2);
});

describe('a command that moves money', () => {
  test.each([
    ['', 'operator_key_required'],
    ['opkey_unknown', 'operator_key_invalid'],
    ['sk_live_0', 'operator_key_invalid'],
  ])('is refused on live with the key %j, whatever name is typed', async (key, code) => {
    const { account_id } = await service.account();
    const where = { account_id, livemode: true, balance_account: 'main', currency: 'EUR' };
    const { operation_id } = await fundBalance(service.deps, { ...where, amount: 100 });
    const adjust = ['balance', 'adjust', account_id, '--env', 'live', ...MAIN, '--amount', '-1'];
    const reverse = ['balance', 'reverse', operation_id];
    for (const command of [fund(account_id, 'live'), adjust, reverse]) {
      expect((await withKey(key).refusal(...command, ...TYPED)).code).toBe(code);
    }
    expect((await withKey(key).cli(...fund(account_id, 'sandbox'))).exit).toBe(0);
  });

  test('is recorded on live under the name of its key, and needs a reason', async () => {
    const { account_id } = await service.account();
    const dora = await asOperator(service, 'dora', 'operator', BANK);
    const typed = [...TYPED, '--approved-by', 'ada'];
    const { operation_id } = Object(await dora.json(...fund(account_id, 'live', ...typed)));
    const entry = await service.stores.ledger.findEntry(operation_id);
    expect(entry?.note).toEqual({ operator: 'dora', reason: 'Ticket 42' });
    const [line] = await service.stores.auditLog.list({ account_id, limit: 1 });
    expect(line).toMatchObject({ act: 'balance.funded', actor: { operator: 'dora' } });
    const silent = await dora.refusal(...fund(account_id, 'live'));
    expect(silent.message).toContain("'--reason <text>' not specified");
  });

  test('matches a statement line on live only with a key', async () => {
    const live = commandsIn({ ...service.env, ...BANK });
    const source = ['--connector', 'acme', '--env', 'live'];
    await live.json('bank-account', 'add', ...source, '--iban', TEST_IBAN, '--currency', 'EUR');
    const path = join(service.folder, 'live.xml');
    writeFileSync(path, camt([{ entries: [{ amount: 1_050, reference: 'ORDER-7' }] }]));
    const { id } = Object(await live.json('statement', 'import', path, ...source));
    const match = ['statement', 'match', `${id}:1`, '--difference-to', 'expense.bank_fees'];
    const unmatch = ['statement', 'unmatch', `${id}:1`];
    const flo = await asOperator(live, 'flo');
    for (const [command, status] of [
      [match, 'booked'],
      [unmatch, 'open'],
    ] as const) {
      expect((await live.refusal(...command, ...TYPED)).code).toBe('operator_key_required');
      expect(await flo.json(...command, ...TYPED)).toMatchObject({ status });
    }
    const [audited] = await service.stores.auditLog.list({ limit: 1, act: 'statement.unmatched' });
    expect(audited).toMatchObject({ after: { operator: 'flo', reason: 'Ticket 42' } });
  });
});

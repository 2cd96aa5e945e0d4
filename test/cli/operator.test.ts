import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { camt, TEST_IBAN } from '../support/camt';
import { openAccount } from '../support/service';
import { asOperator, commandsIn, everythingStored, run, useProvisioning } from './cli';

const service = useProvisioning();

const Created = z.strictObject({
  operator_id: z.string().startsWith('op_'),
  name: z.string(),
  role: z.string(),
  key: z.string().startsWith('opkey_'),
});
const create = async (name: string, role = 'operator') =>
  Created.parse(await service.json('operator', 'create', name, '--role', role));
const list = async () => {
  const { data } = z
    .object({ data: z.array(z.record(z.string(), z.unknown())) })
    .parse(await service.json('operator', 'list'));
  return data;
};

function funding(account: string, env = 'live', ...more: string[]) {
  const where = ['--env', env, '--balance-account', 'main', '--currency', 'EUR'];
  return ['balance', 'fund', account, ...where, '--amount', '100', ...more];
}
const WHY = ['--reason', 'Ticket 42'];
const withKey = (OPERATOR_KEY: string) => commandsIn({ ...service.env, OPERATOR_KEY });

test('a key is shown once, listed without its secret, and audited', async () => {
  const { key, ...operator } = await create('ana', 'approver');
  expect(await list()).toContainEqual({
    ...operator,
    created_at: expect.any(String),
    revoked_at: null,
  });
  expect(await everythingStored(service.db)).not.toContain(key.slice('opkey_'.length));
  const [line] = await service.stores.auditLog.list({ limit: 1, act: 'operator.created' });
  expect(line).toMatchObject({
    account_id: null,
    actor: { door: 'command_line' },
    target: operator.operator_id,
    after: { name: 'ana', role: 'approver' },
  });
});

test('a revoked key acts no more; keys are revoked by id or name, once', async () => {
  const [old, next] = [await create('Bo'), await create('bo')];
  const { account_id } = await openAccount(service.stores, {});
  const revoke = (what: string) => service.json('operator', 'revoke', what);
  expect(await revoke(old.operator_id)).toMatchObject({ data: [{ name: 'Bo' }] });
  await withKey(next.key).json(...funding(account_id, 'live', ...WHY));
  const refused = await withKey(old.key).refusal(...funding(account_id, 'live', ...WHY));
  expect(refused.code).toBe('operator_key_revoked');
  const first = await revoke('BO');
  expect(first).toMatchObject({
    data: [
      { operator_id: old.operator_id, revoked_at: expect.any(String) },
      { operator_id: next.operator_id, revoked_at: expect.any(String) },
    ],
  });
  expect(await revoke('bo')).toEqual(first);
  const lines = await service.stores.auditLog.list({ limit: 10, act: 'operator.revoked' });
  expect(lines).toHaveLength(2);
  expect((await service.refusal('operator', 'revoke', 'nobody')).code).toBe('operator_not_found');
});

describe('on live a command that moves money', () => {
  const commands = async () => {
    const { account_id } = await openAccount(service.stores, {});
    const posted = await asOperator(service, 'cleo');
    const said = await posted.json(...funding(account_id, 'live', ...WHY));
    const { operation_id } = z.object({ operation_id: z.string() }).parse(said);
    const where = ['--env', 'live', '--balance-account', 'main', '--currency', 'EUR'];
    const who = ['--operator', 'mia', ...WHY];
    return [
      funding(account_id, 'live', ...who),
      ['balance', 'adjust', account_id, ...where, '--amount', '1', ...who],
      ['balance', 'adjust', account_id, ...where, '--amount', '-1', ...who],
      ['balance', 'reverse', operation_id, ...who],
    ];
  };

  test.each([
    ['', 'operator_key_required'],
    ['opkey_unknown', 'operator_key_invalid'],
    ['sk_live_0', 'operator_key_invalid'],
  ])('is refused with the key %j, whatever name is typed', async (OPERATOR_KEY, code) => {
    const bare = withKey(OPERATOR_KEY);
    for (const command of await commands()) {
      expect((await bare.refusal(...command)).code).toBe(code);
    }
  });

  test('is recorded under the name of its key, and needs a reason', async () => {
    const { account_id } = await openAccount(service.stores, {});
    const dora = await asOperator(service, 'dora');
    const typed = ['--operator', 'mia', '--approved-by', 'ada'];
    const said = await dora.json(...funding(account_id, 'live', ...WHY, ...typed));
    const { operation_id } = z.object({ operation_id: z.string() }).parse(said);
    const entry = await service.stores.ledger.findEntry(operation_id);
    expect(entry?.note).toEqual({ operator: 'dora', reason: 'Ticket 42' });
    const [line] = await service.stores.auditLog.list({ account_id, limit: 1 });
    expect(line).toMatchObject({ act: 'balance.funded', actor: { operator: 'dora' } });
    const silent = await dora.refusal(...funding(account_id));
    expect(silent.message).toContain("'--reason <text>' not specified");
  });

  test('matches a statement line only with a key', async () => {
    const env = { ...service.env, LIVE_CONNECTORS: 'acme=visa' };
    const live = commandsIn(env);
    const source = ['--connector', 'acme', '--env', 'live'];
    await live.json('bank-account', 'add', ...source, '--iban', TEST_IBAN, '--currency', 'EUR');
    const path = join(service.folder, 'live.xml');
    writeFileSync(path, camt([{ entries: [{ amount: 1_050, reference: 'ORDER-7' }] }]));
    const imported = await live.json('statement', 'import', path, ...source);
    const line = `${z.object({ id: z.string() }).parse(imported).id}:1`;
    const match = ['statement', 'match', line, '--difference-to', 'expense.bank_fees', ...WHY];
    const unmatch = ['statement', 'unmatch', line, ...WHY];
    const named = ['--operator', 'mia'];
    expect((await live.refusal(...match, ...named)).code).toBe('operator_key_required');
    const flo = await asOperator(live, 'flo');
    expect(await flo.json(...match)).toMatchObject({ status: 'booked' });
    expect((await live.refusal(...unmatch, ...named)).code).toBe('operator_key_required');
    expect(await flo.json(...unmatch, ...named)).toMatchObject({ status: 'open' });
    const [audited] = await service.stores.auditLog.list({ limit: 1, act: 'statement.unmatched' });
    expect(audited).toMatchObject({ after: { operator: 'flo', reason: 'Ticket 42' } });
    expect((await flo.refusal('statement', 'match', 'st_1:1', ...WHY)).code).toBe('line_not_found');
  });

  test('in the sandbox needs neither key nor reason', async () => {
    const { account_id } = await openAccount(service.stores, {});
    expect((await service.cli(...funding(account_id, 'sandbox'))).exit).toBe(0);
    expect((await withKey('opkey_unknown').cli(...funding(account_id, 'sandbox'))).exit).toBe(0);
  });
});

test.each([
  [['operator', 'create', 'eve'], "required option '--role <role>' not specified"],
  [['operator', 'create', 'eve', '--role', 'admin'], 'Allowed choices are operator, approver.'],
  [['operator', 'create', ' ', '--role', 'operator'], 'It must have 1 to 100 characters.'],
])('refuses %j before it connects to any server', async (args, words) => {
  const { exit, stderr } = await run({}, ...args);
  expect({ exit, stderr }).toEqual({ exit: 1, stderr: expect.stringContaining(words) });
});

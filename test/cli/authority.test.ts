import { randomUUID } from 'node:crypto';
import { describeAuthority } from '../../src/domain/operators/authority';
import { createKey } from '../../src/service/merchants/keys';
import { auditApproved } from '../../src/service/operators/approvals/carry-out';
import { useFixture } from '../support/fixture';
import { commandsIn, everythingStored, openProvisioning, useProvisioning } from './cli';

const service = useProvisioning();
const WHY = ['--reason', 'Ticket 42'];
const BANK = { LIVE_CONNECTORS: 'acme=visa', SANDBOX_CONNECTORS: 'test=ideal' };
const WALLET = '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed';
type Commands = ReturnType<typeof commandsIn>;
const without = useFixture(async () => commandsIn({ ...service.env, ...BANK }));
const withKey = (OPERATOR_KEY: string) => commandsIn({ ...without.env, OPERATOR_KEY });
const createOperator = async (by: Commands, name: string, role: string, ...more: string[]) =>
  Object(await by.json('operator', 'create', name, '--role', role, ...more));

/** The first two, who need nobody, and eve, whom ada requested and ben approved. */
const operators = useFixture(async () => {
  const [ada, ben] = [
    withKey((await createOperator(without, 'ada', 'approver')).key),
    withKey((await createOperator(without, 'ben', 'approver')).key),
  ];
  const create = async (name: string, role: string) => {
    const once = [...WHY, '--operation-id', `create-${name}`];
    await approve(ben, (await createOperator(ada, name, role, ...once)).approval_id);
    return withKey((await createOperator(ada, name, role, ...once)).key);
  };
  return { ada, ben, eve: await create('eve', 'operator'), create };
});
const approve = (by: Commands, id: string) => by.json('approval', 'approve', id, ...WHY);
const refuse = async (by: Commands, id: string) =>
  (await by.refusal('approval', 'approve', id, ...WHY)).code;

test('a text in a request cannot look like another param', () => {
  const input = { name: 'eve, role operator', role: 'approver' };
  const text = 'create an operator’s key: name "eve, role operator", role approver';
  expect(describeAuthority('operator create', input)).toBe(text);
});

/** Lists what one person would run to have live money: all that gives power or lifts a brake. */
async function openTarget() {
  const { account_id, dashboard_email } = await service.account();
  const update = (...more: string[]) => ['account', 'update', account_id, ...more];
  const brakes = ['--payout-limit', 'EUR=100', '--refund-step-up', 'EUR=100'];
  await service.json(...update(...brakes, '--hold-unverified', 'on'));
  await service.json('account', 'freeze', account_id, ...WHY);
  const live = [account_id, '--env', 'live'];
  const url = ['--url', 'https://1.1.1.1/hook'];
  const repeated = [
    ['operator', 'create', `mal ${account_id}`, '--role', 'approver'],
    ['connector', 'key', 'create', 'acme'],
    // It may be routed tomorrow.
    ['connector', 'key', 'create', 'unknown'],
    ['key', 'create', ...live],
    ['dashboard', 'invite', account_id, '--email', 'mal@x.example', '--role', 'owner'],
    ['dashboard', 'reset-password', dashboard_email, '--without-second-factor'],
    ['webhook', 'set', ...live, ...url],
    ['webhook', 'add', ...live, ...url],
  ];
  const done = [
    ['account', 'unfreeze', account_id],
    update('--payout-limit', 'EUR=101'),
    // Once one currency has a limit, another has none.
    update('--payout-limit', 'USD=1'),
    update('--payout-limit', 'EUR=off', '--crypto', 'on'),
    update('--owed-limit', 'EUR=1'),
    update('--refund-step-up', 'EUR=off'),
    update('--hold-unverified', 'off'),
    ['wallet', 'set', ...live, '--network', 'ethereum', '--address', WALLET],
  ];
  return { account_id, update, repeated, done, all: [...repeated, ...done] };
}

describe('one operator alone', () => {
  test('gets no power on live and lifts no brake: without a key, a reason or another operator nothing happens', async () => {
    const { eve } = operators;
    const { account_id, all } = await openTarget();
    const ignored = ['approvals', 'audit_log', 'audit_heads'];
    const readAll = async () => {
      const names = (await service.db.listCollections().toArray()).map(({ name }) => name);
      const left = names.filter((name) => !ignored.includes(name)).sort();
      return await Promise.all(left.map((name) => service.db.collection(name).find().toArray()));
    };
    const before = await readAll();
    for (const args of all) {
      expect((await without.refusal(...args, ...WHY)).code).toBe('operator_key_required');
      expect((await eve.refusal(...args)).code).toBe('operator_required');
      const { status, approval_id } = Object(await eve.json(...args, ...WHY));
      expect([args, status]).toEqual([args, 'approval_required']);
      expect(await refuse(eve, approval_id)).toBe('same_operator');
      const shown = Object(await eve.json('approval', 'show', approval_id));
      expect(shown).toMatchObject({ amount: null, requested_by: 'eve', reason: 'Ticket 42' });
      expect((await eve.cli('approval', 'show', approval_id)).stdout).toContain(shown.request);
    }
    expect(await readAll()).toEqual(before);
    for (const command of ['operator revoke ada', `webhook show ${account_id} --env live`]) {
      expect((await without.refusal(command)).code).toBe('operator_key_required');
    }
  });

  test('cannot move money by a second identity, a key of a bank or a live key, and has a sum of credits', async () => {
    const { eve } = operators;
    const { account_id } = await service.account();
    const where = `${account_id} --env live --balance-account main --currency EUR`;
    const fund = () =>
      `balance fund ${where} --amount 60000 --connector acme --bank-reference ${randomUUID()}`;
    const request = async (command: string, by = eve) => Object(await by.json(command, ...WHY));
    expect(await request(fund())).toMatchObject({ available: 60_000 });
    const commands = [
      ...['operator create mallory --role approver', fund()],
      ...['connector key create acme', `key create ${account_id} --env live`],
    ];
    for (const command of commands) {
      const { status, approval_id } = await request(command);
      expect([status, await refuse(eve, approval_id)]).toEqual([
        'approval_required',
        'same_operator',
      ]);
    }
    // Nothing signs a callback, and no other key than that of the merchant pays out.
    expect(await service.stores.connectorKeys.current('acme')).toEqual([]);
    expect(await service.stores.keys.forAccount(account_id)).toHaveLength(2);
    // The variables of a command make no live connector one of the sandbox.
    await service.stores.approvals.publishLimits({}, ['acme']);
    const { OPERATOR_KEY } = eve.env;
    const env = { LIVE_CONNECTORS: '', SANDBOX_CONNECTORS: 'acme=visa' };
    const posing = commandsIn({ ...service.env, ...env, OPERATOR_KEY });
    const required = { status: 'approval_required' };
    expect(await request('connector key create acme', posing)).toMatchObject(required);
    const stopped = { id: randomUUID(), reason: 'MongoDB is older', at: new Date().toISOString() };
    const report = { serves: ['visa'], functions: [], contract: 1 };
    await service.stores.capabilities.report('acme', report, { seen_at: new Date(), stopped });
    const release = 'connector release acme --after-restore';
    const refused = await posing.refusal(`${release} --env sandbox`, ...WHY);
    expect(refused.code).toBe('connector_environment');
    for (const by of [posing, eve]) {
      for (const env of ['', '--env live']) {
        expect(await request(`${release} ${env}`, by)).toMatchObject(required);
      }
    }
  });

  test('releases a connector of the sandbox alone, without its environment, approval or key', async () => {
    const stopped = { id: randomUUID(), reason: 'MongoDB is older', at: new Date().toISOString() };
    const report = { serves: ['ideal'], functions: [], contract: 1 };
    await service.stores.capabilities.report('test', report, { seen_at: new Date(), stopped });
    const released = { connector: 'test', env: 'sandbox', stopped_for: 'MongoDB is older' };
    for (const changed of [true, false]) {
      const done = await without.json('connector release test --after-restore', ...WHY);
      expect(done).toMatchObject({ ...released, changed });
    }
  });
});

describe('an approved command', () => {
  test('prints its secret once, to its requester alone, and stores none', async () => {
    const { ada, ben, eve } = operators;
    const { account_id, repeated } = await openTarget();
    const unfreeze = Object(await eve.json(`account unfreeze ${account_id}`, ...WHY));
    await approve(ada, unfreeze.approval_id);
    for (const args of repeated) {
      const once = [...args, ...WHY, '--operation-id', randomUUID()];
      const { approval_id } = Object(await eve.json(...once));
      expect(await eve.json(...once)).toEqual({ status: 'approval_required', approval_id });
      for (const _repeat of [1, 2]) {
        expect(await approve(ben, approval_id)).toMatchObject({ state: 'approved' });
      }
      expect((await ada.refusal(...once)).code).toBe('operation_id_used');
      const answers = await Promise.all([1, 2].map(() => eve.cli(...once, '--json')));
      expect(answers.map(({ exit }) => exit).sort()).toEqual([0, 1]);
      const late = JSON.parse(answers.find(({ exit }) => exit === 1)?.stderr ?? '').error.code;
      expect(['operation_id_used', 'approval_decided']).toContain(late);
      const made = Object(JSON.parse(answers.find(({ exit }) => exit === 0)?.stdout ?? ''));
      const { key, secret = key, signing_secret = secret, password = signing_secret } = made;
      const shown = String(password ?? made.link.split('/').at(-1));
      const [, text = shown] = shown.split(/^[a-z_]+_/);
      expect(await everythingStored(service.db)).not.toContain(text);
      expect((await eve.refusal(...once)).code).toBe('operation_id_used');
      expect((await eve.refusal(...once, ...['--reason', 'Other'])).code).toBe('operation_id_used');
      const [line] = await service.db
        .collection('audit_log')
        .find({ 'after.approval_id': approval_id })
        .toArray();
      expect(line).toMatchObject({
        actor: { operator: 'eve' },
        after: { requested_by: 'eve', approved_by: 'ben', reason: 'Ticket 42' },
      });
    }
  });

  test('that is killed before its transaction ends has made nothing, and its repeat does', async () => {
    const { ben, eve } = operators;
    const { account_id } = await service.account();
    const once = ['key', 'create', account_id, '--env', 'live', ...WHY, '--operation-id', 'killed'];
    const { approval_id } = Object(await eve.json(...once));
    await approve(ben, approval_id);
    const approval = await service.stores.approvals.get(approval_id);
    if (approval === null) throw new Error('There is no approval.');
    const killed = { ...service.deps, audit: () => Promise.reject(new Error('killed')) };
    const deps = { ...killed, audit: auditApproved(killed, approval) };
    const key = { account_id, livemode: true, scopes: [] };
    await expect(createKey(deps, key)).rejects.toThrow('killed');
    expect(await service.stores.keys.forAccount(account_id)).toHaveLength(2);
    const key_id = approval_id.replace('appr_', 'key_');
    expect(await eve.json(...once)).toMatchObject({ key_id });
  });

  test('without a secret is done at the approval, once, and shows who asked and who approved', async () => {
    const { ben, eve } = operators;
    const { account_id, done } = await openTarget();
    for (const args of done) {
      const required = await eve.json(...args, ...WHY);
      expect(await eve.json(...args, ...WHY)).toEqual(required);
      const { approval_id } = Object(required);
      for (const _repeat of [1, 2]) {
        expect(await approve(ben, approval_id)).toMatchObject({ state: 'done' });
      }
      const lines = service.db.collection('audit_log').find({ 'after.approval_id': approval_id });
      expect(await lines.toArray()).toMatchObject([
        { actor: { operator: 'ben' }, after: { requested_by: 'eve', approved_by: 'ben' } },
      ]);
    }
    expect(await service.json('account', 'show', account_id)).toMatchObject({
      ...{ crypto: true, payout_limits: { USD: 1 }, owed_limits: { EUR: 1 } },
      hold_unverified: false,
    });
  });

  test('that lowers limits, or a key for the sandbox only, needs nobody', async () => {
    const { account_id, update } = await openTarget();
    const lower = '--payout-limit EUR=99 --owed-limit EUR=0 --refund-step-up USD=1'.split(' ');
    expect(await without.json(...update(...lower))).toMatchObject({ payout_limits: { EUR: 99 } });
    const { key_id } = Object(await without.json('connector', 'key', 'create', 'test'));
    expect(await without.json('connector', 'key', 'revoke', key_id)).toMatchObject({ key_id });
    expect(await without.json('key', 'create', account_id, '--env', 'sandbox')).toMatchObject({
      key: expect.any(String),
    });
  });

  test('does not lift a later freeze, and what was rejected is never done', async () => {
    const { ben, eve } = operators;
    const { account_id, repeated } = await openTarget();
    const unfreeze = ['account', 'unfreeze', account_id, ...WHY];
    const again = Object(await eve.json(...unfreeze)).approval_id;
    await service.db
      .collection<{ _id: string }>('accounts')
      .updateOne({ _id: account_id }, { $set: { 'frozen.at': '2999-01-01T00:00:00.000Z' } });
    expect(await refuse(ben, again)).toBe('approval_differs');
    const once = [...(repeated[0] ?? []), ...WHY, '--operation-id', randomUUID()];
    const rejected = Object(await eve.json(...once)).approval_id;
    await ben.json('approval', 'reject', rejected, ...WHY);
    const next = Object(await eve.json(...once)).approval_id;
    expect(next).not.toBe(rejected);
  });
});

test('a new approver decides on nothing that the creator, or another whom the creator made, asks for within a day', async () => {
  const { ada, ben, eve, create } = operators;
  const zoe = await create('zoe', 'approver');
  const { account_id } = await service.account();
  const ask = async (by: Commands) =>
    Object(await by.json('key', 'create', account_id, '--env', 'live', ...WHY)).approval_id;
  const [byAda, byEve, byBen] = [await ask(ada), await ask(eve), await ask(ben)];
  expect([await refuse(zoe, byAda), await refuse(zoe, byEve)]).toEqual([
    'approver_too_new',
    'approver_too_new',
  ]);
  expect((await zoe.refusal('approval', 'reject', byAda, ...WHY)).code).toBe('approver_too_new');
  expect(await approve(zoe, byBen)).toMatchObject({ state: 'approved' });
  const created_at = new Date(Date.now() - 25 * 3_600_000).toISOString();
  await service.db.collection('operators').updateOne({ name: 'zoe' }, { $set: { created_at } });
  expect(await approve(zoe, byAda)).toMatchObject({ state: 'approved' });
});

describe('the first two keys', () => {
  const fresh = useFixture(openProvisioning, (provisioning) => provisioning.close());

  test('are of two approvers, and no third is created at once or after their revocation', async () => {
    const create = (name: string, role = 'approver') =>
      `operator create ${name} --role ${role}`.split(' ');
    expect((await fresh.refusal(...create('ann', 'operator'))).code).toBe('role_not_allowed');
    const names = ['ann', 'bob', 'cyd', 'dan', 'eli'];
    const answers = await Promise.all(names.map((name) => fresh.cli(...create(name), '--json')));
    const created = answers.filter(({ exit }) => exit === 0);
    expect(created).toHaveLength(2);
    const [first, second] = created.map(({ stdout }) => JSON.parse(stdout));
    expect((await fresh.refusal(...create('fay'))).code).toBe('operator_key_required');
    const own = commandsIn({ ...fresh.env, OPERATOR_KEY: first.key });
    for (const { name } of [second, first]) await own.json('operator', 'revoke', name, ...WHY);
    expect(await fresh.json('audit', 'verify')).toMatchObject({ broken: [], unexplained: 0 });
    expect((await fresh.refusal(...create('fay'))).code).toBe('operator_key_required');
    expect((await own.refusal(...create('fay'), ...WHY)).code).toBe('operator_key_revoked');
    // How the administrator of the database lets two be created again.
    await fresh.db.collection('operators').updateMany({}, { $unset: { first: '' } });
    await fresh.json(...create('gus'));
    expect((await fresh.refusal(...create('Gus'))).code).toBe('same_operator');
    expect(await fresh.json(...create('hal'))).toMatchObject({ name: 'hal' });
    expect((await fresh.refusal(...create('ida'))).code).toBe('operator_key_required');
  });
});

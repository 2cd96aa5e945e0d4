import { writeFileSync } from 'node:fs';
import { hostname, userInfo } from 'node:os';
import { join } from 'node:path';
import { type Document, type Filter, ObjectId } from 'mongodb';
import { Secret, TOTP } from 'otpauth';
import { z } from 'zod';
import { createEncrypter } from '../../src/encryption/encrypter';
import { isPassword } from '../../src/encryption/password';
import { followKeyFile } from '../../src/encryption/service-keys';
import { listAuditLines } from '../../src/service/audit-log';
import { changeMember, acceptInvitation as joinTeam } from '../../src/service/team/members';
import { getOffer, offerSecret, switchOn } from '../../src/service/team/second-factor';
import { checkLogin } from '../../src/service/team/sign-in';
import { createSignInLanes } from '../../src/service/team/sign-in-lanes';
import { operatorsAudit } from '../support/audit';
import { useProvisioning } from './cli';

const service = useProvisioning();

const Invited = z.strictObject({ link: z.string(), expires_at: z.string() });
const Reset = z.strictObject({ email: z.string(), password: z.string() });

const lines = (account_id: string) =>
  service.stores.auditLog.list({ account_id, livemode: false, limit: 100 });

test('a person who is invited by a link joins, and is listed', async () => {
  const { account_id, dashboard_email } = await service.account();
  const args = ['--email', 'Ana@Example.com', '--role', 'developer'];
  const made = Invited.parse(await service.json('dashboard', 'invite', account_id, ...args));
  expect(made.link).toMatch(/^http:\/\/localhost:8080\/dashboard\/invitation\/[\w-]{43}$/);
  const token = made.link.split('/').at(-1) ?? '';
  const deps = { mongo: service.mongo, stores: service.stores, now: () => new Date() };
  expect(await joinTeam(deps, token, 'hash')).toMatchObject({ email: 'ana@example.com' });
  expect(await service.json('dashboard', 'people', account_id)).toMatchObject({
    data: [
      { email: dashboard_email, role: 'owner', second_factor: false, signed_in_at: null },
      { email: 'ana@example.com', role: 'developer' },
    ],
  });
});

test('reset-password replaces the password and shows the new one once', async () => {
  const { account_id, dashboard_email, dashboard_password } = await service.account();
  const args = ['dashboard', 'reset-password', dashboard_email.toUpperCase()];
  const passkey = { id: 'passkey_1', credential_id: account_id, public_key: '', counter: 0 };
  const passkeys = [{ ...passkey, name: 'Phone', created_at: '', last_used_at: null }];
  await service.db.collection('users').updateOne({ account_id }, { $set: { passkeys } });
  const { email, password } = Reset.parse(await service.json(...args, '--without-second-factor'));
  expect(email).toBe(dashboard_email);
  const [user] = await service.stores.users.byEmail(email);
  expect(await isPassword(password, user?.password_hash)).toBe(true);
  expect(await isPassword(dashboard_password, user?.password_hash)).toBe(false);
  expect(user?.passkeys).toEqual([]);
  expect(await lines(account_id)).toMatchObject([
    { act: 'passkey.removed', before: { passkey: 'passkey_1', name: 'Phone' } },
    { act: 'user.password_reset' },
    ...[expect.anything(), expect.anything()],
  ]);
  expect(await service.refusal('dashboard', 'reset-password', 'nobody@example.com')).toEqual({
    code: 'user_not_found',
    message: 'There is no login nobody@example.com.',
  });
});

test('unlock and reset-password let a locked-out user sign in again', async () => {
  const { account_id, dashboard_email } = await service.account();
  const throttles = service.db.collection<{ _id: string }>('dashboard_throttles');
  const attempts = () => throttles.countDocuments();
  const login = {
    email: dashboard_email,
    password: 'wrong',
    address: '203.0.113.7',
    device: null,
    signedDevice: null,
    merchant: undefined,
  };
  const before = await attempts();
  const shared = { _id: { $regex: '^(network|total):' } };
  for (const command of ['unlock', 'reset-password']) {
    const deps = { stores: service.stores, now: () => new Date() };
    const check = () => checkLogin({ ...deps, limitSignIns: createSignInLanes() }, login);
    await check();
    // Others have used up what all share.
    await throttles.updateMany(shared, { $set: { count: 3_000 } });
    await throttles.deleteMany({ _id: { $regex: '^unlocked:' } });
    expect(await check()).toMatchObject({ outcome: 'too_many' });
    await service.json('dashboard', command, dashboard_email.toUpperCase());
    // The shared counters of the network and in total stay; the user's own is new.
    expect(await attempts()).toBeLessThanOrEqual(before + 3);
    expect(await check()).toMatchObject({ outcome: 'wrong' });
  }
  await throttles.deleteMany(shared);
  expect((await lines(account_id)).map(({ act }) => act)).toContain('user.unlocked');
  expect(await service.refusal('dashboard', 'unlock', 'nobody@example.com')).toMatchObject({
    code: 'user_not_found',
  });
});

test('the audit log has each change of the command line: actor, before and after, no secret', async () => {
  const made = await service.account();
  const { account_id } = made;
  await service.json(
    'account',
    'update',
    account_id,
    '--crypto',
    'on',
    '--payout-fee',
    'card_payout=5',
  );
  const balance = ['--env', 'sandbox', '--balance-account', 'main', '--currency', 'EUR'];
  const money = [...balance, '--amount', '500'];
  const why = ['--operator', 'mia', '--reason', 'Ticket 42'];
  await service.json('balance', 'fund', account_id, ...money, '--operation-id', account_id);
  await service.json('balance', 'fund', account_id, ...money, '--operation-id', account_id);
  await service.json('balance', 'adjust', account_id, ...money, ...why);
  await service.json('balance', 'reverse', `funded:${account_id}`, ...why);
  const all = await lines(account_id);
  expect(all.map(({ act }) => act)).toEqual([
    'balance.reversed',
    'balance.adjusted',
    'balance.funded',
    'account.updated',
    'api_key.created',
    'account.created',
  ]);
  const actor = { door: 'command_line', system_user: userInfo().username, host: hostname() };
  for (const line of all) expect(line).toMatchObject({ account_id, actor });
  expect(all[3]).toMatchObject({
    livemode: null,
    before: { crypto: false, payout_fees: [] },
    after: { crypto: true, payout_fees: ['card_payout=5'] },
  });
  expect(all[2]).toMatchObject({
    livemode: false,
    target: `funded:${account_id}`,
    after: { balance_account: 'main', currency: 'EUR', amount: 500 },
  });
  const secrets = [made.sandbox_key, made.live_key, made.dashboard_password];
  for (const secret of secrets) expect(JSON.stringify(all)).not.toContain(secret);
  const live = await service.stores.auditLog.list({ account_id, livemode: true, limit: 100 });
  expect(live.map(({ act }) => act)).toEqual([
    'account.updated',
    'api_key.created',
    'account.created',
  ]);
});

describe('the chains of the audit log', () => {
  const Listed = z.object({
    data: z.array(z.object({ act: z.string(), seq: z.number(), hash: z.string() })),
    has_more: z.boolean(),
  });
  const Verified = z.object({
    lines: z.number(),
    unexplained: z.number(),
    findings: z.array(z.object({ code: z.string(), id: z.string(), fields: z.array(z.string()) })),
    broken: z.array(z.looseObject({ chain: z.string(), seq: z.number(), fault: z.string() })),
    heads: z.array(z.object({ chain: z.string(), seq: z.number(), hash: z.string() })),
  });
  const list = async (...args: string[]) =>
    Listed.parse(await service.json('audit', 'list', ...args));
  const verify = async (...args: string[]) => {
    const { exit, stdout } = await service.cli('audit', 'verify', '--json', ...args);
    return { exit, ...Verified.parse(JSON.parse(stdout)) };
  };

  test('lines written at once are chained one after the other, per account', async () => {
    const [one, other] = [await service.account(), await service.account()];
    const make = ({ account_id }: typeof one) =>
      service.json('key', 'create', account_id, '--env', 'sandbox');
    await Promise.all([one, other, one, other, one, one].map(make));
    const { data } = await list('--account', one.account_id);
    expect(data.map(({ seq }) => seq).toSorted((a, b) => b - a)).toEqual([7, 6, 5, 4, 3, 2, 1]);
    expect(new Set(data.map(({ hash }) => hash)).size).toBe(7);
    expect(await list('--account', one.account_id, '--env', 'live', '--limit', '1')).toMatchObject({
      data: [{ act: 'api_key.created' }],
      has_more: true,
    });
    const later = new Date(Date.now() + 60_000).toISOString();
    expect(await list('--since', later)).toEqual({ data: [], has_more: false });
    expect(await verify()).toMatchObject({ exit: 0, broken: [] });
  });

  /** Makes every kind of change that audit lines explain. */
  async function live() {
    const { account_id } = await service.account();
    const { json, stores, mongo } = service;
    const now = () => new Date();
    const deps = { mongo, stores, now, audit: operatorsAudit(stores) };
    const inEnv = [account_id, '--env', 'live'];
    const keyId = async (...args: string[]) =>
      z.looseObject({ key_id: z.string() }).parse(await json(...args)).key_id;
    await json(
      'account',
      'update',
      account_id,
      '--crypto',
      'on',
      '--payout-limit',
      'EUR=500',
      '--refund-step-up',
      'EUR=9',
    );
    await json('account', 'update', account_id, '--payout-limit', 'EUR=off');
    await json('account', 'freeze', account_id, '--reason', 'Leak');
    await json('account', 'unfreeze', account_id, '--reason', 'Closed');
    const bounds = ['--expires-at', '2999-01-01T00:00:00Z', '--allow-cidr', '203.0.113.0/24'];
    const key = await keyId('key', 'create', ...inEnv, ...bounds);
    await json('key', 'revoke', await keyId('key', 'create', ...inEnv));
    for (const name of ['ana', 'ben']) await json('operator', 'create', name, '--role', 'approver');
    await json('operator', 'revoke', 'ben');
    const connector = ['connector', 'key', 'create', 'acme'];
    await json('connector', 'key', 'revoke', await keyId(...connector));
    const connectorKey = await keyId(...connector);
    const hook = [account_id, '--env', 'sandbox'];
    for (const path of ['first', 'second']) {
      await json('webhook', 'set', ...hook, '--url', `http://127.0.0.1:9/${path}`);
    }
    await json('webhook', 'roll', ...hook);
    const wallet = ['wallet', 'set', ...inEnv, '--network', 'ethereum', '--address'];
    await json(...wallet, '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed');
    await json(...wallet, '0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359');
    const invite = async (email: string) => {
      const options = ['--email', email, '--role', 'developer'];
      const { link } = Invited.parse(await json('dashboard', 'invite', account_id, ...options));
      const user = await joinTeam(deps, link.split('/').at(-1) ?? '', 'hash');
      if (user === null || user === 'is_member') throw new Error('Nobody joined.');
      return user._id;
    };
    const [ana, ben] = [await invite('ana@x.example'), await invite('ben@x.example')];
    await changeMember(deps, { id: ana, account_id }, 'finance');
    await changeMember(deps, { id: ben, account_id }, null);
    const seal = followKeyFile(service.env['KEYS_FILE'] ?? '').seal;
    const factor = { ...deps, encrypter: createEncrypter(seal) };
    const enrollment = { user_id: ana, session: 'own' };
    await offerSecret(factor, enrollment);
    const secret = (await getOffer(factor, enrollment))?.secret ?? '';
    const code = new TOTP({ secret: Secret.fromBase32(secret) }).generate();
    await switchOn(factor, ana, { code, keep: 'own' });
    await json('dashboard', 'invite', account_id, '--email', 'z@x.example', '--role', 'owner');
    const [operator] = (await stores.operators.list()).filter(({ name }) => name === 'ana');
    return { account_id, key, connectorKey, user: ana, operator: operator?._id ?? '' };
  }

  test('audit verify finds each planted or changed row that no line explains', async () => {
    const own = await live();
    expect(await verify()).toMatchObject({ exit: 0, broken: [], unexplained: 0, findings: [] });
    const { account_id } = own;
    const rows = [
      ['accounts', 'account', { _id: account_id }, { payout_limits: { EUR: 1 } }],
      ['api_keys', 'api_key', { _id: own.key }, { hash: 'other' }],
      ['operators', 'operator', { _id: own.operator }, { role: 'administrator' }],
      ['connector_keys', 'connector_key', { _id: own.connectorKey }, { connector: 'other' }],
      ['users', 'user', { _id: own.user }, { totp: null }],
      ['users', 'user', { _id: own.user }, { passkeys: [{ id: 'passkey_x' }] }],
      ['dashboard_invitations', 'invitation', { email: 'z@x.example' }, { role: 'finance' }],
      [
        'webhook_endpoints',
        'webhook_endpoint',
        { account_id, livemode: false },
        { url: 'https://b.example/' },
      ],
      ['wallets', 'wallet', { account_id }, { address: '0x0' }],
    ] as const;
    for (const [name, noun, where, change] of rows) {
      const filter: Filter<Document> = Object(where);
      const collection = service.db.collection<Document>(name);
      const row = await collection.findOne(filter);
      if (row === null) throw new Error(`There is no ${noun}.`);
      await collection.updateOne(filter, { $set: change });
      const [field = ''] = Object.keys(change);
      const fields = [
        { hash: 'fingerprint', totp: 'second_factor', passkeys: 'passkey_x' }[field] ?? field,
      ];
      const changed = { code: `${noun}_changed`, fields };
      expect(await verify()).toMatchObject({ exit: 1, broken: [], findings: [changed] });
      await collection.replaceOne(filter, row);
      const _id = new ObjectId();
      const others = { account_id: 'acct_x', hash: 'h', email: 'x@x.example', network: 'x' };
      await collection.insertOne({ ...row, ...others, _id, dashboard: { email: 'x@x.example' } });
      const planted = { code: `${noun}_unexplained`, fields: [] };
      expect(await verify()).toMatchObject({ exit: 1, broken: [], findings: [planted] });
      await collection.deleteOne({ _id });
    }
    const keys = service.db.collection('api_keys');
    const revoked = { account_id, revoked_at: { $ne: null } };
    const key = await keys.findOneAndUpdate(revoked, { $set: { revoked_at: null } });
    const { stdout, stderr } = await service.cli('audit', 'verify');
    expect(stdout).toMatch(/api_key_changed .* revoked_at\n/);
    expect(stderr).toBe('The audit log does not explain 1 row.\n');
    await keys.replaceOne({ _id: key?._id }, { ...key });
  });

  test('audit verify finds a line outside every chain, which no merchant reads', async () => {
    const { account_id } = await service.account();
    const [line] = await service.stores.auditLog.list({ account_id, limit: 1 });
    const { seq: _, ...forged } = { ...line, _id: '2999-01-01T00:00:00.000Z_0123456789abcdef' };
    const log = service.db.collection<{ _id: string }>('audit_log');
    await log.insertOne(forged);
    const fault = { chain: account_id, seq: 0, line_id: forged._id, fault: 'unchained' };
    expect((await verify()).broken).toContainEqual(expect.objectContaining(fault));
    const page = { before: undefined, after: undefined, act: undefined };
    const owner = { account_id, livemode: false };
    const { rows } = await listAuditLines({ stores: service.stores }, owner, page);
    expect(rows.map(({ _id }) => _id)).not.toContain(forged._id);
    expect((await service.cli('audit', 'list', '--limit', '1')).stdout).toContain('not chained');
    await log.deleteOne({ _id: forged._id });
  });

  test('audit verify finds a changed or deleted line, and with --against a replaced chain', async () => {
    const { account_id } = await service.account();
    const before = await verify();
    const heads = join(service.folder, 'heads.json');
    writeFileSync(heads, JSON.stringify(before));
    await service.json('account', 'update', account_id, '--crypto', 'on');
    expect(await verify('--against', heads)).toMatchObject({ exit: 0, broken: [] });
    const rows = service.db.collection('audit_log');
    const second = { account_id, seq: 2 };
    await rows.updateOne(second, { $set: { 'actor.host': 'elsewhere' } });
    const fault = { chain: account_id, seq: 2 };
    expect(await verify()).toMatchObject({ exit: 1, broken: [{ ...fault, fault: 'changed' }] });
    await rows.deleteOne(second);
    expect(await verify()).toMatchObject({ exit: 1, broken: [{ ...fault, fault: 'missing' }] });
    await rows.deleteMany({ account_id });
    await service.db.collection<{ _id: string }>('audit_heads').deleteOne({ _id: account_id });
    // The account, two keys and the owner.
    expect(await verify()).toMatchObject({ exit: 1, broken: [], unexplained: 4 });
    const { stdout, stderr, exit } = await service.cli('audit', 'verify', '--against', heads);
    expect(exit).toBe(1);
    expect(stdout).toContain('the line is missing');
    expect(stderr).toBe('The audit log has 1 broken chain.\n');
  });
});

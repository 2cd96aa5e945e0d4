import { writeFileSync } from 'node:fs';
import { hostname, userInfo } from 'node:os';
import { join } from 'node:path';
import { type Document, type Filter, ObjectId } from 'mongodb';
import { Secret, TOTP } from 'otpauth';
import { readAuditPublicKeys } from '../../src/encryption/audit-keys';
import { createEncrypter } from '../../src/encryption/encrypter';
import { isPassword } from '../../src/encryption/password';
import { followKeyFile } from '../../src/encryption/service-keys';
import { pauseConnector } from '../../src/service/banks/connectors';
import { setRule } from '../../src/service/banks/routing/change';
import { setFrozen, updateAccount } from '../../src/service/merchants/accounts';
import { createKey, revokeKey } from '../../src/service/merchants/keys';
import {
  acceptInvitation,
  changeMember,
  hashToken,
  invite,
} from '../../src/service/merchants/team/members';
import { getOffer, offerSecret, switchOn } from '../../src/service/merchants/team/second-factor';
import { insertSession, resetPassword } from '../../src/service/merchants/team/sessions';
import { checkLogin, createSignInLanes } from '../../src/service/merchants/team/sign-in';

import { setWallet } from '../../src/service/money/wallets';
import { createSignatureCheck, verifyChains } from '../../src/service/operators/audit/chains';
import { listAuditLines } from '../../src/service/operators/audit/log';
import { verifyRows } from '../../src/service/operators/audit/rows';
import { auditAs } from '../../src/service/operators/deps';
import { createOperator, revokeOperator } from '../../src/service/operators/keys';
import { commandsIn, runApproved, useProvisioning } from './cli';

const service = useProvisioning();

const listLines = (account_id: string, livemode = false) =>
  service.stores.auditLog.list({ account_id, livemode, limit: 100 });

test('dashboard invite prints a link by which a user joins the team, whom dashboard people lists', async () => {
  const { account_id, dashboard_email } = await service.account();
  const member = '--email Ana@Example.com --role developer';
  const made = Object(await service.json(`dashboard invite ${account_id} ${member}`));
  expect(made).toEqual({ link: expect.any(String), expires_at: expect.any(String) });
  expect(made.link).toMatch(/^http:\/\/localhost:8080\/dashboard\/invitation\/[\w-]{43}$/);
  const joined = await acceptInvitation(service.deps, made.link.split('/').at(-1), 'hash');
  expect(joined).toMatchObject({ email: 'ana@example.com' });
  expect(await service.json('dashboard', 'people', account_id)).toMatchObject({
    data: [
      { email: dashboard_email, role: 'owner', second_factor: false, signed_in_at: null },
      { email: 'ana@example.com', role: 'developer' },
    ],
  });
});

test('dashboard reset-password replaces the password, removes passkeys, and shows the new one once', async () => {
  const { account_id, dashboard_email: email, dashboard_password } = await service.account();
  const passkey = { id: 'passkey_1', credential_id: account_id, public_key: '', counter: 0 };
  const passkeys = [{ ...passkey, name: 'Phone', created_at: '', last_used_at: null }];
  await service.db.collection('users').updateOne({ account_id }, { $set: { passkeys } });
  const reset = 'dashboard reset-password';
  const without = `${reset} ${email.toUpperCase()} --without-second-factor`;
  const made = await runApproved(service, without);
  expect(made).toEqual({ email, password: expect.any(String) });
  const [user] = await service.stores.users.byEmail(email);
  expect(await isPassword(Object(made).password, user?.password_hash)).toBe(true);
  expect(await isPassword(dashboard_password, user?.password_hash)).toBe(false);
  expect(user?.passkeys).toEqual([]);
  expect((await listLines(account_id)).slice(0, -2)).toMatchObject([
    { act: 'passkey.removed', before: { passkey: 'passkey_1', name: 'Phone' } },
    { act: 'user.password_reset' },
  ]);
  const unknown = { code: 'user_not_found', message: 'There is no login nobody@example.com.' };
  const other = `${reset} nobody@example.com --account ${account_id}`;
  expect(await service.refusal(other)).toEqual(unknown);
});

// What a lock-out counts is in test/dashboard/sign-in.test.ts.
test('a user who is locked out can sign in again after an unlock, and after a new password', async () => {
  const { deps, db } = service;
  const { account_id, dashboard_email: email } = await service.account();
  const throttles = db.collection<{ _id: string }>('dashboard_throttles');
  const login = { email, password: 'wrong', address: '203.0.113.7' };
  const none = { device: null, signedDevice: null, merchant: undefined };
  const before = await throttles.countDocuments();
  const shared = { _id: { $regex: '^(network|total):' } };
  for (const act of [
    () => service.json('dashboard', 'unlock', email.toUpperCase()),
    () => resetPassword(deps, { email, account_id: undefined, dropSecondFactor: false }),
  ]) {
    const limitSignIns = createSignInLanes();
    const check = () => checkLogin({ ...deps, limitSignIns }, { ...login, ...none });
    await check();
    // Others have used up what all share.
    await throttles.updateMany(shared, { $set: { count: 3_000 } });
    await throttles.deleteMany({ _id: { $regex: '^unlocked:' } });
    expect(await check()).toMatchObject({ outcome: 'too_many' });
    await act();
    // The shared counters of the network and in total stay; the user's own is new.
    expect(await throttles.countDocuments()).toBeLessThanOrEqual(before + 3);
    expect(await check()).toMatchObject({ outcome: 'wrong' });
  }
  await throttles.deleteMany(shared);
  expect((await listLines(account_id)).map(({ act }) => act)).toContain('user.unlocked');
});

test('the audit log has a change of the command line with its actor, before and after, and no secret', async () => {
  const { account_id, ...secrets } = await service.account();
  await service.json(`account update ${account_id} --crypto on --payout-fee card_payout=5`);
  const all = await listLines(account_id);
  const acts = ['account.updated', 'api_key.created', 'account.created'];
  expect(all.map(({ act }) => act)).toEqual(acts);
  expect((await listLines(account_id, true)).map(({ act }) => act)).toEqual(acts);
  const actor = { via: 'command_line', system_user: userInfo().username, host: hostname() };
  expect(all[0]).toMatchObject({
    ...{ account_id, actor, livemode: null, before: { crypto: false, payout_fees: [] } },
    after: { crypto: true, payout_fees: ['card_payout=5'] },
  });
  for (const name of ['sandbox_key', 'live_key', 'dashboard_password'] as const) {
    expect(JSON.stringify(all)).not.toContain(secrets[name]);
  }
});

describe('the chains of the audit log', () => {
  const verify = async () => {
    const { auditLog, operators } = service.stores;
    const processes = readAuditPublicKeys(service.env['KEYS_DIR'] ?? '');
    const listSigners = async () => ({ operators: await operators.list(), processes });
    const isSigned = await createSignatureCheck(listSigners);
    const chains = await verifyChains(auditLog, isSigned);
    return { ...chains, ...(await verifyRows(service.mongo, service.db.databaseName, isSigned)) };
  };

  test('have lines that are written at once one after the other, per account', async () => {
    const [one, other] = [await service.account(), await service.account()];
    const create = ({ account_id }: typeof one) =>
      service.json(`key create ${account_id} --env sandbox`);
    await Promise.all([one, other, one, other, one, one].map(create));
    const list = async (options: string) => Object(await service.json(`audit list ${options}`));
    const own = `--account ${one.account_id}`;
    const places: number[] = (await list(own)).data.map(({ seq }: { seq: number }) => seq);
    expect(places.toSorted((a, b) => b - a)).toEqual([7, 6, 5, 4, 3, 2, 1]);
    const data = [{ act: 'api_key.created', actor: { door: 'command_line' } }];
    const page = await list(`${own} --env live --limit 1`);
    expect(page).toMatchObject({ data, has_more: true });
    const later = new Date(Date.now() + 60_000).toISOString();
    expect(await list(`--since ${later}`)).toEqual({ data: [], has_more: false });
    expect((await verify()).broken).toEqual([]);
  });

  /** Makes every kind of change that audit lines explain. */
  async function changeAll() {
    const { deps, json } = service;
    const { account_id } = await service.account();
    const limits = { payout_limit: { EUR: 500 }, refund_step_up: { EUR: 9 } };
    await updateAccount(deps, account_id, { crypto: 'on', ...limits }, { mayLift: true });
    const ana = await createOperator(deps, { name: 'ana', role: 'approver' });
    const signed = { ...deps, audit: auditAs({ ...deps, operatorKey: ana.key }, 'ana') };
    const lift = (by: typeof deps, EUR: number | null) =>
      updateAccount(by, account_id, { payout_limit: { EUR } }, { mayLift: true });
    await lift(signed, null);
    await lift(deps, 500);
    await lift(signed, 600);
    const freeze = () => setFrozen(deps, account_id, { freeze: true, reason: 'Leak' });
    const unfreeze = (by: typeof deps) =>
      setFrozen(by, account_id, { freeze: false, reason: 'Closed' });
    await freeze();
    await unfreeze(signed);
    const owner = { account_id, livemode: true };
    const bounds = { expires_at: '2999-01-01T00:00:00.000Z', allowed_cidrs: ['203.0.113.0/24'] };
    const { key_id: key } = await createKey(deps, { ...owner, scopes: [], ...bounds });
    const { key_id: revoked } = await createKey(deps, { ...owner, scopes: [] });
    await revokeKey(deps, revoked);
    await createOperator(deps, { name: 'ben', role: 'approver' });
    await revokeOperator(deps, 'ben');
    const tested = commandsIn({ ...service.env, SANDBOX_CONNECTORS: 'acme=ideal' });
    const connectorKey = async () => Object(await tested.json('connector key create acme')).key_id;
    await tested.json(`connector key revoke ${await connectorKey()}`);
    const hook = `${account_id} --env sandbox`;
    for (const path of ['first', 'second']) {
      await json(`webhook set ${hook} --url http://127.0.0.1:9/${path}`);
    }
    await json(`webhook roll ${hook}`);
    const address = '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed';
    await setWallet(deps, { ...owner, network: 'ethereum', address });
    const routes = { liveConnectors: '', sandboxConnectors: '' };
    const scope = { livemode: false, method: 'visa', currency: null, account_id };
    await setRule({ ...deps, ...routes }, scope, { connector: 'sandbox', unseen: true }, {});
    await pauseConnector({ ...deps, ...routes }, 'sandbox', {});
    const invitation = { account_id, role: 'developer', invited_by: null } as const;
    const join = async (email: string) => {
      const { token } = await invite(deps, { ...invitation, email });
      const user = await acceptInvitation(deps, token, 'hash');
      if (user === null || user === 'is_member') throw new Error('Nobody joined.');
      return user._id;
    };
    const [member, removed] = [await join('ana@x.example'), await join('ben@x.example')];
    await changeMember(deps, { id: member, account_id }, 'finance');
    await changeMember(deps, { id: removed, account_id }, null);
    const { seal } = followKeyFile(service.env['KEYS_FILE'] ?? '');
    const factor = { ...deps, encrypter: createEncrypter(seal) };
    const own = { _id: member, account_id };
    const cookie = await insertSession(deps.stores.sessions, own, 'whole', deps.now());
    const enrollment = { user_id: member, session: hashToken(cookie) };
    await offerSecret(factor, enrollment);
    const offer = await getOffer(factor, enrollment, { id: account_id, name: 'Shop' });
    const secret = Secret.fromBase32(offer?.secret ?? '');
    await switchOn(factor, enrollment, new TOTP({ secret }).generate());
    await invite(deps, { ...invitation, email: 'z@x.example', role: 'owner' });
    return {
      ...{ account_id, key, operator: ana.operator_id, connectorKey: await connectorKey(), member },
      freeze,
      lift: (by: 'operator' | 'command') => lift(by === 'operator' ? signed : deps, 700),
      unfreeze: { signed: () => unfreeze(signed), unsigned: () => unfreeze(deps) },
    };
  }

  test('explain each row, and none that is planted or changed past them', async () => {
    const own = await changeAll();
    expect(await verify()).toMatchObject({ broken: [], unexplained: 0, findings: [] });
    const { account_id } = own;
    const sandbox = { account_id, livemode: false };
    const url = { url: 'https://b.example/' };
    const rows = [
      ['accounts', 'account', { _id: account_id }, { payout_limits: { EUR: 1 } }],
      ['api_keys', 'api_key', { _id: own.key }, { hash: 'other' }],
      ['operators', 'operator', { _id: own.operator }, { role: 'administrator' }],
      ['connector_keys', 'connector_key', { _id: own.connectorKey }, { connector: 'other' }],
      ['users', 'user', { _id: own.member }, { totp: null }],
      ['users', 'user', { _id: own.member }, { passkeys: [{ id: 'passkey_x' }] }],
      ['dashboard_invitations', 'invitation', { email: 'z@x.example' }, { role: 'finance' }],
      ['webhook_endpoints', 'webhook_endpoint', sandbox, url],
      ['wallets', 'wallet', { account_id }, { address: '0x0' }],
      ['routing_rules', 'routing_rule', { account_id }, { connector: 'thief' }],
      ['connector_pauses', 'connector_pause', { connector: 'sandbox' }, { livemode: true }],
    ] as const;
    for (const [name, noun, where, change] of rows) {
      const filter: Filter<Document> = Object(where);
      const collection = service.db.collection<Document>(name);
      const row = await collection.findOne(filter);
      if (row === null) throw new Error(`There is no ${noun}.`);
      await collection.updateOne(filter, { $set: change });
      const [field = ''] = Object.keys(change);
      const shown = { hash: 'fingerprint', totp: 'second_factor', passkeys: 'passkey_x' }[field];
      const changed = { code: `${noun}_changed`, fields: [shown ?? field] };
      expect(await verify()).toMatchObject({ broken: [], findings: [changed] });
      await collection.replaceOne(filter, row);
      const _id = new ObjectId();
      const others = { account_id: 'acct_x', hash: 'h', email: 'x@x.example', network: 'x' };
      await collection.insertOne({ ...row, ...others, _id, dashboard: { email: 'x@x.example' } });
      const planted = { code: `${noun}_unexplained`, fields: [] };
      expect(await verify()).toMatchObject({ broken: [], findings: [planted] });
      await collection.deleteOne({ _id });
    }
    await own.freeze();
    await own.unfreeze.unsigned();
    const line = { account_id, livemode: null, target: account_id } as const;
    const [newest] = await service.stores.auditLog.list({
      account_id,
      act: 'account.updated',
      limit: 1,
    });
    const after = newest?.after ?? {};
    for (const act of ['account.updated', 'account.created'] as const) {
      await service.deps.audit({ ...line, act, after: { ...after, frozen: false } });
    }
    const unfrozen = { code: 'account_changed', fields: ['frozen'] };
    const unsigned = { chain: account_id, fault: 'not_signed' };
    expect(await verify()).toMatchObject({ broken: [unsigned], findings: [unfrozen] });
    await own.freeze();
    await own.unfreeze.signed();
    expect(await verify()).toMatchObject({ broken: [{}], findings: [] });
    await own.lift('command');
    const raised = { code: 'account_changed', fields: ['payout_limits'] };
    expect(await verify()).toMatchObject({ findings: [raised] });
    await own.lift('operator');
    expect(await verify()).toMatchObject({ findings: [] });
    // A forged line stays: the next test begins without this account.
    for (const { collectionName } of await service.db.collections()) {
      const rows = service.db.collection<{ _id: string; account_id: string }>(collectionName);
      await rows.deleteMany({ $or: [{ account_id }, { _id: account_id }] });
    }
  });

  test('have no line that was written outside them, and no merchant reads it', async () => {
    const { account_id } = await service.account();
    const [line] = await service.stores.auditLog.list({ account_id, limit: 1 });
    const { seq: _, ...forged } = { ...line, _id: '2999-01-01T00:00:00.000Z_0123456789abcdef' };
    const log = service.db.collection<{ _id: string }>('audit_log');
    await log.insertOne(forged);
    const fault = { chain: account_id, seq: 0, line_id: forged._id, fault: 'unchained' };
    expect((await verify()).broken).toContainEqual(fault);
    const page = { before: undefined, after: undefined, act: undefined };
    const { rows } = await listAuditLines(service, { account_id, livemode: false }, page);
    expect(rows.map(({ _id }) => _id)).not.toContain(forged._id);
    expect((await service.cli('audit list --limit 1')).stdout).toContain('not chained');
    await log.deleteOne({ _id: forged._id });
  });

  // Which faults a chain may have is in test/service/unit/audit.test.ts.
  test('are verified by audit verify, with --against also where one was replaced as a whole', async () => {
    const { cli, db, folder, json, refusal } = service;
    const { account_id } = await service.account();
    const before = Object(await json('audit verify'));
    expect(before).toMatchObject({ broken: [], unexplained: 0, findings: [] });
    const heads = join(folder, 'heads.json');
    writeFileSync(heads, JSON.stringify(before));
    const against = `audit verify --against ${heads}`;
    const { key_id } = await createKey(service.deps, { account_id, livemode: true, scopes: [] });
    await revokeKey(service.deps, key_id);
    expect(await json(against)).toMatchObject({ broken: [] });
    const keys = db.collection<{ _id: string }>('api_keys');
    await keys.updateOne({ _id: key_id }, { $set: { revoked_at: null } });
    expect(await cli('audit verify')).toEqual({
      ...{ exit: 1, stderr: 'The audit log does not explain 1 row.\n' },
      stdout: expect.stringMatching(/api_key_changed .* revoked_at\n/),
    });
    await db.collection('audit_log').deleteMany({ account_id });
    await db.collection<{ _id: string }>('audit_heads').deleteOne({ _id: account_id });
    // The account, three keys and the owner.
    expect(await verify()).toMatchObject({ broken: [], unexplained: 5 });
    expect(await cli(against)).toEqual({
      ...{ exit: 1, stderr: 'The audit log has 1 broken chain.\n' },
      stdout: expect.stringContaining('the line is missing'),
    });
    const inJson = await cli(against, '--json');
    expect(JSON.parse(inJson.stderr).error.code).toBe('audit_log_broken');
    writeFileSync(heads, '{}');
    expect((await refusal(against)).code).toBe('file_invalid');
  });
});

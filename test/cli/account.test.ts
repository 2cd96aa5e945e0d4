import { writeFileSync } from 'node:fs';
import { hostname, userInfo } from 'node:os';
import { join } from 'node:path';
import { verify } from '@node-rs/argon2';
import { type Document, type Filter, ObjectId } from 'mongodb';
import { Secret, TOTP } from 'otpauth';
import { SCOPES } from '../../src/domain/account/api-key';
import { PAYMENT_METHOD_IDS } from '../../src/domain/payment/catalog';
import { RAIL_IDS } from '../../src/domain/payout/rails';
import { createEncrypter } from '../../src/encryption/encrypter';
import { createKeyFile } from '../../src/encryption/key-file';
import { isPassword } from '../../src/encryption/password';
import { followKeyFile } from '../../src/encryption/service-keys';
import { pauseConnector } from '../../src/service/banks/connectors';
import { setRule } from '../../src/service/banks/routing/change';
import { createAccount, setFrozen, updateAccount } from '../../src/service/merchants/accounts';
import { createKey, revokeKey } from '../../src/service/merchants/keys';
import { acceptInvitation, changeMember, invite } from '../../src/service/merchants/team/members';
import { getOffer, offerSecret, switchOn } from '../../src/service/merchants/team/second-factor';
import { resetPassword } from '../../src/service/merchants/team/sessions';
import { checkLogin, createSignInLanes } from '../../src/service/merchants/team/sign-in';

import { fundSandbox } from '../../src/service/money/balances/fund';
import { readBalances } from '../../src/service/money/read';
import { setWallet } from '../../src/service/money/wallets';
import { verifyChains } from '../../src/service/operators/audit/chains';
import { listAuditLines } from '../../src/service/operators/audit/log';
import { verifyRows } from '../../src/service/operators/audit/rows';
import { createOperator, revokeOperator } from '../../src/service/operators/keys';
import { CACHE_MS } from '../../src/store/cache';
import { hashKey } from '../../src/store/keys';
import { CreatedAccount, commandsIn, everythingStored, useProvisioning } from './cli';

const service = useProvisioning();

const FIRST = '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed';
const SECOND = '0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359';
const runUpdate = (account_id: string, ...options: string[]) =>
  service.json('account', 'update', account_id, ...options);

describe('a new account', () => {
  test('has a key per environment, all methods and a login, of whose secrets hashes alone are stored', async () => {
    const { account_id, sandbox_key, live_key, dashboard_email, dashboard_password } =
      await service.account();
    expect(dashboard_email).toMatch(/^merchant-[0-9a-f]{12}@dashboard\.localhost$/);
    const { accounts, keys, users } = service.stores;
    const key = { account_id, scopes: SCOPES, revoked_at: null };
    expect(await keys.byHash(hashKey(sandbox_key))).toMatchObject({ ...key, livemode: false });
    expect(await keys.byHash(hashKey(live_key))).toMatchObject({ ...key, livemode: true });
    const settings = { name: 'Acme', crypto: false, enabled_methods: PAYMENT_METHOD_IDS };
    expect(await accounts.get(account_id)).toMatchObject(settings);
    const stored = await everythingStored(service.db);
    for (const secret of [sandbox_key, live_key, dashboard_password]) {
      expect(stored).not.toContain(secret.replace(/^sk_\w+?_/, ''));
    }
    const [owner] = await users.byEmail(dashboard_email);
    expect(owner).toMatchObject({
      account_id,
      role: 'owner',
      password_expires_at: expect.anything(),
    });
    // 19 MiB, two passes, one lane.
    const { password_hash = '' } = owner ?? {};
    expect(password_hash).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$/);
    expect(await verify(password_hash, dashboard_password)).toBe(true);
  });

  test('takes the login of --email in lower case, once, and with --keep-password for good', async () => {
    const email = ['--email', 'Ana@Example.com', '--keep-password'];
    const create = ['account', 'create', '--name', ' Ana ', ...email];
    const made = CreatedAccount.parse(await service.json(...create));
    expect(made.dashboard_email).toBe('ana@example.com');
    const [owner] = await service.stores.users.byEmail('ana@example.com');
    expect(owner).not.toHaveProperty('password_expires_at');
    expect(await service.json('account', 'show', made.account_id)).toMatchObject({ name: 'Ana' });
    expect(await service.refusal(...create)).toEqual({
      code: 'email_taken',
      message: 'Another account has the dashboard login ana@example.com.',
    });
  });

  test('has test funds in its sandbox, credited once, and none on live', async () => {
    const { account_id } = await service.account();
    const list = (balance_account: string, available: number) =>
      ['EUR', 'GBP', 'USD'].map((currency) => {
        return { balance_account, currency, available, reserved: 0 };
      });
    await expect(fundSandbox(service.deps, account_id)).rejects.toThrow(/duplicate key/);
    const read = (livemode: boolean) => readBalances(service, { account_id, livemode });
    const balances = [...list('main', 10_000_000), ...list('marketing', 1_000_000)];
    expect(await read(false)).toEqual({ balances, receivables: [] });
    expect(await read(true)).toEqual({ balances: [], receivables: [] });
  });

  test('gets no key when its test funds cannot be posted, and no funds either', async () => {
    const { deps, stores, db } = service;
    let posted = 0;
    const post: typeof stores.ledger.post = async (...args) => {
      posted += 1;
      if (posted > 3) throw new Error('The disk is full.');
      return await stores.ledger.post(...args);
    };
    const names = ['api_keys', 'journal_entries'];
    const count = () => Promise.all(names.map((name) => db.collection(name).countDocuments()));
    const before = await count();
    const broken = { ...deps, stores: { ...stores, ledger: { ...stores.ledger, post } } };
    await expect(createAccount(broken, { name: 'A' })).rejects.toMatchObject({
      code: 'funding_failed',
      message: expect.stringMatching(/^The account acct_\S+ is not usable: .+ it got no keys\./),
    });
    expect(await count()).toEqual(before);
  });
});

describe('account update', () => {
  test('switches crypto and methods on and off, and answers with the account', async () => {
    const { account_id, dashboard_email } = await service.account('Update');
    const off = ['--disable-method', 'amex', '--disable-method', 'visa'];
    const changed = await runUpdate(account_id, '--crypto', 'on', ...off);
    expect(changed).toEqual({
      ...{ account_id, name: 'Update', crypto: true, dashboard_email },
      enabled_methods: PAYMENT_METHOD_IDS.filter((id) => id !== 'amex' && id !== 'visa'),
      ...{ enabled_rails: RAIL_IDS, payout_fees: {}, payer_data_months: 18 },
      created_at: expect.stringMatching(/Z$/),
    });
    expect(await service.json('account', 'show', account_id)).toEqual(changed);
    const on = ['--enable-method', 'visa', '--crypto', 'off', '--disable-method', 'ideal'];
    const startedAt = performance.now();
    expect(await runUpdate(account_id, ...on)).toMatchObject({
      crypto: false,
      enabled_methods: PAYMENT_METHOD_IDS.filter((id) => id !== 'amex' && id !== 'ideal'),
    });
    // No process still lists its crypto payments.
    expect(performance.now() - startedAt).toBeGreaterThan(CACHE_MS - 100);
  });

  test('switches rails, and sets payout fees, limits by currency, and months for which payers are stored', async () => {
    const { account_id } = await service.account();
    const set = (line: string) => runUpdate(account_id, ...line.split(' '));
    const rails = '--disable-method card_payout --disable-method faster_payments';
    const fees = '--payout-fee sepa_instant=50 --payout-fee card_payout:JPY=150';
    const limits = '--payout-limit EUR=0 --owed-limit EUR=100 --refund-step-up GBP=0';
    expect(await set(`${rails} ${fees} ${limits} --payer-data-months 6`)).toMatchObject({
      enabled_methods: PAYMENT_METHOD_IDS,
      enabled_rails: ['sepa_credit_transfer', 'sepa_instant'],
      payout_fees: { sepa_instant: 50, 'card_payout:JPY': 150 },
      ...{ payer_data_months: 6, payout_limits: { EUR: 0 }, owed_limits: { EUR: 100 } },
      refund_step_up: { GBP: 0 },
    });
    const { stdout } = await service.cli('account', 'show', account_id);
    for (const [label, value] of [
      ['Rails', 'sepa_credit_transfer, sepa_instant'],
      ['Payout fees', 'sepa_instant=50, card_payout:JPY=150'],
      ['Payers stored', '6 months'],
      ['Payout limits', 'EUR=0'],
      ['Owed limits', 'EUR=100'],
      ['Refunds with step-up above', 'GBP=0'],
    ]) {
      expect(stdout).toMatch(new RegExp(`^${label}: +${value}$`, 'm'));
    }
    const off = '--payout-limit EUR=off --owed-limit EUR=off --refund-step-up GBP=off';
    const free = '--payout-fee sepa_instant=0 --payout-fee card_payout:JPY=off';
    const removed = await set(`${off} ${free} --enable-method card_payout`);
    expect(removed).toMatchObject({
      enabled_rails: ['card_payout', 'sepa_credit_transfer', 'sepa_instant'],
      ...{ payout_fees: {}, payer_data_months: 6 },
    });
    expect(Object.keys(Object(removed)).join()).not.toMatch(/limits|step_up/);
    const exempt = { payout_fees: { 'card_payout:KWD': 0 } };
    expect(await set('--payout-fee card_payout:KWD=0')).toMatchObject(exempt);
  });
});

test('account freeze is shown with its reason, logged once, and ended by unfreeze', async () => {
  const { account_id } = await service.account();
  const freeze = ['account', 'freeze', account_id, '--reason'];
  const reason = 'Ticket 42: a live key leaked';
  const frozen = await service.json(...freeze, reason, '--operator', 'mia');
  expect(frozen).toMatchObject({ account_id, frozen: { at: expect.stringMatching(/Z$/), reason } });
  expect(await service.json(...freeze, 'Again')).toEqual(frozen);
  const { stdout } = await service.cli('account', 'show', account_id);
  expect(stdout).toMatch(/\nFrozen: +since .* UTC: Ticket 42: a live key leaked\n/);
  expect(await service.json('account', 'unfreeze', account_id)).not.toHaveProperty('frozen');
  expect(await service.stores.auditLog.list({ account_id, limit: 2 })).toMatchObject([
    { act: 'account.unfrozen' },
    { act: 'account.frozen', after: { reason, operator: 'mia' } },
  ]);
});

test('account list begins with the newest account, says whether there are more, and prints no control characters', async () => {
  const { account_id } = await service.account('\u001b[2J\u202eEvil\u0007\nLine');
  expect(await service.json('account', 'list', '--limit', '1')).toEqual({
    data: [expect.objectContaining({ account_id })],
    has_more: true,
  });
  const { stdout } = await service.cli('account', 'list');
  expect(stdout).toContain('[2JEvil Line\n');
  expect(stdout).not.toContain('There are more');
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be there.
  expect(stdout.replaceAll('\n', '')).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u202e]/);
});

// What a key is refused for is in test/api/keys.test.ts.
test('an API key has all scopes or some, expires, is limited to networks, listed without its secret, and revoked once', async () => {
  const { account_id, sandbox_key } = await service.account();
  const create = ['key', 'create', account_id, '--env'];
  const { key, key_id } = Object(await service.json(...create, 'live'));
  expect(key).toMatch(/^sk_live_/);
  const until = ['--expires-at', '2999-01-01T01:00:00+01:00'];
  const from = ['--allow-cidr', '203.0.113.0/24', '--allow-cidr', '2001:db8::/32'];
  const some = ['--scopes', 'refunds:read, payments:read', ...until, ...from];
  const bounded = Object(await service.json(...create, 'sandbox', ...some));
  const bounds = {
    expires_at: '2999-01-01T00:00:00.000Z',
    allowed_cidrs: ['203.0.113.0/24', '2001:db8::/32'],
  };
  const limited = { scopes: ['payments:read', 'refunds:read'], ...bounds };
  const { auditLog, keys } = service.stores;
  expect(await keys.byHash(hashKey(bounded.key))).toMatchObject({ livemode: false, ...limited });
  const change = { act: 'api_key.created', target: bounded.key_id, after: bounds };
  expect(await auditLog.list({ account_id, limit: 1 })).toMatchObject([change]);
  const { data } = Object(await service.json('key', 'list', account_id));
  expect(data).toHaveLength(4);
  expect(data.at(-1)).toMatchObject({ key_id: bounded.key_id, env: 'sandbox', ...limited });
  const at = expect.stringMatching(/Z$/);
  expect(data.at(-2)).toEqual({
    ...{ key_id, env: 'live', last4: key.slice(-4), scopes: SCOPES },
    ...{ created_at: at, last_used_at: null, revoked_at: null },
  });
  const { stdout } = await service.cli('key', 'list', account_id);
  expect(stdout).toMatch(/^KEY +ENV +ENDS +CREATED +LAST USED +REVOKED +SCOPES\n/);
  expect(stdout).toMatch(new RegExp(`sandbox +…${sandbox_key.slice(-4)} .* never +- +all\n`));
  const revoked = await service.json('key', 'revoke', key_id);
  expect(revoked).toEqual({ key_id, revoked_at: at });
  const { revoked_at } = Object(revoked);
  expect(await keys.byHash(hashKey(key))).toMatchObject({ scopes: SCOPES, revoked_at });
  expect(await service.json('key', 'revoke', key_id)).toEqual(revoked);
});

test('a wallet takes effect at once in the sandbox, and is set once', async () => {
  const { account_id } = await service.account();
  const set = (address: string) => {
    const place = [account_id, '--env', 'sandbox', '--network', 'ethereum'];
    return ['wallet', 'set', ...place, '--address', address];
  };
  const wallet = await service.json(...set(FIRST));
  expect(wallet).toMatchObject({ network: 'ethereum', address: FIRST, counting: FIRST });
  expect(await service.json(...set(FIRST))).toEqual(wallet);
  const lines = await service.stores.auditLog.list({ account_id, act: 'wallet.set', limit: 9 });
  const { counts_from } = Object(wallet);
  const after = { address: FIRST, counts_from, counting: FIRST };
  expect(lines).toMatchObject([{ livemode: false, target: 'ethereum', before: null, after }]);
  expect((await service.refusal(...set(FIRST.toLowerCase()))).code).toBe('address_invalid');
});

test('a wallet takes effect on live after 24 hours, and its predecessor receives nothing until then', async () => {
  const { account_id } = await service.account();
  const set = (address: string, day: number) =>
    setWallet(
      { ...service.deps, now: () => new Date(`2999-03-0${day}T12:00:00.000Z`) },
      { account_id, livemode: true, network: 'ethereum', address },
    );
  const counts_from = '2999-03-02T12:00:00.000Z';
  const first = await set(FIRST, 1);
  expect(first).toMatchObject({ counting: null, previous: null, counts_from });
  expect(await set(FIRST, 1)).toEqual(first);
  const second = { address: SECOND, counting: null, previous: FIRST };
  const paused = { ...second, paused_until: '2999-03-03T12:00:00.000Z' };
  expect(await set(SECOND, 2)).toMatchObject(paused);
  const show = ['wallet', 'show', account_id, '--env'];
  expect(await service.json(...show, 'live')).toMatchObject({ data: [{ address: SECOND }] });
  expect(await service.json(...show, 'sandbox')).toEqual({ data: [] });
  expect((await service.cli(...show, 'live')).stdout).toContain('nothing until ');
});

const LOCAL = 'http://localhost:4000/hook';
const HOUR_MS = 3_600_000;

/** Commands for the sandbox of a new merchant. */
async function openSandbox() {
  const account = await service.account();
  const place = [account.account_id, '--env', 'sandbox'];
  const json = async (name: string, ...more: string[]) =>
    Object(await service.json('webhook', name, ...place, ...more));
  return {
    ...account,
    place,
    json,
    set: (...more: string[]) => json('set', '--url', LOCAL, ...more),
    listActs: async () => {
      const filter = { account_id: account.account_id, livemode: false, limit: 9 };
      const acts = (await service.stores.auditLog.list(filter)).map(({ act }) => act);
      return acts.filter((act) => act.startsWith('webhook.'));
    },
  };
}

// Each change waits for caches, which the tests do at once. URLs are in test/webhooks/address.test.ts, secrets in
// test/store/stores.test.ts, the rules of several endpoints in test/api/webhooks.test.ts.
test.concurrent('webhook set keeps the secret and the events of each environment, and prints a secret once', async () => {
  const { account_id, place, set, json, listActs } = await openSandbox();
  const print = async (...args: string[]) => (await service.cli('webhook', ...args)).stdout;
  expect(await service.json('webhook', 'show', ...place)).toBeNull();
  const none = `No sandbox webhook endpoint is registered for ${account_id}`;
  expect(await print('show', ...place)).toContain(none);
  const first = await print('set', ...place, '--url', LOCAL);
  expect(first).toMatch(/^Signing secret: +whsec_[\w-]{43}$/m);
  const again = await print('set', ...place, '--url', LOCAL);
  expect(again).toMatch(/^Signing secret: +unchanged: `webhook show` shows it$/m);
  expect(again).not.toContain('whsec_');
  const onLive = ['--env', 'live', '--url', 'https://1.1.1.1/hook'];
  const live = Object(await service.json('webhook', 'set', account_id, ...onLive));
  const chosen = await set('--events', 'payout.returned, payment.settled');
  expect(await listActs()).toEqual(['webhook.secret_shown', ...Array(3).fill('webhook.set')]);
  const { signing_secret } = chosen;
  expect(first).toContain(signing_secret);
  expect(live.signing_secret).not.toBe(signing_secret);
  const enabled_events = ['payment.settled', 'payout.returned'];
  expect(chosen).toEqual({ url: LOCAL, signing_secret, enabled_events });
  expect(await json('show')).toEqual(chosen);
  const events = 'payment\\.settled, payout\\.returned';
  expect(await print('show', ...place)).toMatch(new RegExp(`^Events: +${events}$`, 'm'));
  expect(await set('--events', 'all')).toEqual({ url: LOCAL, signing_secret });
  expect(await print('show', ...place)).toMatch(/^Events: +all$/m);
});

test.concurrent('webhook set leaves one endpoint with one secret when several register it at once', async () => {
  const { account_id, json } = await openSandbox();
  const urls = Array.from({ length: 8 }, (_, port) => `http://localhost:${5000 + port}/`);
  const answers = await Promise.all(urls.map((url) => json('set', '--url', url)));
  expect(new Set(answers.map(({ signing_secret }) => signing_secret)).size).toBe(1);
  const stored = await service.db.collection('webhook_endpoints').find({ account_id }).toArray();
  expect(stored).toMatchObject([{ secrets: [expect.anything()] }]);
});

test.concurrent('webhook set needs an address that the environment allows, and the right keys, and else stores nothing', async () => {
  const { account_id, place, set, json } = await openSandbox();
  const before = await set();
  const refuse = async (env: object, where = place, url = `${LOCAL}/2`) =>
    await commandsIn({ ...service.env, ...env }).refusal('webhook', 'set', ...where, '--url', url);
  const KEYS_FILE = `${service.folder}/other-keys.json`;
  createKeyFile(KEYS_FILE);
  expect((await refuse({ KEYS_FILE })).message).toContain(
    'can not be decrypted with this KEYS_FILE',
  );
  expect((await refuse({ WEBHOOK_ALLOW_PRIVATE: '' })).message).toContain('https://');
  const onLive = [account_id, '--env', 'live'];
  expect((await refuse({}, onLive)).code).toBe('url_not_https');
  expect((await refuse({}, place, 'hook')).code).toBe('url_invalid');
  expect(await json('show')).toEqual(before);
  expect(await service.json('webhook', 'show', ...onLive)).toBeNull();
  expect((await service.refusal('webhook', 'roll', ...onLive)).code).toBe('webhook_not_set');
  // No secret decrypts for another environment.
  const endpoints = service.db.collection('webhook_endpoints');
  await endpoints.updateOne({ account_id, livemode: false }, { $set: { livemode: true } });
  expect((await service.refusal('webhook', 'show', ...onLive)).code).toBe('keys_file_mismatch');
});

test.concurrent('webhook roll replaces the secret at once, or keeps it until --after', async () => {
  const { set, json } = await openSandbox();
  const { url, signing_secret: first } = await set();
  const { signing_secret } = await json('roll', '--after', 'now');
  expect(signing_secret).not.toBe(first);
  const startedAt = Date.now();
  const { signing_secret: next_secret, active_from } = await json('roll', '--after', '1h');
  expect(Date.parse(active_from)).toBeGreaterThanOrEqual(startedAt + HOUR_MS);
  expect(Date.parse(active_from)).toBeLessThanOrEqual(Date.now() + HOUR_MS);
  const next = { next_secret, next_active_from: active_from };
  expect(await json('show')).toEqual({ url, signing_secret, ...next });
});

test.concurrent('endpoints are added, listed, updated and removed; `show` takes the oldest by default', async () => {
  const { place, set, json, listActs } = await openSandbox();
  const { signing_secret } = await set();
  const events = ['--events', 'payout.sent', '--description', 'Books'];
  const added = await json('add', '--url', 'http://localhost:4002/', ...events);
  expect(added).toMatchObject({
    ...{ object: 'webhook_endpoint', description: 'Books', enabled_events: ['payout.sent'] },
    signing_secret: expect.stringMatching(/^whsec_[\w-]{43}$/),
  });
  expect((await json('list')).data).toMatchObject([{ url: LOCAL }, { id: added.id }]);
  const other = ['--endpoint', added.id];
  const disabled = { id: added.id, status: 'disabled', disabled_reason: 'merchant' };
  const disable = ['--status', 'disabled', '--events', 'all'];
  expect(await json('update', ...other, ...disable)).toMatchObject(disabled);
  const { stdout } = await service.cli('audit', 'verify', '--json');
  expect(JSON.stringify(JSON.parse(stdout).findings)).not.toContain(added.id);
  const refuse = async (name: string) =>
    (await service.refusal('webhook', name, ...place, ...other)).code;
  expect(await refuse('update')).toBe('invalid_usage');
  expect(await json('show')).toMatchObject({ signing_secret });
  expect((await json('show', ...other)).signing_secret).toBe(added.signing_secret);
  expect(await json('remove', ...other)).toMatchObject({ deleted: true });
  expect(await refuse('remove')).toBe('webhook_endpoint_not_found');
  expect(await listActs()).toEqual([
    ...['webhook.deleted', 'webhook.secret_shown', 'webhook.secret_shown', 'webhook.updated'],
    ...['webhook.created', 'webhook.set'],
  ]);
});

const listLines = (account_id: string, livemode = false) =>
  service.stores.auditLog.list({ account_id, livemode, limit: 100 });

test('dashboard invite prints a link by which a user joins the team, whom dashboard people lists', async () => {
  const { account_id, dashboard_email } = await service.account();
  const member = ['--email', 'Ana@Example.com', '--role', 'developer'];
  const made = Object(await service.json('dashboard', 'invite', account_id, ...member));
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
  const reset = ['dashboard', 'reset-password'];
  const made = await service.json(...reset, email.toUpperCase(), '--without-second-factor');
  expect(made).toEqual({ email, password: expect.any(String) });
  const [user] = await service.stores.users.byEmail(email);
  expect(await isPassword(Object(made).password, user?.password_hash)).toBe(true);
  expect(await isPassword(dashboard_password, user?.password_hash)).toBe(false);
  expect(user?.passkeys).toEqual([]);
  expect((await listLines(account_id)).slice(0, -2)).toMatchObject([
    { act: 'passkey.removed', before: { passkey: 'passkey_1', name: 'Phone' } },
    { act: 'user.password_reset' },
  ]);
  const other = ['nobody@example.com', '--account', account_id];
  const unknown = { code: 'user_not_found', message: 'There is no login nobody@example.com.' };
  expect(await service.refusal(...reset, ...other)).toEqual(unknown);
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
  const change = ['--crypto', 'on', '--payout-fee', 'card_payout=5'];
  await service.json('account', 'update', account_id, ...change);
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
  const verify = async () => ({
    ...(await verifyChains(service.stores.auditLog)),
    ...(await verifyRows(service.mongo, service.db.databaseName)),
  });

  test('have lines that are written at once one after the other, per account', async () => {
    const [one, other] = [await service.account(), await service.account()];
    const create = ({ account_id }: typeof one) =>
      service.json('key', 'create', account_id, '--env', 'sandbox');
    await Promise.all([one, other, one, other, one, one].map(create));
    const list = async (...args: string[]) => Object(await service.json('audit', 'list', ...args));
    const own = ['--account', one.account_id];
    const places: number[] = (await list(...own)).data.map(({ seq }: { seq: number }) => seq);
    expect(places.toSorted((a, b) => b - a)).toEqual([7, 6, 5, 4, 3, 2, 1]);
    const data = [{ act: 'api_key.created', actor: { door: 'command_line' } }];
    const page = await list(...own, '--env', 'live', '--limit', '1');
    expect(page).toMatchObject({ data, has_more: true });
    const later = new Date(Date.now() + 60_000).toISOString();
    expect(await list('--since', later)).toEqual({ data: [], has_more: false });
    expect((await verify()).broken).toEqual([]);
  });

  /** Makes every kind of change that audit lines explain. */
  async function changeAll() {
    const { deps, json } = service;
    const { account_id } = await service.account();
    const limits = { payout_limit: { EUR: 500 }, refund_step_up: { EUR: 9 } };
    await updateAccount(deps, account_id, { crypto: 'on', ...limits });
    await updateAccount(deps, account_id, { payout_limit: { EUR: null } });
    await setFrozen(deps, account_id, { freeze: true, reason: 'Leak' });
    await setFrozen(deps, account_id, { freeze: false, reason: 'Closed' });
    const owner = { account_id, livemode: true };
    const bounds = { expires_at: '2999-01-01T00:00:00.000Z', allowed_cidrs: ['203.0.113.0/24'] };
    const { key_id: key } = await createKey(deps, { ...owner, scopes: [], ...bounds });
    const { key_id: revoked } = await createKey(deps, { ...owner, scopes: [] });
    await revokeKey(deps, revoked);
    const ana = await createOperator(deps, { name: 'ana', role: 'approver' });
    await createOperator(deps, { name: 'ben', role: 'approver' });
    await revokeOperator(deps, 'ben');
    const connectorKey = async () =>
      Object(await json('connector', 'key', 'create', 'acme')).key_id;
    await json('connector', 'key', 'revoke', await connectorKey());
    const hook = [account_id, '--env', 'sandbox'];
    for (const path of ['first', 'second']) {
      await json('webhook', 'set', ...hook, '--url', `http://127.0.0.1:9/${path}`);
    }
    await json('webhook', 'roll', ...hook);
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
    const enrollment = { user_id: member, session: 'own' };
    await offerSecret(factor, enrollment);
    const secret = (await getOffer(factor, enrollment))?.secret ?? '';
    const code = new TOTP({ secret: Secret.fromBase32(secret) }).generate();
    await switchOn(factor, member, { code, keep: 'own' });
    await invite(deps, { ...invitation, email: 'z@x.example', role: 'owner' });
    return {
      account_id,
      key,
      operator: ana.operator_id,
      connectorKey: await connectorKey(),
      member,
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
    expect((await service.cli('audit', 'list', '--limit', '1')).stdout).toContain('not chained');
    await log.deleteOne({ _id: forged._id });
  });

  // Which faults a chain may have is in test/service/unit/audit.test.ts.
  test('are verified by audit verify, with --against also where one was replaced as a whole', async () => {
    const { cli, db, folder, json, refusal } = service;
    const { account_id } = await service.account();
    const before = Object(await json('audit', 'verify'));
    expect(before).toMatchObject({ broken: [], unexplained: 0, findings: [] });
    const heads = join(folder, 'heads.json');
    writeFileSync(heads, JSON.stringify(before));
    const against = ['audit', 'verify', '--against', heads];
    const { key_id } = await createKey(service.deps, { account_id, livemode: true, scopes: [] });
    await revokeKey(service.deps, key_id);
    expect(await json(...against)).toMatchObject({ broken: [] });
    const keys = db.collection<{ _id: string }>('api_keys');
    await keys.updateOne({ _id: key_id }, { $set: { revoked_at: null } });
    const changed = await cli('audit', 'verify');
    expect(changed.stdout).toMatch(/api_key_changed .* revoked_at\n/);
    const stderr = 'The audit log does not explain 1 row.\n';
    expect(changed).toMatchObject({ exit: 1, stderr });
    await db.collection('audit_log').deleteMany({ account_id });
    await db.collection<{ _id: string }>('audit_heads').deleteOne({ _id: account_id });
    // The account, three keys and the owner.
    expect(await verify()).toMatchObject({ broken: [], unexplained: 5 });
    const replaced = await cli(...against);
    expect(replaced.stdout).toContain('the line is missing');
    expect(replaced).toMatchObject({ exit: 1, stderr: 'The audit log has 1 broken chain.\n' });
    const inJson = await cli(...against, '--json');
    expect(JSON.parse(inJson.stderr).error.code).toBe('audit_log_broken');
    writeFileSync(heads, '{}');
    expect((await refusal(...against)).code).toBe('file_invalid');
  });
});

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { verify } from '@node-rs/argon2';
import { SCOPES } from '../../src/domain/merchants/api-key';
import { PAYMENT_METHOD_IDS } from '../../src/domain/payment/catalog';
import { RAIL_IDS } from '../../src/domain/payout/rails';
import { createKeyFile } from '../../src/encryption/key-file';
import { createAccount } from '../../src/service/merchants/accounts';
import { fundBalance, fundSandbox } from '../../src/service/money/balances/fund';
import { readBalances } from '../../src/service/money/read';
import { setWallet } from '../../src/service/money/wallets';
import { createOperator, revokeOperator, verifyOperator } from '../../src/service/operators/keys';
import { CACHE_MS } from '../../src/store/cache';
import { hashKey } from '../../src/store/keys';
import { camt, TEST_IBAN } from '../support/camt';
import {
  asOperator,
  CreatedAccount,
  commandsIn,
  everythingStored,
  runApproved,
  useProvisioning,
} from './cli';

const service = useProvisioning();

const FIRST = '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed';
const SECOND = '0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359';

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
    const create = 'account create --name " Ana " --email Ana@Example.com --keep-password';
    const made = CreatedAccount.parse(await service.json(create));
    expect(made.dashboard_email).toBe('ana@example.com');
    const [owner] = await service.stores.users.byEmail('ana@example.com');
    expect(owner).not.toHaveProperty('password_expires_at');
    expect(await service.json(`account show ${made.account_id}`)).toMatchObject({ name: 'Ana' });
    expect(await service.refusal(create)).toEqual({
      code: 'email_taken',
      message: 'Another account has the dashboard login ana@example.com.',
    });
  });

  test('has test funds in its sandbox, credited once, and none on live', async () => {
    const { account_id } = await service.account();
    await expect(fundSandbox(service.deps, account_id)).rejects.toThrow(/duplicate key/);
    const read = (livemode: boolean) => readBalances(service, { account_id, livemode });
    const balances = ['main', 'marketing'].flatMap((balance_account) => {
      const row = {
        balance_account,
        available: balance_account === 'main' ? 1e7 : 1e6,
        reserved: 0,
      };
      return ['EUR', 'GBP', 'USD'].map((currency) => ({ ...row, currency }));
    });
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
  async function openUpdated(name?: string) {
    const { account_id, dashboard_email } = await service.account(name);
    const show = `account show ${account_id}`;
    const update = `account update ${account_id}`;
    return {
      ...{ account_id, dashboard_email, show },
      set: (options: string) => service.json(`${update} ${options}`),
      setApproved: async (options: string) => {
        await runApproved(service, `${update} ${options}`);
        return await service.json(show);
      },
    };
  }

  test('switches crypto and methods on and off, and answers with the account', async () => {
    const { account_id, dashboard_email, show, set } = await openUpdated('Update');
    const changed = await set('--crypto on --disable-method amex --disable-method visa');
    expect(changed).toEqual({
      ...{ account_id, name: 'Update', crypto: true, dashboard_email },
      enabled_methods: PAYMENT_METHOD_IDS.filter((id) => id !== 'amex' && id !== 'visa'),
      ...{ enabled_rails: RAIL_IDS, payout_fees: {}, payer_data_months: 18 },
      ...{ hold_unverified: false, crypto_tolerance: 0, acquirer_fee: 'service' },
      created_at: expect.stringMatching(/Z$/),
    });
    expect(await service.json(show)).toEqual(changed);
    const startedAt = performance.now();
    expect(await set('--enable-method visa --crypto off --disable-method ideal')).toMatchObject({
      crypto: false,
      enabled_methods: PAYMENT_METHOD_IDS.filter((id) => id !== 'amex' && id !== 'ideal'),
    });
    // No process still lists its crypto payments.
    expect(performance.now() - startedAt).toBeGreaterThan(CACHE_MS - 100);
  });

  test('switches rails, and sets payout fees, limits by currency, and months for which payers are stored', async () => {
    const { show, set, setApproved } = await openUpdated();
    const rails = '--disable-method card_payout --disable-method faster_payments';
    const fees =
      '--payout-fee sepa_instant=50 --payout-fee card_payout:JPY=150 --acquirer-fee merchant';
    const limits =
      '--payout-limit EUR=0 --owed-limit EUR=100 --refund-step-up GBP=0 --hold-unverified on --crypto-tolerance 0.75';
    expect(await setApproved(`${rails} ${fees} ${limits} --payer-data-months 6`)).toMatchObject({
      enabled_methods: PAYMENT_METHOD_IDS,
      enabled_rails: ['sepa_credit_transfer', 'sepa_instant'],
      ...{ payout_fees: { sepa_instant: 50, 'card_payout:JPY': 150 }, acquirer_fee: 'merchant' },
      ...{ payer_data_months: 6, payout_limits: { EUR: 0 }, owed_limits: { EUR: 100 } },
      ...{ refund_step_up: { GBP: 0 }, hold_unverified: true, crypto_tolerance: 0.75 },
    });
    const { stdout } = await service.cli(show);
    for (const line of [
      ...['Rails: +sepa_credit_transfer, sepa_instant', 'Payout limits: +EUR=0'],
      ...['Payout fees: +sepa_instant=50, card_payout:JPY=150', 'Payers stored: +6 months'],
      ...['Acquirers’ fees: +borne by the merchant', 'Owed limits: +EUR=100'],
      ...['Refunds with step-up above: +GBP=0', 'Unverified payees: +held'],
      'Crypto tolerance: +0.75 %',
    ]) {
      expect(stdout).toMatch(new RegExp(`^${line}$`, 'm'));
    }
    const off =
      '--payout-limit EUR=off --owed-limit EUR=off --refund-step-up GBP=off --hold-unverified off';
    const free =
      '--payout-fee sepa_instant=0 --payout-fee card_payout:JPY=off --acquirer-fee service';
    const removed = await setApproved(`${off} ${free} --enable-method card_payout`);
    expect(removed).toMatchObject({
      enabled_rails: ['card_payout', 'sepa_credit_transfer', 'sepa_instant'],
      ...{ payout_fees: {}, acquirer_fee: 'service' },
      ...{ payer_data_months: 6, hold_unverified: false },
    });
    expect(Object.keys(Object(removed)).join()).not.toMatch(/limits|step_up/);
    const exempt = { payout_fees: { 'card_payout:KWD': 0 } };
    expect(await set('--payout-fee card_payout:KWD=0')).toMatchObject(exempt);
  });
});

test('account freeze is shown with its reason, logged once, and ended by unfreeze', async () => {
  const { account_id } = await service.account();
  const freeze = `account freeze ${account_id} --reason`;
  const reason = 'Ticket 42: a live key leaked';
  const startedAt = performance.now();
  const frozen = await service.json(`${freeze} "${reason}" --operator mia`);
  // Until then, a process may take a write by the account that it has cached.
  expect(performance.now() - startedAt).toBeGreaterThan(CACHE_MS - 100);
  expect(frozen).toMatchObject({ account_id, frozen: { at: expect.stringMatching(/Z$/), reason } });
  expect(await service.json(`${freeze} Again`)).toEqual(frozen);
  const { stdout } = await service.cli(`account show ${account_id}`);
  expect(stdout).toMatch(/\nFrozen: +since .* UTC: Ticket 42: a live key leaked\n/);
  await runApproved(service, `account unfreeze ${account_id}`);
  expect(await service.json(`account unfreeze ${account_id}`)).not.toHaveProperty('frozen');
  expect(await service.stores.auditLog.list({ account_id, limit: 2 })).toMatchObject([
    { act: 'account.unfrozen' },
    { act: 'account.frozen', after: { reason, operator: 'mia' } },
  ]);
});

test('account list begins with the newest account, says whether there are more, and prints no control characters', async () => {
  const { account_id } = await service.account('\u001b[2J\u202eEvil\u0007\nLine\u009b');
  const list = 'account list --limit 1';
  const data = [expect.objectContaining({ account_id })];
  expect(await service.json(list)).toEqual({ data, has_more: true });
  const { stdout } = await service.cli('account list');
  expect(stdout).toContain('[2JEvil Line\n');
  expect(stdout).not.toContain('There are more');
  const asJson = await service.cli(list, '--json');
  expect(Object(JSON.parse(asJson.stdout)).data[0].name).toContain('\u202eEvil\u0007\nLine\u009b');
  for (const printed of [stdout, asJson.stdout]) {
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be there.
    expect(printed.replaceAll('\n', '')).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u202e]/);
  }
});

// What a key is refused for is in test/api/keys.test.ts.
test('an API key has all scopes or some, expires, is limited to networks, listed without its secret, and revoked once', async () => {
  const { account_id, sandbox_key } = await service.account();
  const create = `key create ${account_id} --env`;
  const { key, key_id } = Object(await runApproved(service, `${create} live`));
  expect(key).toMatch(/^sk_live_/);
  const until = '--expires-at 2999-01-01T01:00:00+01:00';
  const from = '--allow-cidr 203.0.113.0/24 --allow-cidr 2001:db8::/32';
  const some = `--scopes "refunds:read, payments:read" ${until} ${from}`;
  const bounded = Object(await service.json(`${create} sandbox ${some}`));
  const bounds = {
    expires_at: '2999-01-01T00:00:00.000Z',
    allowed_cidrs: ['203.0.113.0/24', '2001:db8::/32'],
  };
  const limited = { scopes: ['payments:read', 'refunds:read'], ...bounds };
  const { auditLog, keys } = service.stores;
  expect(await keys.byHash(hashKey(bounded.key))).toMatchObject({ livemode: false, ...limited });
  const change = { act: 'api_key.created', target: bounded.key_id, after: bounds };
  expect(await auditLog.list({ account_id, limit: 1 })).toMatchObject([change]);
  const { data } = Object(await service.json(`key list ${account_id}`));
  expect(data).toHaveLength(4);
  expect(data.at(-1)).toMatchObject({ key_id: bounded.key_id, env: 'sandbox', ...limited });
  const at = expect.stringMatching(/Z$/);
  expect(data.at(-2)).toEqual({
    ...{ key_id, env: 'live', last4: key.slice(-4), scopes: SCOPES },
    ...{ created_at: at, last_used_at: null, revoked_at: null },
  });
  const { stdout } = await service.cli(`key list ${account_id}`);
  expect(stdout).toMatch(/^KEY +ENV +ENDS +CREATED +LAST USED +REVOKED +SCOPES\n/);
  expect(stdout).toMatch(new RegExp(`sandbox +…${sandbox_key.slice(-4)} .* never +- +all\n`));
  const revoked = await service.json(`key revoke ${key_id}`);
  expect(revoked).toEqual({ key_id, revoked_at: at });
  const { revoked_at } = Object(revoked);
  expect(await keys.byHash(hashKey(key))).toMatchObject({ scopes: SCOPES, revoked_at });
  expect(await service.json(`key revoke ${key_id}`)).toEqual(revoked);
});

test('a wallet takes effect at once in the sandbox, and is set once', async () => {
  const { account_id } = await service.account();
  const set = `wallet set ${account_id} --env sandbox --network ethereum --address`;
  const wallet = await service.json(set, FIRST);
  expect(wallet).toMatchObject({ network: 'ethereum', address: FIRST, counting: FIRST });
  expect(await service.json(set, FIRST)).toEqual(wallet);
  const lines = await service.stores.auditLog.list({ account_id, act: 'wallet.set', limit: 9 });
  const { counts_from } = Object(wallet);
  const after = { address: FIRST, counts_from, counting: FIRST };
  expect(lines).toMatchObject([{ livemode: false, target: 'ethereum', before: null, after }]);
  expect((await service.refusal(set, FIRST.toLowerCase())).code).toBe('address_invalid');
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
  const show = `wallet show ${account_id} --env`;
  expect(await service.json(show, 'live')).toMatchObject({ data: [{ address: SECOND }] });
  expect(await service.json(show, 'sandbox')).toEqual({ data: [] });
  expect((await service.cli(show, 'live')).stdout).toContain('nothing until ');
});

const LOCAL = 'http://localhost:4000/hook';
const HOUR_MS = 3_600_000;

/** Commands for the sandbox of a new merchant. */
async function openSandbox() {
  const { account_id } = await service.account();
  const place = `${account_id} --env sandbox`;
  const json = async (name: string, more = '') =>
    Object(await service.json(`webhook ${name} ${place} ${more}`));
  return {
    ...{ account_id, place, json },
    print: async (name: string, more = '') =>
      (await service.cli(`webhook ${name} ${place} ${more}`)).stdout,
    set: (more = '') => json('set', `--url ${LOCAL} ${more}`),
    listActs: async () => {
      const filter = { account_id, livemode: false, limit: 9 };
      const acts = (await service.stores.auditLog.list(filter)).map(({ act }) => act);
      return acts.filter((act) => act.startsWith('webhook.'));
    },
  };
}

// Each change waits for caches, which the tests do at once. URLs are in test/webhooks/address.test.ts, secrets in
// test/store/stores.test.ts, the rules of several endpoints in test/api/webhooks.test.ts.
test.concurrent('webhook set keeps the secret and the events of each environment, and prints a secret once', async () => {
  const { account_id, set, json, print, listActs } = await openSandbox();
  expect(await service.json(`webhook show ${account_id} --env sandbox`)).toBeNull();
  const none = `No sandbox webhook endpoint is registered for ${account_id}`;
  expect(await print('show')).toContain(none);
  const first = await print('set', `--url ${LOCAL}`);
  expect(first).toMatch(/^Signing secret: +whsec_[\w-]{43}$/m);
  const again = await print('set', `--url ${LOCAL}`);
  expect(again).toMatch(/^Signing secret: +unchanged: `webhook show` shows it$/m);
  expect(again).not.toContain('whsec_');
  const onLive = `webhook set ${account_id} --env live --url https://1.1.1.1/hook`;
  const live = Object(await runApproved(service, onLive));
  const chosen = await set('--events "payout.returned, payment.settled"');
  expect(await listActs()).toEqual(['webhook.secret_shown', ...Array(3).fill('webhook.set')]);
  const { signing_secret } = chosen;
  expect(first).toContain(signing_secret);
  expect(live.signing_secret).not.toBe(signing_secret);
  const enabled_events = ['payment.settled', 'payout.returned'];
  expect(chosen).toEqual({ url: LOCAL, signing_secret, enabled_events });
  expect(await json('show')).toEqual(chosen);
  expect(await print('show')).toMatch(/^Events: +payment\.settled, payout\.returned$/m);
  expect(await set('--events all')).toEqual({ url: LOCAL, signing_secret });
  expect(await print('show')).toMatch(/^Events: +all but those of disputes$/m);
});

test.concurrent('webhook set leaves one endpoint with one secret when several register it at once', async () => {
  const { account_id, json } = await openSandbox();
  const ports = [1, 2, 3, 4, 5, 6, 7, 8];
  const answers = await Promise.all(
    ports.map((n) => json('set', `--url http://localhost:500${n}/`)),
  );
  expect(new Set(answers.map(({ signing_secret }) => signing_secret)).size).toBe(1);
  const stored = await service.db.collection('webhook_endpoints').find({ account_id }).toArray();
  expect(stored).toMatchObject([{ secrets: [expect.anything()] }]);
});

test.concurrent('webhook set needs an address that the environment allows, and the right keys, and else stores nothing', async () => {
  const { account_id, place, set, json } = await openSandbox();
  const before = await set();
  const refuse = (env: object, where = place, url = `${LOCAL}/2`) =>
    commandsIn({ ...service.env, ...env }).refusal(`webhook set ${where} --url ${url}`);
  const KEYS_FILE = `${service.folder}/other-keys.json`;
  createKeyFile(KEYS_FILE);
  const mismatch = 'can not be decrypted with this KEYS_FILE';
  expect((await refuse({ KEYS_FILE })).message).toContain(mismatch);
  expect((await refuse({ WEBHOOK_ALLOW_PRIVATE: '' })).message).toContain('https://');
  const onLive = `${account_id} --env live`;
  expect((await refuse({}, onLive)).code).toBe('url_not_https');
  expect((await refuse({}, place, 'hook')).code).toBe('url_invalid');
  expect(await json('show')).toEqual(before);
  const ida = await asOperator(service, 'ida');
  const show = `webhook show ${onLive}`;
  expect((await service.refusal(show)).code).toBe('operator_key_required');
  expect(await ida.json(show)).toBeNull();
  expect((await service.refusal(`webhook roll ${onLive}`)).code).toBe('webhook_not_set');
  // No secret decrypts for another environment.
  const endpoints = service.db.collection('webhook_endpoints');
  await endpoints.updateOne({ account_id, livemode: false }, { $set: { livemode: true } });
  expect((await ida.refusal(show)).code).toBe('keys_file_mismatch');
});

test.concurrent('webhook roll replaces the secret at once, or keeps it until --after', async () => {
  const { set, json } = await openSandbox();
  const { url, signing_secret: first } = await set();
  const { signing_secret } = await json('roll', '--after now');
  expect(signing_secret).not.toBe(first);
  const startedAt = Date.now();
  const { signing_secret: next_secret, active_from } = await json('roll', '--after 1h');
  expect(Date.parse(active_from)).toBeGreaterThanOrEqual(startedAt + HOUR_MS);
  expect(Date.parse(active_from)).toBeLessThanOrEqual(Date.now() + HOUR_MS);
  const next = { next_secret, next_active_from: active_from };
  expect(await json('show')).toEqual({ url, signing_secret, ...next });
});

test.concurrent('endpoints are added, listed, updated and removed; `show` takes the oldest by default', async () => {
  const { place, set, json, listActs } = await openSandbox();
  const { signing_secret } = await set();
  const events = '--events payout.sent --description Books';
  const added = await json('add', `--url http://localhost:4002/ ${events}`);
  expect(added).toMatchObject({
    ...{ object: 'webhook_endpoint', description: 'Books', enabled_events: ['payout.sent'] },
    signing_secret: expect.stringMatching(/^whsec_[\w-]{43}$/),
  });
  expect((await json('list')).data).toMatchObject([{ url: LOCAL }, { id: added.id }]);
  const other = `--endpoint ${added.id}`;
  const disabled = { id: added.id, status: 'disabled', disabled_reason: 'merchant' };
  expect(await json('update', `${other} --status disabled --events all`)).toMatchObject(disabled);
  const { stdout } = await service.cli('audit verify --json');
  expect(JSON.stringify(JSON.parse(stdout).findings)).not.toContain(added.id);
  const refuse = async (name: string) =>
    (await service.refusal(`webhook ${name} ${place} ${other}`)).code;
  expect(await refuse('update')).toBe('invalid_usage');
  expect(await json('show')).toMatchObject({ signing_secret });
  expect((await json('show', other)).signing_secret).toBe(added.signing_secret);
  expect(await json('remove', other)).toMatchObject({ deleted: true });
  expect(await refuse('remove')).toBe('webhook_endpoint_not_found');
  expect(await listActs()).toEqual([
    ...['webhook.deleted', 'webhook.secret_shown', 'webhook.secret_shown', 'webhook.updated'],
    ...['webhook.created', 'webhook.set'],
  ]);
});

const TYPED = '--operator mia --reason "Ticket 42"';
const MAIN = '--balance-account main --currency EUR';
const fund = (account_id: string, env: string, more = '') => {
  const bank = env === 'live' ? `--connector acme --bank-reference ${account_id}` : '';
  return `balance fund ${account_id} --env ${env} ${MAIN} --amount 100 ${bank} ${more}`;
};
const BANK = { LIVE_CONNECTORS: 'acme=visa' };

test('operator create shows a key once, which is listed without its secret, audited, and revoked once by id or name', async () => {
  const { deps, stores } = service;
  const { key, ...operator } = Object(await service.json('operator create ana --role approver'));
  expect(key).toMatch(/^opkey_/);
  const operator_id: unknown = expect.stringMatching(/^op_/);
  expect(operator).toEqual({ operator_id, name: 'ana', role: 'approver' });
  const row = { ...operator, created_at: expect.any(String), revoked_at: null };
  expect(Object(await service.json('operator list')).data).toContainEqual(row);
  expect(await everythingStored(service.db)).not.toContain(key.slice('opkey_'.length));
  const [line] = await stores.auditLog.list({ limit: 1, act: 'operator.created' });
  expect(line).toMatchObject({
    ...{ account_id: null, actor: { via: 'command_line' }, target: operator.operator_id },
    after: { name: 'ana', role: 'approver' },
  });
  const next = await createOperator(deps, { name: 'Ana', role: 'operator' });
  expect(await revokeOperator(deps, operator.operator_id)).toMatchObject([{ name: 'ana' }]);
  expect(await verifyOperator(deps, next.key)).toMatchObject({ name: 'Ana' });
  const refused = { code: 'operator_key_revoked' };
  await expect(verifyOperator(deps, key)).rejects.toMatchObject(refused);
  const revoke = (name: string) => `operator revoke ${name} --reason "Ticket 42"`;
  expect((await service.refusal(revoke('ANA'))).code).toBe('operator_key_required');
  const mel = await asOperator(service, 'mel');
  expect((await mel.refusal('operator revoke ANA')).code).toBe('operator_required');
  const first = await mel.json(revoke('ANA'));
  const ids = [operator.operator_id, next.operator_id];
  const revoked = ids.map((id) => ({ operator_id: id, revoked_at: expect.any(String) }));
  expect(first).toMatchObject({ data: revoked });
  expect(await mel.json(revoke('ana'))).toEqual(first);
  const lines = await stores.auditLog.list({ limit: 10, act: 'operator.revoked' });
  expect(lines).toHaveLength(2);
});

describe('a command that moves money', () => {
  test.each([
    ['', 'operator_key_required'],
    ['opkey_unknown', 'operator_key_invalid'],
    ['sk_live_0', 'operator_key_invalid'],
  ])('is refused on live with the key %j, whatever name is typed', async (OPERATOR_KEY, code) => {
    const { account_id } = await service.account();
    const where = { account_id, livemode: true, balance_account: 'main', currency: 'EUR' };
    const { operation_id } = await fundBalance(service.deps, { ...where, amount: 100 });
    const { cli, refusal } = commandsIn({ ...service.env, ...BANK, OPERATOR_KEY });
    const adjust = `balance adjust ${account_id} --env live ${MAIN} --amount -1`;
    for (const command of [fund(account_id, 'live'), adjust, `balance reverse ${operation_id}`]) {
      expect((await refusal(`${command} ${TYPED}`)).code).toBe(code);
    }
    expect((await cli(fund(account_id, 'sandbox'))).exit).toBe(0);
  });

  test('is recorded on live under the name of its key, and needs a reason', async () => {
    const { account_id } = await service.account();
    const dora = await asOperator(service, 'dora', 'operator', BANK);
    const typed = `${TYPED} --approved-by ada`;
    const { operation_id } = Object(await dora.json(fund(account_id, 'live', typed)));
    const entry = await service.stores.ledger.findEntry(operation_id);
    expect(entry?.note).toEqual({ operator: 'dora', reason: 'Ticket 42' });
    const [line] = await service.stores.auditLog.list({ account_id, limit: 1 });
    expect(line).toMatchObject({ act: 'balance.funded', actor: { operator: 'dora' } });
    expect(line).toHaveProperty('signature');
    const { broken } = JSON.parse((await service.cli('audit verify --json')).stdout);
    expect(JSON.stringify(broken)).not.toContain(account_id);
    const silent = await dora.refusal(fund(account_id, 'live'));
    expect(silent.message).toContain("'--reason <text>' not specified");
  });

  test('matches a statement line on live only with a key', async () => {
    const live = commandsIn({ ...service.env, ...BANK });
    const source = '--connector acme --env live';
    await live.json(`bank-account add ${source} --iban ${TEST_IBAN} --currency EUR`);
    const path = join(service.folder, 'live.xml');
    writeFileSync(path, camt([{ entries: [{ amount: 1_050, reference: 'ORDER-7' }] }]));
    const { id } = Object(await live.json(`statement import ${path} ${source}`));
    const flo = await asOperator(live, 'flo');
    for (const [command, status] of [
      [`statement match ${id}:1 --difference-to expense.bank_fees ${TYPED}`, 'booked'],
      [`statement unmatch ${id}:1 ${TYPED}`, 'open'],
    ] as const) {
      expect((await live.refusal(command)).code).toBe('operator_key_required');
      expect(await flo.json(command)).toMatchObject({ status });
    }
    for (const act of ['statement.matched', 'statement.unmatched'] as const) {
      const [audited] = await service.stores.auditLog.list({ limit: 1, act });
      const by = { operator: 'flo' };
      expect(audited).toMatchObject({ actor: by, after: { ...by, reason: 'Ticket 42' } });
    }
  });
});

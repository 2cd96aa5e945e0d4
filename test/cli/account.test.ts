import { randomUUID } from 'node:crypto';
import { verify } from '@node-rs/argon2';
import { SCOPES } from '../../src/domain/account/api-key';
import { PAYMENT_METHOD_IDS } from '../../src/domain/payment/catalog';
import { RAIL_IDS } from '../../src/domain/payout/rails';
import { createAccount } from '../../src/service/accounts';
import { fundSandbox } from '../../src/service/balances/fund';
import { createKey, revokeKey } from '../../src/service/keys';
import { readBalances } from '../../src/service/read';
import { CACHE_MS } from '../../src/store/cache';
import { hashKey } from '../../src/store/keys';
import { CreatedAccount, everythingStored, useProvisioning } from './cli';

const service = useProvisioning();
const update = (account_id: string, ...options: string[]) =>
  service.json('account', 'update', account_id, ...options);

describe('a new account', () => {
  test('has a valid key per environment, all methods, and a dashboard login', async () => {
    const made = await service.account();
    expect(made.account_id).toMatch(/^acct_[0-9a-f-]{36}$/);
    expect(made.sandbox_key).toMatch(/^sk_sandbox_[\w-]{43}$/);
    expect(made.live_key).toMatch(/^sk_live_[\w-]{43}$/);
    expect(made.dashboard_email).toMatch(/^merchant-[0-9a-f]{12}@dashboard\.localhost$/);
    expect(made.dashboard_password).toMatch(/^[0-9a-f]{32}$/);
    const { accounts, keys } = service.stores;
    const key = { account_id: made.account_id, scopes: SCOPES, revoked_at: null };
    expect(await keys.byHash(hashKey(made.sandbox_key))).toMatchObject({ ...key, livemode: false });
    expect(await keys.byHash(hashKey(made.live_key))).toMatchObject({ ...key, livemode: true });
    const settings = { name: 'Acme', crypto: false, enabled_methods: PAYMENT_METHOD_IDS };
    expect(await accounts.get(made.account_id)).toMatchObject(settings);
  });

  test('has its keys and its password stored as hashes alone', async () => {
    const made = await service.account();
    const stored = await everythingStored(service.db);
    expect(stored).toContain(hashKey(made.live_key));
    for (const secret of [made.sandbox_key, made.live_key, made.dashboard_password]) {
      expect(stored).not.toContain(secret.replace(/^sk_\w+?_/, ''));
    }
    const [owner] = await service.stores.users.byEmail(made.dashboard_email);
    expect(owner).toMatchObject({ account_id: made.account_id, role: 'owner' });
    const { password_hash = '' } = owner ?? {};
    // 19 MiB, two passes, one lane.
    expect(password_hash).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$/);
    expect(await verify(password_hash, made.dashboard_password)).toBe(true);
    expect(owner).toHaveProperty('password_expires_at');
  });

  test('takes the login of --email in lower case, once, and with --keep-password for good', async () => {
    const email = ['--email', 'Ana@Example.com', '--keep-password'];
    const create = ['account', 'create', '--name', ' Ana ', ...email];
    const made = CreatedAccount.parse(await service.json(...create));
    expect(made.dashboard_email).toBe('ana@example.com');
    const [owner] = await service.stores.users.byEmail('ana@example.com');
    expect(owner).not.toHaveProperty('password_expires_at');
    const shown = await service.json('account', 'show', made.account_id);
    expect(shown).toMatchObject({ name: 'Ana' });
    expect(await service.refusal(...create)).toEqual({
      code: 'email_taken',
      message: 'Another account has the dashboard login ana@example.com.',
    });
  });

  test('has test funds in its sandbox, credited once, and none on live', async () => {
    const { account_id } = await service.account();
    const funds = [
      ...['EUR', 'GBP', 'USD'].map((currency) => ['main', currency, 10_000_000]),
      ...['EUR', 'GBP', 'USD'].map((currency) => ['marketing', currency, 1_000_000]),
    ].map(([balance_account, currency, available]) => {
      return { balance_account, currency, available, reserved: 0 };
    });
    await expect(fundSandbox(service.deps, account_id)).rejects.toThrow(/duplicate key/);
    const read = (livemode: boolean) => readBalances(service, { account_id, livemode });
    expect(await read(false)).toEqual({ balances: funds, receivables: [] });
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
    const count = () =>
      Promise.all(
        ['api_keys', 'journal_entries'].map((name) => db.collection(name).countDocuments()),
      );
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
    const changed = await update(account_id, '--crypto', 'on', ...off);
    expect(changed).toEqual({
      account_id,
      name: 'Update',
      crypto: true,
      enabled_methods: PAYMENT_METHOD_IDS.filter((id) => id !== 'amex' && id !== 'visa'),
      enabled_rails: RAIL_IDS,
      payout_fees: {},
      payer_data_months: 18,
      dashboard_email,
      created_at: expect.stringMatching(/Z$/),
    });
    expect(await service.json('account', 'show', account_id)).toEqual(changed);
    const on = ['--enable-method', 'visa', '--crypto', 'off', '--disable-method', 'ideal'];
    const startedAt = performance.now();
    expect(await update(account_id, ...on)).toMatchObject({
      crypto: false,
      enabled_methods: PAYMENT_METHOD_IDS.filter((id) => id !== 'amex' && id !== 'ideal'),
    });
    // No process still lists its crypto payments.
    expect(performance.now() - startedAt).toBeGreaterThan(CACHE_MS - 100);
  });

  test('switches rails on and off, sets payout fees, and months for which payers are stored', async () => {
    const { account_id } = await service.account();
    const off = ['--disable-method', 'card_payout', '--disable-method', 'faster_payments'];
    const fees = ['--payout-fee', 'sepa_instant=50', '--payout-fee', 'card_payout=120'];
    expect(await update(account_id, ...off, ...fees, '--payer-data-months', '6')).toMatchObject({
      enabled_methods: PAYMENT_METHOD_IDS,
      enabled_rails: ['sepa_credit_transfer', 'sepa_instant'],
      payout_fees: { sepa_instant: 50, card_payout: 120 },
      payer_data_months: 6,
    });
    const { stdout } = await service.cli('account', 'show', account_id);
    expect(stdout).toContain('Rails:            sepa_credit_transfer, sepa_instant\n');
    expect(stdout).toMatch(/Payout fees: {6}.*sepa_instant=50/);
    expect(stdout).toMatch(/Payers stored: +6 months\n/);
    const on = ['--enable-method', 'card_payout', '--payout-fee', 'sepa_instant=0'];
    expect(await update(account_id, ...on)).toMatchObject({
      enabled_rails: ['card_payout', 'sepa_credit_transfer', 'sepa_instant'],
      payout_fees: { card_payout: 120 },
      payer_data_months: 6,
    });
    const setFees = (...pairs: string[]) =>
      update(account_id, ...pairs.flatMap((pair) => ['--payout-fee', `card_payout${pair}`]));
    expect(await setFees('=0', ':JPY=150', ':KWD=0')).toMatchObject({
      payout_fees: { 'card_payout:JPY': 150, 'card_payout:KWD': 0 },
    });
    expect(await setFees(':JPY=off', ':KWD=off')).toMatchObject({ payout_fees: {} });
  });

  test.each([
    ['--payout-limit', 'payout_limits', 'Payout limits'],
    ['--owed-limit', 'owed_limits', 'Owed limits'],
    ['--refund-step-up', 'refund_step_up', 'Refunds with step-up above'],
  ])('%s is set by currency, shown, and removed', async (option, field, label) => {
    const { account_id } = await service.account();
    const set = await update(account_id, option, 'EUR=5000000', option, 'GBP=0');
    expect(set).toMatchObject({ [field]: { EUR: 5_000_000, GBP: 0 } });
    const { stdout } = await service.cli('account', 'show', account_id);
    expect(stdout).toMatch(new RegExp(`^${label}: +EUR=5000000, GBP=0$`, 'm'));
    const removed = await update(account_id, option, 'EUR=off', option, 'GBP=off');
    expect(removed).not.toHaveProperty(field);
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
  const ended = await service.json('account', 'unfreeze', account_id);
  expect(ended).not.toHaveProperty('frozen');
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

test('an unknown account is refused by every command about one', async () => {
  const id = `acct_${randomUUID()}`;
  const sandbox = ['--env', 'sandbox'];
  const amount = ['--balance-account', 'main', '--currency', 'EUR', '--amount', '1'];
  const who = ['--operator', 'mia', '--reason', 'Why'];
  for (const args of [
    ['account', 'show', id],
    ['account', 'update', id, '--crypto', 'on'],
    ['account', 'freeze', id, '--reason', 'Why'],
    ['audit', 'list', '--account', id],
    ['key', 'create', id, ...sandbox],
    ['key', 'list', id],
    ['dashboard', 'people', id],
    ['dashboard', 'invite', id, '--email', 'ana@example.com', '--role', 'owner'],
    ['webhook', 'set', id, ...sandbox, '--url', 'http://localhost:4000'],
    ['webhook', 'roll', id, ...sandbox],
    ['webhook', 'show', id, ...sandbox],
    ['event', 'list', id, ...sandbox],
    ['balance', 'show', id, ...sandbox],
    ['balance', 'fund', id, ...sandbox, ...amount],
    ['balance', 'adjust', id, ...sandbox, ...amount, ...who],
    ['wallet', 'show', id, ...sandbox],
    ['wallet', 'set', id, ...sandbox, '--network', 'ethereum', '--address', '0x0'],
  ]) {
    const message = `There is no account ${id}.`;
    expect(await service.refusal(...args)).toEqual({ code: 'account_not_found', message });
  }
});

describe('an API key', () => {
  test('is created with all scopes or some, expires and is limited to networks, and only its hash is stored', async () => {
    const { account_id } = await service.account();
    const create = ['key', 'create', account_id, '--env'];
    const { key, key_id } = Object(await service.json(...create, 'live'));
    expect(key).toMatch(/^sk_live_/);
    const scopes = ['--scopes', 'refunds:read, payments:read'];
    const until = ['--expires-at', '2999-01-01T01:00:00+01:00'];
    const from = ['--allow-cidr', '203.0.113.0/24', '--allow-cidr', '2001:db8::/32'];
    const bounded = Object(await service.json(...create, 'sandbox', ...scopes, ...until, ...from));
    expect(bounded.key).toMatch(/^sk_sandbox_/);
    const { auditLog, keys } = service.stores;
    expect(await keys.byHash(hashKey(key))).toMatchObject({ _id: key_id, scopes: SCOPES });
    const bounds = {
      expires_at: '2999-01-01T00:00:00.000Z',
      allowed_cidrs: ['203.0.113.0/24', '2001:db8::/32'],
    };
    const limited = { scopes: ['payments:read', 'refunds:read'], ...bounds };
    const stored = { account_id, livemode: false, ...limited };
    expect(await keys.byHash(hashKey(bounded.key))).toMatchObject(stored);
    const { data } = Object(await service.json('key', 'list', account_id));
    expect(data.at(-1)).toMatchObject({ key_id: bounded.key_id, env: 'sandbox', ...limited });
    const [line] = await auditLog.list({ account_id, limit: 1 });
    const change = { act: 'api_key.created', target: bounded.key_id, after: bounds };
    expect(line).toMatchObject(change);
    expect(await everythingStored(service.db)).not.toContain(key.slice('sk_live_'.length));
  });

  test('is listed with its last four characters, and without its secret', async () => {
    const { account_id, sandbox_key, live_key } = await service.account();
    const row = (env: string, key: string) => ({
      ...{ key_id: expect.stringMatching(/^key_/), env, last4: key.slice(-4), scopes: SCOPES },
      ...{ created_at: expect.stringMatching(/Z$/), last_used_at: null, revoked_at: null },
    });
    expect(await service.json('key', 'list', account_id)).toEqual({
      data: [row('sandbox', sandbox_key), row('live', live_key)],
    });
    const { stdout } = await service.cli('key', 'list', account_id);
    expect(stdout).toMatch(/^KEY +ENV +ENDS +CREATED +LAST USED +REVOKED +SCOPES\n/);
    expect(stdout).toMatch(new RegExp(`sandbox +…${sandbox_key.slice(-4)} .* never +- +all\n`));
    expect(stdout).not.toContain(sandbox_key);
  });

  test('is revoked once: a second revocation has the time of the first', async () => {
    const { account_id } = await service.account();
    const owner = { account_id, livemode: true, scopes: [...SCOPES] };
    const { key_id, key } = await createKey(service.deps, owner);
    const first = await revokeKey(service.deps, key_id);
    const { revoked_at } = (await service.stores.keys.byHash(hashKey(key))) ?? {};
    expect(revoked_at).toBe(first?.revoked_at);
    const revoke = (id: string) => ['key', 'revoke', id];
    expect(await service.json(...revoke(key_id))).toEqual({ key_id, revoked_at });
    const message = 'There is no key key_1.';
    expect(await service.refusal(...revoke('key_1'))).toEqual({ code: 'key_not_found', message });
  });
});

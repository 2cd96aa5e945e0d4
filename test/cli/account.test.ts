import { verify } from '@node-rs/argon2';
import { SCOPES } from '../../src/domain/account/api-key';
import { PAYMENT_METHOD_IDS } from '../../src/domain/payment/catalog';
import { RAIL_IDS } from '../../src/domain/payout/rails';
import { createAccount } from '../../src/service/merchants/accounts';
import { fundSandbox } from '../../src/service/money/balances/fund';
import { readBalances } from '../../src/service/money/read';
import { setWallet } from '../../src/service/money/wallets';
import { CACHE_MS } from '../../src/store/cache';
import { hashKey } from '../../src/store/keys';
import { CreatedAccount, everythingStored, useProvisioning } from './cli';

const service = useProvisioning();
const FIRST = '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed';
const SECOND = '0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359';
const update = (account_id: string, ...options: string[]) =>
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
    const changed = await update(account_id, '--crypto', 'on', ...off);
    expect(changed).toEqual({
      ...{ account_id, name: 'Update', crypto: true, dashboard_email },
      enabled_methods: PAYMENT_METHOD_IDS.filter((id) => id !== 'amex' && id !== 'visa'),
      ...{ enabled_rails: RAIL_IDS, payout_fees: {}, payer_data_months: 18 },
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

  test('switches rails, and sets payout fees, limits by currency, and months for which payers are stored', async () => {
    const { account_id } = await service.account();
    const set = (line: string) => update(account_id, ...line.split(' '));
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

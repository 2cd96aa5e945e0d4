import { verify } from '@node-rs/argon2';
import { SCOPES } from '../../src/domain/account/api-key';
import { PAYMENT_METHOD_IDS } from '../../src/domain/payment/catalog';
import { RAIL_IDS } from '../../src/domain/payout/rails';
import { createAccount } from '../../src/service/accounts';
import { fundSandbox } from '../../src/service/balances/fund';
import { readBalances } from '../../src/service/read';
import { setWallet } from '../../src/service/wallets';
import { CACHE_MS } from '../../src/store/cache';
import { hashKey } from '../../src/store/keys';
import { CreatedAccount, everythingStored, useProvisioning } from './cli';

const service = useProvisioning();
const update = (account_id: string, ...options: string[]) =>
  service.json('account', 'update', account_id, ...options);

describe('a new account', () => {
  test('has a valid key per environment, all methods and a login, of whose secrets hashes alone are stored', async () => {
    const made = await service.account();
    expect(made.sandbox_key).toMatch(/^sk_sandbox_[\w-]{43}$/);
    expect(made.live_key).toMatch(/^sk_live_[\w-]{43}$/);
    expect(made.dashboard_email).toMatch(/^merchant-[0-9a-f]{12}@dashboard\.localhost$/);
    expect(made.dashboard_password).toMatch(/^[0-9a-f]{32}$/);
    const { accounts, keys, users } = service.stores;
    const key = { account_id: made.account_id, scopes: SCOPES, revoked_at: null };
    expect(await keys.byHash(hashKey(made.sandbox_key))).toMatchObject({ ...key, livemode: false });
    expect(await keys.byHash(hashKey(made.live_key))).toMatchObject({ ...key, livemode: true });
    const settings = { name: 'Acme', crypto: false, enabled_methods: PAYMENT_METHOD_IDS };
    expect(await accounts.get(made.account_id)).toMatchObject(settings);
    const stored = await everythingStored(service.db);
    for (const secret of [made.sandbox_key, made.live_key, made.dashboard_password]) {
      expect(stored).not.toContain(secret.replace(/^sk_\w+?_/, ''));
    }
    const [owner] = await users.byEmail(made.dashboard_email);
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
    const set = (...pairs: string[]) =>
      update(
        account_id,
        ...pairs.flatMap((pair) => [`--${pair.split(' ')[0]}`, pair.split(' ')[1] ?? '']),
      );
    const off = ['disable-method card_payout', 'disable-method faster_payments'];
    const fees = ['payout-fee sepa_instant=50', 'payout-fee card_payout=120'];
    expect(await set(...off, ...fees, 'payer-data-months 6')).toMatchObject({
      enabled_methods: PAYMENT_METHOD_IDS,
      enabled_rails: ['sepa_credit_transfer', 'sepa_instant'],
      payout_fees: { sepa_instant: 50, card_payout: 120 },
      payer_data_months: 6,
    });
    const options = ['payout-limit', 'owed-limit', 'refund-step-up'];
    const limits = options.flatMap((name, n) => [`${name} EUR=${n}00`, `${name} GBP=0`]);
    expect(await set(...limits)).toMatchObject({
      payout_limits: { EUR: 0, GBP: 0 },
      owed_limits: { EUR: 100, GBP: 0 },
      refund_step_up: { EUR: 200, GBP: 0 },
    });
    const { stdout } = await service.cli('account', 'show', account_id);
    for (const [label, value] of [
      ['Rails', 'sepa_credit_transfer, sepa_instant'],
      ['Payout fees', 'sepa_instant=50, card_payout=120'],
      ['Payers stored', '6 months'],
      ['Payout limits', 'EUR=0, GBP=0'],
      ['Owed limits', 'EUR=100, GBP=0'],
      ['Refunds with step-up above', 'EUR=200, GBP=0'],
    ]) {
      expect(stdout).toMatch(new RegExp(`^${label}: +${value}$`, 'm'));
    }
    const none = limits.map((pair) => pair.replace(/=.*/, '=off'));
    const removed = await set(...none, 'enable-method card_payout', 'payout-fee sepa_instant=0');
    expect(removed).toMatchObject({
      enabled_rails: ['card_payout', 'sepa_credit_transfer', 'sepa_instant'],
      payout_fees: { card_payout: 120 },
      payer_data_months: 6,
    });
    expect(Object.keys(Object(removed)).join()).not.toMatch(/limits|step_up/);
    const [fee, yen, dinars] = ['payout-fee card_payout', ':JPY', ':KWD'];
    expect(await set(`${fee}=0`, `${fee}${yen}=150`, `${fee}${dinars}=0`)).toMatchObject({
      payout_fees: { 'card_payout:JPY': 150, 'card_payout:KWD': 0 },
    });
    const cleared = await set(`${fee}${yen}=off`, `${fee}${dinars}=off`);
    expect(cleared).toMatchObject({ payout_fees: {} });
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

test('an API key has all scopes or some, expires, is limited to networks, listed without its secret, and revoked once', async () => {
  const { account_id, sandbox_key } = await service.account();
  const create = ['key', 'create', account_id, '--env'];
  const { key, key_id } = Object(await service.json(...create, 'live'));
  expect(key).toMatch(/^sk_live_/);
  const until = ['--expires-at', '2999-01-01T01:00:00+01:00'];
  const from = ['--allow-cidr', '203.0.113.0/24', '--allow-cidr', '2001:db8::/32'];
  const some = ['--scopes', 'refunds:read, payments:read', ...until, ...from];
  const bounded = Object(await service.json(...create, 'sandbox', ...some));
  expect(bounded.key).toMatch(/^sk_sandbox_/);
  const { auditLog, keys } = service.stores;
  const bounds = {
    expires_at: '2999-01-01T00:00:00.000Z',
    allowed_cidrs: ['203.0.113.0/24', '2001:db8::/32'],
  };
  const limited = { scopes: ['payments:read', 'refunds:read'], ...bounds };
  const owner = { account_id, livemode: false };
  expect(await keys.byHash(hashKey(bounded.key))).toMatchObject({ ...owner, ...limited });
  const [line] = await auditLog.list({ account_id, limit: 1 });
  const change = { act: 'api_key.created', target: bounded.key_id, after: bounds };
  expect(line).toMatchObject(change);
  const { data } = Object(await service.json('key', 'list', account_id));
  const at = expect.stringMatching(/Z$/);
  expect(data).toHaveLength(4);
  expect(data.at(-1)).toMatchObject({ key_id: bounded.key_id, env: 'sandbox', ...limited });
  expect(data.at(-2)).toEqual({
    ...{ key_id, env: 'live', last4: key.slice(-4), scopes: SCOPES },
    ...{ created_at: at, last_used_at: null, revoked_at: null },
  });
  const { stdout } = await service.cli('key', 'list', account_id);
  expect(stdout).toMatch(/^KEY +ENV +ENDS +CREATED +LAST USED +REVOKED +SCOPES\n/);
  expect(stdout).toMatch(new RegExp(`sandbox +…${sandbox_key.slice(-4)} .* never +- +all\n`));
  expect(stdout).not.toContain(sandbox_key);
  const revoked = await service.json('key', 'revoke', key_id);
  expect(revoked).toEqual({ key_id, revoked_at: at });
  const { revoked_at } = Object(revoked);
  expect(await keys.byHash(hashKey(key))).toMatchObject({ scopes: SCOPES, revoked_at });
  expect(await service.json('key', 'revoke', key_id)).toEqual(revoked);
});

describe('a wallet', () => {
  const FIRST = '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed';
  const SECOND = '0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359';

  test('takes effect at once in the sandbox, and is set once', async () => {
    const { account_id } = await service.account();
    const place = [account_id, '--env', 'sandbox'];
    const address = ['--network', 'ethereum', '--address', FIRST];
    const set = () => service.json('wallet', 'set', ...place, ...address);
    const wallet = await set();
    expect(wallet).toMatchObject({ network: 'ethereum', address: FIRST, counting: FIRST });
    expect(await set()).toEqual(wallet);
    const lines = await service.stores.auditLog.list({ account_id, act: 'wallet.set', limit: 9 });
    const { counts_from } = Object(wallet);
    expect(lines).toMatchObject([
      {
        ...{ livemode: false, target: 'ethereum', before: null },
        after: { address: FIRST, counts_from, counting: FIRST },
      },
    ]);
    for (const [text, network] of [
      [FIRST.toLowerCase(), 'ethereum'],
      [FIRST, 'bitcoin'],
    ] as const) {
      const other = ['wallet', 'set', ...place, '--network', network, '--address', text];
      expect((await service.refusal(...other)).code).toBe('address_invalid');
    }
  });

  test('takes effect on live after 24 hours, and its predecessor receives nothing until then', async () => {
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
});

import { randomUUID } from 'node:crypto';
import { verify } from '@node-rs/argon2';
import { z } from 'zod';
import { SCOPES } from '../../src/domain/account/api-key';
import { PAYMENT_METHOD_IDS } from '../../src/domain/payment/catalog';
import { RAIL_IDS } from '../../src/domain/payout/rails';
import { CACHE_MS } from '../../src/store/cache';
import { hashKey } from '../../src/store/keys';
import { CreatedAccount, everythingStored, useProvisioning } from './cli';

const MadeKey = z.strictObject({ key_id: z.string(), key: z.string() });
const RevokedKey = z.strictObject({ key_id: z.string(), revoked_at: z.string() });

const service = useProvisioning();

describe('account create', () => {
  test('creates an account with a valid key per environment and a dashboard login', async () => {
    const made = await service.account();
    expect(made.account_id).toMatch(/^acct_[0-9a-f-]{36}$/);
    expect(made.sandbox_key).toMatch(/^sk_sandbox_[\w-]{43}$/);
    expect(made.live_key).toMatch(/^sk_live_[\w-]{43}$/);
    expect(made.dashboard_email).toMatch(/^merchant-[0-9a-f]{12}@dashboard\.localhost$/);
    expect(made.dashboard_password).toMatch(/^[0-9a-f]{32}$/);

    const { accounts, keys } = service.stores;
    expect(await keys.byHash(hashKey(made.sandbox_key))).toMatchObject({
      account_id: made.account_id,
      livemode: false,
      scopes: SCOPES,
      revoked_at: null,
    });
    expect(await keys.byHash(hashKey(made.live_key))).toMatchObject({ livemode: true });
    expect(await accounts.get(made.account_id)).toMatchObject({
      name: 'Acme',
      crypto: false,
      enabled_methods: PAYMENT_METHOD_IDS,
    });
  });

  test('stores the password as argon2id of 19 MiB, two passes, one lane', async () => {
    const made = await service.account();
    const [owner] = await service.stores.users.byEmail(made.dashboard_email);
    expect(owner).toMatchObject({ account_id: made.account_id, role: 'owner' });
    const password_hash = owner?.password_hash ?? '';
    expect(password_hash).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$/);
    expect(await verify(password_hash, made.dashboard_password)).toBe(true);
  });

  test.each([
    [[], true],
    [['--keep-password'], false],
  ])('with %j the owner must replace the password: %s', async (options, mustReplace) => {
    const args = ['account', 'create', '--name', 'Acme', ...options];
    const { dashboard_email } = CreatedAccount.parse(await service.json(...args));
    const [owner] = await service.stores.users.byEmail(dashboard_email);
    expect(owner?.password_expires_at !== undefined).toBe(mustReplace);
  });

  test('stores neither keys nor the password as plain text', async () => {
    const { sandbox_key, live_key, dashboard_password } = await service.account();
    const stored = await everythingStored(service.db);
    expect(stored).toContain(hashKey(live_key));
    for (const secret of [sandbox_key, live_key, dashboard_password]) {
      expect(stored).not.toContain(secret.replace(/^sk_\w+?_/, ''));
    }
  });

  test('takes the login of --email in lower case, and refuses it a second time', async () => {
    const args = ['account', 'create', '--name', 'Ana', '--email', 'Ana@Example.com'];
    const made = CreatedAccount.parse(await service.json(...args));
    expect(made.dashboard_email).toBe('ana@example.com');
    expect(await service.refusal(...args)).toEqual({
      code: 'email_taken',
      message: 'Another account has the dashboard login ana@example.com.',
    });
  });

  test.each([
    [['--name', ' '], 'It must have 1 to 100 characters.'],
    [['--name', 'x'.repeat(101)], 'It must have 1 to 100 characters.'],
    [['--name', 'A', '--email', 'ana'], 'It must be an e-mail address'],
    [[], "required option '--name <name>' not specified"],
    [['--name'], "option '--name <name>' argument missing"],
    [['--name', 'A', '--nam', 'B'], "unknown option '--nam'"],
    [['--name', 'A', 'B'], 'too many arguments'],
  ])('refuses %j', async (args, words) => {
    const before = await service.db.collection('accounts').countDocuments();
    const { code, message } = await service.refusal('account', 'create', ...args);
    expect({ code, message }).toEqual({
      code: 'invalid_usage',
      message: expect.stringContaining(words),
    });
    expect(await service.db.collection('accounts').countDocuments()).toBe(before);
  });
});

describe('account update, show and list', () => {
  test('update switches crypto and methods on and off, and answers with the account', async () => {
    const { account_id, dashboard_email } = await service.account('Update');
    const off = ['--disable-method', 'amex', '--disable-method', 'visa'];
    const changed = await service.json('account', 'update', account_id, '--crypto', 'on', ...off);
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
    const began = performance.now();
    expect(await service.json('account', 'update', account_id, ...on)).toMatchObject({
      crypto: false,
      enabled_methods: PAYMENT_METHOD_IDS.filter((id) => id !== 'amex' && id !== 'ideal'),
    });
    // No process still lists its crypto payments.
    expect(performance.now() - began).toBeGreaterThan(CACHE_MS - 100);
  });

  test('update switches rails on and off, and sets payout fees', async () => {
    const { account_id } = await service.account('Payouts');
    const update = (...args: string[]) => service.json('account', 'update', account_id, ...args);
    const off = ['--disable-method', 'card_payout', '--disable-method', 'faster_payments'];
    const fees = ['--payout-fee', 'sepa_instant=50', '--payout-fee', 'card_payout=120'];
    const changed = await update(...off, ...fees);
    expect(changed).toMatchObject({
      enabled_methods: PAYMENT_METHOD_IDS,
      enabled_rails: ['sepa_credit_transfer', 'sepa_instant'],
      payout_fees: { sepa_instant: 50, card_payout: 120 },
    });
    expect(await service.json('account', 'show', account_id)).toEqual(changed);
    const { stdout } = await service.cli('account', 'show', account_id);
    expect(stdout).toContain('Rails:            sepa_credit_transfer, sepa_instant\n');
    expect(stdout).toMatch(/Payout fees: {6}.*sepa_instant=50/);
    const on = ['--enable-method', 'card_payout', '--disable-method', 'ideal'];
    expect(await update(...on, '--payout-fee', 'sepa_instant=0')).toMatchObject({
      enabled_methods: PAYMENT_METHOD_IDS.filter((id) => id !== 'ideal'),
      enabled_rails: ['card_payout', 'sepa_credit_transfer', 'sepa_instant'],
      payout_fees: { card_payout: 120 },
    });
    const yen = ['--payout-fee', 'card_payout:JPY=150', '--payout-fee', 'card_payout:KWD=0'];
    expect(await update('--payout-fee', 'card_payout=0', ...yen)).toMatchObject({
      payout_fees: { 'card_payout:JPY': 150, 'card_payout:KWD': 0 },
    });
    const removed = ['--payout-fee', 'card_payout:JPY=off', '--payout-fee', 'card_payout:KWD=off'];
    expect(await update(...removed)).toMatchObject({ payout_fees: {} });
  });

  test('update sets for how many months payer data is stored', async () => {
    const { account_id } = await service.account();
    const update = (months: string) => [
      'account',
      'update',
      account_id,
      '--payer-data-months',
      months,
    ];
    expect(await service.json(...update('6'))).toMatchObject({ payer_data_months: 6 });
    expect((await service.cli('account', 'show', account_id)).stdout).toContain('6 months');
    for (const wrong of ['0', '121', '1.5', '-1', 'x', '']) {
      expect((await service.refusal(...update(wrong))).message).toContain('from 1 to 120');
    }
  });

  test('update refuses an invalid fee, and one rail twice', async () => {
    const { account_id } = await service.account();
    const update = (...fees: string[]) =>
      service.refusal(
        ...['account', 'update', account_id],
        ...fees.flatMap((fee) => ['--payout-fee', fee]),
      );
    for (const fee of [
      ...['sepa_instant', 'sepa_instant=', 'sepa_instant=-1', 'sepa_instant=1.5', '=5', 'ideal=5'],
      ...['sepa_instant=1e3', 'sepa_instant=100000000000', 'sepa_instant=1=2', 'toString=1'],
      ...['sepa_instant:JPY=1', 'card_payout:=1', 'card_payout=offf', ''],
    ]) {
      const { message } = await update(fee);
      expect([fee, message]).toEqual([
        fee,
        expect.stringContaining('It must be RAIL=MINOR, each rail once'),
      ]);
    }
    const again = await update('card_payout=1', 'card_payout=2');
    expect(again.message).toContain('each rail once');
    expect(await service.json('account', 'show', account_id)).toMatchObject({ payout_fees: {} });
  });

  test('a refused update changes nothing', async () => {
    const { account_id } = await service.account();
    const before = await service.json('account', 'show', account_id);
    const update = ['account', 'update', account_id];
    const both = ['--crypto', 'on', '--enable-method', 'visa', '--disable-method', 'visa'];
    expect((await service.refusal(...update)).code).toBe('nothing_to_change');
    expect((await service.refusal(...update, ...both)).code).toBe('contradiction');
    const method = await service.refusal(...update, '--crypto', 'on', '--enable-method', 'Visa');
    expect(method.message).toContain(
      `Allowed: ${[...PAYMENT_METHOD_IDS, ...RAIL_IDS].join(', ')}.`,
    );
    const crypto = await service.refusal(...update, '--crypto', 'maybe');
    expect(crypto.message).toContain('Allowed choices are on, off.');
    expect(await service.json('account', 'show', account_id)).toEqual(before);
  });

  test('list begins with the newest account, and says whether there are more', async () => {
    const { account_id } = await service.account('Newest');
    expect(await service.json('account', 'list', '--limit', '1')).toEqual({
      data: [expect.objectContaining({ account_id, name: 'Newest' })],
      has_more: true,
    });
    expect(await service.json('account', 'list')).toMatchObject({ has_more: false });
  });

  test('a name is printed without control characters', async () => {
    const { account_id } = await service.account('\u001b[2J\u202eEvil\u0007\nLine');
    const { stdout } = await service.cli('account', 'show', account_id);
    expect(stdout).toContain('Name:             [2JEvil Line\n');
    const all = (await service.cli('account', 'list')).stdout;
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be there.
    expect(all.replaceAll('\n', '')).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u202e]/);
  });

  test('an unknown account is refused by every command about one', async () => {
    const id = `acct_${randomUUID()}`;
    const sandbox = ['--env', 'sandbox'];
    const anAmount = ['--balance-account', 'main', '--currency', 'EUR', '--amount', '1'];
    for (const args of [
      ['account', 'show', id],
      ['account', 'update', id, '--crypto', 'on'],
      ['key', 'create', id, ...sandbox],
      ['key', 'list', id],
      ['webhook', 'set', id, ...sandbox, '--url', 'http://localhost:4000'],
      ['webhook', 'roll', id, ...sandbox],
      ['webhook', 'show', id, ...sandbox],
      ['event', 'list', id, ...sandbox],
      ['balance', 'show', id, ...sandbox],
      ['balance', 'fund', id, ...sandbox, ...anAmount],
    ]) {
      expect(await service.refusal(...args)).toEqual({
        code: 'account_not_found',
        message: `There is no account ${id}.`,
      });
    }
  });
});

describe('a freeze', () => {
  test('is shown with its reason, logged once, and ended by unfreeze', async () => {
    const { account_id } = await service.account();
    const why = ['--reason', 'Ticket 42: a live key leaked', '--operator', 'mia'];
    const frozen = await service.json('account', 'freeze', account_id, ...why);
    const shown = { at: expect.stringMatching(/Z$/), reason: 'Ticket 42: a live key leaked' };
    expect(frozen).toMatchObject({ account_id, frozen: shown });
    expect(await service.json('account', 'freeze', account_id, '--reason', 'Again')).toEqual(
      frozen,
    );
    const { stdout } = await service.cli('account', 'show', account_id);
    expect(stdout).toMatch(/\nFrozen: +since .* UTC: Ticket 42: a live key leaked\n/);
    expect(await service.json('account', 'unfreeze', account_id)).not.toHaveProperty('frozen');
    const lines = await service.stores.auditLog.list({ account_id, limit: 2 });
    expect(lines).toMatchObject([
      { act: 'account.unfrozen' },
      { act: 'account.frozen', after: { reason: shown.reason, operator: 'mia' } },
    ]);
    expect((await service.refusal('account', 'freeze', account_id)).code).toBe('invalid_usage');
  });
});

test.each([
  ['--payout-limit', 'payout_limits'],
  ['--owed-limit', 'owed_limits'],
  ['--refund-step-up', 'refund_step_up'],
])('%s is set by currency, shown, and removed', async (option, field) => {
  const { account_id } = await service.account();
  const update = ['account', 'update', account_id];
  const two = [option, 'EUR=5000000', option, 'GBP=0'];
  expect(await service.json(...update, ...two)).toMatchObject({
    [field]: { EUR: 5_000_000, GBP: 0 },
  });
  const gone = [option, 'EUR=off', option, 'GBP=off'];
  expect(await service.json(...update, ...gone)).not.toHaveProperty(field);
  for (const wrong of ['EUR', 'eur=5', 'EUR=5.5', 'EUR=-1', 'EUR=1=2']) {
    const { message } = await service.refusal(...update, option, wrong);
    expect(message).toContain('It must be CURRENCY=MINOR');
  }
});

describe('API keys', () => {
  test('key create creates a key of all scopes or of those of --scopes, and stores its hash alone', async () => {
    const { account_id } = await service.account();
    const create = ['key', 'create', account_id, '--env'];
    const live = MadeKey.parse(await service.json(...create, 'live'));
    const scoped = MadeKey.parse(
      await service.json(...create, 'sandbox', '--scopes', 'refunds:read, payments:read'),
    );
    expect(live.key).toMatch(/^sk_live_/);
    expect(scoped.key).toMatch(/^sk_sandbox_/);
    const { keys } = service.stores;
    expect(await keys.byHash(hashKey(live.key))).toMatchObject({
      _id: live.key_id,
      scopes: SCOPES,
    });
    expect(await keys.byHash(hashKey(scoped.key))).toMatchObject({
      account_id,
      livemode: false,
      scopes: ['payments:read', 'refunds:read'],
    });
    expect(await everythingStored(service.db)).not.toContain(live.key.slice('sk_live_'.length));
  });

  test('key list shows the last four characters of each key, and no key', async () => {
    const { account_id, sandbox_key, live_key } = await service.account();
    const seen = { scopes: SCOPES, last_used_at: null, revoked_at: null };
    const rest = {
      key_id: expect.stringMatching(/^key_/),
      created_at: expect.stringMatching(/Z$/),
    };
    expect(await service.json('key', 'list', account_id)).toEqual({
      data: [
        { ...rest, ...seen, env: 'sandbox', last4: sandbox_key.slice(-4) },
        { ...rest, ...seen, env: 'live', last4: live_key.slice(-4) },
      ],
    });
    const { stdout } = await service.cli('key', 'list', account_id);
    expect(stdout).toMatch(/^KEY +ENV +ENDS +CREATED +LAST USED +REVOKED +SCOPES\n/);
    expect(stdout).toContain(`…${sandbox_key.slice(-4)}`);
    expect(stdout).not.toContain(sandbox_key);
  });

  test('a second revocation keeps the time of the first', async () => {
    const { account_id } = await service.account();
    const { key_id, key } = MadeKey.parse(
      await service.json('key', 'create', account_id, '--env', 'live'),
    );
    const first = RevokedKey.parse(await service.json('key', 'revoke', key_id));
    expect(first.key_id).toBe(key_id);
    expect(await service.json('key', 'revoke', key_id)).toEqual(first);
    expect(await service.stores.keys.byHash(hashKey(key))).toMatchObject({
      revoked_at: first.revoked_at,
    });
  });

  test('refuses a wrong environment, scope and key id, and names what is allowed', async () => {
    const { account_id } = await service.account();
    const create = ['key', 'create', account_id];
    const before = await service.json('key', 'list', account_id);
    const messages = [
      [await service.refusal(...create), "required option '--env <env>' not specified"],
      [await service.refusal(...create, '--env', 'test'), 'Allowed choices are sandbox, live.'],
      [
        await service.refusal(...create, '--env', 'live', '--scopes', 'payments:read,payments'),
        `Allowed, separated by commas: ${SCOPES.join(', ')}.`,
      ],
      [await service.refusal(...create, '--env', 'live', '--scopes', ''), 'Allowed, separated by'],
      [await service.refusal('key', 'revoke', 'key_1'), 'There is no key key_1.'],
    ] as const;
    for (const [{ message }, words] of messages) expect(message).toContain(words);
    expect(await service.json('key', 'list', account_id)).toEqual(before);
  });

  test('a key may expire, and may be limited to some networks', async () => {
    const { account_id } = await service.account();
    const create = ['key', 'create', account_id, '--env', 'live'];
    const until = ['--expires-at', '2999-01-01T01:00:00+01:00'];
    const from = ['--allow-cidr', '203.0.113.0/24', '--allow-cidr', '2001:db8::/32'];
    const { key_id } = MadeKey.parse(await service.json(...create, ...until, ...from));
    const bounds = {
      expires_at: '2999-01-01T00:00:00.000Z',
      allowed_cidrs: ['203.0.113.0/24', '2001:db8::/32'],
    };
    const { data } = z
      .object({ data: z.array(z.looseObject({ key_id: z.string() })) })
      .parse(await service.json('key', 'list', account_id));
    expect(data.find((key) => key.key_id === key_id)).toMatchObject(bounds);
    const [line] = await service.stores.auditLog.list({ account_id, limit: 1 });
    expect(line).toMatchObject({ act: 'api_key.created', target: key_id, after: bounds });
    const past = await service.refusal(...create, '--expires-at', '2020-01-01T00:00:00Z');
    expect(past.message).toBe('--expires-at has to be in the future.');
    const { message } = await service.refusal(...create, '--allow-cidr', '203.0.113.0/33');
    expect(message).toContain('It must be a network');
  });
});

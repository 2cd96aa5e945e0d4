import { randomUUID } from 'node:crypto';
import { verify } from '@node-rs/argon2';
import { SCOPES } from '../../src/domain/account/api-key';
import { PAYMENT_METHOD_IDS } from '../../src/domain/payment/catalog';
import { RAIL_IDS } from '../../src/domain/payout/rails';
import { CACHE_MS } from '../../src/store/cache';
import { hashKey } from '../../src/store/keys';
import { CreatedAccount, everythingStored, useProvisioning } from './cli';

const service = useProvisioning();

describe('account create', () => {
  test('makes an account with a working key per environment and a dashboard login', async () => {
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

  test('keeps the password as argon2id of 19 MiB, two passes, one lane', async () => {
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
  ])('with %j its user must replace the password: %s', async (options, mustReplace) => {
    const args = ['account', 'create', '--name', 'Acme', ...options];
    const { dashboard_email } = CreatedAccount.parse(await service.json(...args));
    const [owner] = await service.stores.users.byEmail(dashboard_email);
    expect(owner?.password_expires_at !== undefined).toBe(mustReplace);
  });

  test('stores neither keys nor password in clear', async () => {
    const { sandbox_key, live_key, dashboard_password } = await service.account();
    const stored = await everythingStored(service.db);
    expect(stored).toContain(hashKey(live_key));
    for (const secret of [sandbox_key, live_key, dashboard_password]) {
      expect(stored).not.toContain(secret.replace(/^sk_\w+?_/, ''));
    }
  });

  test('takes the login asked for, in lower case, once', async () => {
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
  test('switch crypto and methods on and off, each time showing the account', async () => {
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

  test('switch rails on and off, and set what their payouts cost', async () => {
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

  test('set for how long payers are kept', async () => {
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

  test('refuse a fee that is none, and one rail twice', async () => {
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

  test('list gives the newest accounts first, with or without more to come', async () => {
    const { account_id } = await service.account('Newest');
    expect(await service.json('account', 'list', '--limit', '1')).toEqual({
      data: [expect.objectContaining({ account_id, name: 'Newest' })],
      has_more: true,
    });
    expect(await service.json('account', 'list')).toMatchObject({ has_more: false });
  });

  test('a name is printed without the characters that steer a terminal', async () => {
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
  test('is shown with its reason, kept in the audit log once, and ended', async () => {
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

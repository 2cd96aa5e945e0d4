import { Long } from 'mongodb';
import { z } from 'zod';
import { inTransaction } from '../../src/base/mongo';
import { ENTRY_LINES } from '../../src/ledger/entry-lines';
import { fundSandbox } from '../../src/service/balances/fund';
import { useFixture } from '../support/fixture';
import { asOperator, CliError, commandsIn, openProvisioning, run, useProvisioning } from './cli';

const Row = z.strictObject({
  balance_account: z.string(),
  currency: z.string(),
  available: z.int(),
  reserved: z.int(),
});
const Balances = z.strictObject({ data: z.array(Row) });
const Funded = Row.extend({ operation_id: z.string() });

const service = useProvisioning();
beforeAll(async () => {
  // A second operator has tests of its own: test/cli/approval.test.ts
  const { env } = await asOperator(service, 'mia', 'operator', { APPROVAL_LIMIT: '99999999999' });
  Object.assign(service.env, env);
});

async function balances(account: string, env: 'sandbox' | 'live') {
  return Balances.parse(await service.json('balance', 'show', account, '--env', env)).data;
}

/** `balance fund` of a live account, with options changed or left out. */
function funding(account: string, changes: Record<string, string | undefined> = {}) {
  const options = {
    env: 'live',
    'balance-account': 'main',
    currency: 'EUR',
    amount: '100000',
    reason: 'Wire',
    ...changes,
  };
  const words = Object.entries(options).flatMap(([name, value]) =>
    value === undefined ? [] : [`--${name}`, value],
  );
  return ['balance', 'fund', account, ...words];
}

const EUROS = { balance_account: 'main', currency: 'EUR', reserved: 0 };
const SANDBOX_START = [
  ...['EUR', 'GBP', 'USD'].map((currency) => ['main', currency, 10_000_000]),
  ...['EUR', 'GBP', 'USD'].map((currency) => ['marketing', currency, 1_000_000]),
].map(([balance_account, currency, available]) => ({
  balance_account,
  currency,
  available,
  reserved: 0,
}));

describe('the test funds of a new account', () => {
  test('are on main and marketing of its sandbox, in three currencies, and not on live', async () => {
    const { account_id } = await service.account();
    expect(await balances(account_id, 'sandbox')).toEqual(SANDBOX_START);
    expect(await balances(account_id, 'live')).toEqual([]);
  });

  test('are credited once', async () => {
    const { account_id } = await service.account();
    const deps = { mongo: service.mongo, stores: service.stores, now: () => new Date() };
    await expect(fundSandbox(deps, account_id)).rejects.toThrow(/duplicate key/);
    expect(await balances(account_id, 'sandbox')).toEqual(SANDBOX_START);
  });

  test('are shown exactly, also beyond 2^53 minor units', async () => {
    const rich = await openProvisioning();
    const { account_id } = await rich.account();
    await rich.db
      .collection<{ _id: string }>('ledger_books')
      .updateOne(
        { _id: `${account_id}:sandbox:EUR` },
        { $set: { 'balances.main.available': Long.fromBigInt(2n ** 53n + 1n) } },
      );
    const show = ['balance', 'show', account_id, '--env', 'sandbox'];
    expect((await rich.cli(...show)).stdout).toContain('€90,071,992,547,409.93');
    expect(await rich.json(...show)).toMatchObject({
      data: expect.arrayContaining([{ ...EUROS, available: '9007199254740993' }]),
    });
    await rich.close();
  });

  test('fail the account if they cannot be posted, before any key is created or shown', async () => {
    const broken = await openProvisioning();
    await broken.db.createCollection('ledger_books', { validator: { _id: 'never' } });
    const { exit, stdout, stderr } = await broken.cli('account', 'create', '--name', 'A', '--json');
    expect({ exit, stdout }).toEqual({ exit: 1, stdout: '' });
    const { error } = CliError.parse(JSON.parse(stderr));
    expect(error.code).toBe('funding_failed');
    expect(error.message).toMatch(/^The account acct_\S+ is not usable: .+ it got no keys\./);
    expect(await broken.db.collection('api_keys').countDocuments()).toBe(0);
    expect(await broken.db.collection('ledger_postings').countDocuments()).toBe(0);
    await broken.close();
  });
});

describe('balance show', () => {
  test('prints a table, in the decimals of each currency', async () => {
    const { account_id } = await service.account();
    await service.json(...funding(account_id, { currency: 'JPY', amount: '1050' }));
    await service.json(...funding(account_id, { 'balance-account': 'ads', currency: 'KWD' }));
    const { stdout } = await service.cli('balance', 'show', account_id, '--env', 'live');
    expect(stdout.replaceAll('\u00a0', ' ')).toBe(
      [
        'BALANCE ACCOUNT  CURRENCY  AVAILABLE    RESERVED',
        'ads              KWD       KWD 100.000  KWD 0.000',
        'main             JPY       ¥1,050       ¥0',
        '',
      ].join('\n'),
    );
  });

  test('says that an account holds nothing yet', async () => {
    const { account_id } = await service.account();
    const { exit, stdout } = await service.cli('balance', 'show', account_id, '--env', 'live');
    expect({ exit, stdout }).toEqual({
      exit: 0,
      stdout: 'The live account holds nothing yet: main exists and is empty.\n',
    });
  });
});

describe('balance fund', () => {
  test('credits the balance, posts an entry, and answers with the new balance', async () => {
    const { account_id } = await service.account();
    const first = Funded.parse(await service.json(...funding(account_id)));
    const operation = { operation_id: expect.stringMatching(/^funded:fund_[0-9a-f-]{36}$/) };
    expect(first).toEqual({ ...EUROS, available: 100_000, ...operation });
    const most = funding(account_id, { amount: '99999999999' });
    const second = Funded.parse(await service.json(...most));
    expect(second.available).toBe(100_000_099_999);
    expect(second.operation_id).not.toBe(first.operation_id);
    const { operation_id, ...row } = second;
    expect(await balances(account_id, 'live')).toEqual([row]);
    expect(await service.stores.ledger.findEntry(operation_id)).toMatchObject({
      book: `${account_id}:live:EUR`,
      kind: 'funded',
      legs: [
        { account: 'external.funding', amount: -99_999_999_999 },
        { account: 'balances.main.available', amount: 99_999_999_999 },
      ],
    });
  });

  test('creates a balance account of any valid name, and changes nothing in the other environment', async () => {
    const { account_id } = await service.account();
    const more = { env: 'sandbox', 'balance-account': 'Ads_2-b', amount: '1' };
    await service.json(...funding(account_id, more));
    expect(await balances(account_id, 'sandbox')).toEqual([
      { ...EUROS, balance_account: 'Ads_2-b', available: 1 },
      ...SANDBOX_START,
    ]);
    expect(await balances(account_id, 'live')).toEqual([]);
  });

  test('credits once under one operation id, also when several commands run at once', async () => {
    const { account_id } = await service.account();
    const id = `wire-${account_id}`;
    const once = funding(account_id, { 'operation-id': id, 'balance-account': 'ads' });
    const runs = await Promise.all([1, 2, 3, 4].map(() => service.json(...once)));
    const [first] = runs.map((said) => Funded.parse(said));
    const row = { ...EUROS, balance_account: 'ads', available: 100_000 };
    expect(first).toEqual({ ...row, operation_id: `funded:${id}` });
    expect(runs).toEqual(runs.map(() => first));
    const printed = funding(account_id, {
      'operation-id': first?.operation_id,
      'balance-account': 'ads',
    });
    expect(await service.json(...printed)).toEqual(first);
    await service.json(...funding(account_id, { 'balance-account': 'ads', amount: '5' }));
    expect(await service.json(...once)).toEqual({ ...first, available: 100_005 });
    expect(await balances(account_id, 'live')).toHaveLength(1);
  });

  test('refuses the operation id of another funding', async () => {
    const { account_id } = await service.account();
    const id = { 'operation-id': `wire-${account_id}`, 'balance-account': 'ads' };
    await service.json(...funding(account_id, id));
    const before = await balances(account_id, 'sandbox');
    for (const change of [
      { amount: '99999' },
      { currency: 'USD' },
      { env: 'sandbox' },
      { 'balance-account': 'main' },
    ]) {
      expect(await service.refusal(...funding(account_id, { ...id, ...change }))).toEqual({
        code: 'operation_id_used',
        message: expect.stringMatching(
          /^funded:wire-\S+ is the id of another funding, of .+: external\.funding -100000, .+credited\.$/,
        ),
      });
    }
    expect(await balances(account_id, 'sandbox')).toEqual(before);
    const live = await balances(account_id, 'live');
    expect(live.map(({ available }) => available)).toEqual([100_000]);
  });

  test('stores operator and reason with the entry, and the ledger verifies', async () => {
    const { account_id } = await service.account();
    const said = { operator: 'mia', reason: 'Wire of 1 March' };
    const { operation_id } = Funded.parse(await service.json(...funding(account_id, said)));
    expect(await service.stores.ledger.findEntry(operation_id)).toMatchObject({ note: said });
    const noWords = { env: 'sandbox', reason: undefined };
    const plain = Funded.parse(await service.json(...funding(account_id, noWords)));
    expect(await service.stores.ledger.findEntry(plain.operation_id)).not.toHaveProperty('note');
    expect(await service.json('ledger', 'verify')).toMatchObject({ data: { differences: [] } });
  });

  test('prints what was credited and the new balance', async () => {
    const { account_id } = await service.account();
    const { stdout } = await service.cli(...funding(account_id, { env: 'sandbox', amount: '5' }));
    expect(stdout).toMatch(
      /^Balance account: +main\nCredited: +€0\.05\nAvailable: +€100,000\.05\nReserved: +€0\.00\n/,
    );
  });

  test('credits every one of several fundings at once', async () => {
    const { account_id } = await service.account();
    const fund = () => service.json(...funding(account_id));
    const all = Array.from({ length: 8 }, fund);
    const seen = (await Promise.all(all)).map((row) => Funded.parse(row).available);
    expect(seen.sort((a, b) => a - b)).toEqual(
      Array.from({ length: 8 }, (_, n) => (n + 1) * 100_000),
    );
  });

  const AMOUNT = 'It must be an integer from 1 to 99999999999, in minor units: 10.50 EUR is 1050.';
  const CURRENCY = 'It must be an ISO 4217 code in capitals, such as EUR.';
  const NAME = 'It must be 1 to 64 letters, digits, hyphens and underscores';

  const WRONG: [changes: Record<string, string | undefined>, words: string][] = [
    ...each('amount', ['0', '-1', '+1', '10.5', '10.0', '1e3', '0x10', '1_000', '1,000'], AMOUNT),
    ...each('amount', ['ten', '', ' 5', '100000000000', '9'.repeat(40)], AMOUNT),
    ...each('currency', ['eur', 'EU', 'XXX', 'XAU', ''], CURRENCY),
    ...each('balance-account', ['', 'a.b', '$a', '-a', '__proto__', 'a b', 'é'], NAME),
    ...each('balance-account', ['x'.repeat(65)], NAME),
    ...each('operation-id', ['', 'a b', 'a:b', 'funded:', 'x'.repeat(101)], 'It must be 1 to 100'),
    ...each('operator', ['', ' ', 'x'.repeat(101)], 'It must have 1 to 100'),
    ...each('reason', ['', 'x'.repeat(501)], 'It must have 1 to 500'),
    [{ env: 'test' }, 'Allowed choices are sandbox, live.'],
    [{ env: undefined }, "required option '--env <env>' not specified"],
    [{ currency: undefined }, "required option '--currency <currency>' not specified"],
    [{ amount: undefined }, "required option '--amount <minor>' not specified"],
  ];

  test.each(WRONG)('refuses %p before it connects to any server', async (changes, words) => {
    const { exit, stdout, stderr } = await run({}, ...funding('acct_1', changes), '--json');
    expect({ exit, stdout }).toEqual({ exit: 1, stdout: '' });
    expect(CliError.parse(JSON.parse(stderr)).error).toEqual({
      code: 'invalid_usage',
      message: expect.stringContaining(words),
    });
  });
});

function each(option: string, values: string[], words: string) {
  return values.map((value): [Record<string, string>, string] => [{ [option]: value }, words]);
}

describe('balance adjust and balance reverse', () => {
  const WHO = ['--operator', 'mia', '--reason', 'Ticket 42'];

  /** `balance adjust` of a live account. */
  function adjusting(account: string, amount: string, ...more: string[]) {
    const where = ['--env', 'live', '--balance-account', 'main', '--currency', 'EUR'];
    return ['balance', 'adjust', account, ...where, '--amount', amount, ...WHO, ...more];
  }
  const ledger = (account: string) =>
    service.db
      .collection('ledger_postings')
      .find({ book: `${account}:live:EUR` })
      .toArray();

  test('correct a balance up and down, never below 0, with operator and reason', async () => {
    const { account_id } = await service.account();
    const up = Funded.parse(await service.json(...adjusting(account_id, '5000')));
    expect(up).toMatchObject({ balance_account: 'main', available: 5_000, reserved: 0 });
    const down = Funded.parse(await service.json(...adjusting(account_id, '-3000')));
    expect(down.available).toBe(2_000);
    const refused = await service.refusal(...adjusting(account_id, '-2001'));
    expect(refused.code).toBe('insufficient_balance');
    expect(await ledger(account_id)).toMatchObject([
      { kind: 'adjusted', note: { operator: 'mia', reason: 'Ticket 42' } },
      { kind: 'adjusted' },
    ]);
    const text = (await service.cli(...adjusting(account_id, '1'))).stdout;
    expect(text).toMatch(/Adjusted: +€0\.01/);
  });

  test('are posted once under one operation id', async () => {
    const { account_id } = await service.account();
    const once = adjusting(account_id, '5000', '--operation-id', 'ticket-42');
    await service.json(...once);
    expect(await service.json(...once)).toMatchObject({ available: 5_000 });
    const other = adjusting(account_id, '5001', '--operation-id', 'adjusted:ticket-42');
    expect((await service.refusal(...other)).code).toBe('operation_id_used');
    expect(await ledger(account_id)).toHaveLength(1);
  });

  test('correct a balance of an asset to the unit', async () => {
    const { account_id } = await service.account();
    const adjustEther = (amount: string, ...more: string[]) => {
      const where = ['--env', 'sandbox', '--balance-account', 'main'];
      const asset = ['--asset', 'ETH', '--network', 'ethereum', '--amount', amount];
      return ['balance', 'adjust', account_id, ...where, ...asset, ...WHO, ...more];
    };
    const up = adjustEther('5000000000000000001', '--operation-id', 'reorg-1');
    const row = { balance_account: 'main', asset: 'ETH', network: 'ethereum', reserved: '0' };
    for (const _repeat of [1, 2]) {
      expect(await service.json(...up)).toEqual({
        ...row,
        available: '5000000000000000001',
        operation_id: 'adjusted:reorg-1',
      });
    }
    const down = adjustEther('-5000000000000000000');
    expect((await service.cli(...down)).stdout).toMatch(
      /Adjusted: +-5 ETH\nAvailable: +0\.0{17}1 ETH/,
    );
    expect((await service.refusal(...down)).code).toBe('insufficient_balance');
    const reverse = ['balance', 'reverse', 'adjusted:reorg-1', ...WHO];
    expect((await service.refusal(...reverse)).code).toBe('insufficient_balance');
    await service.json(...adjustEther('5000000000000000000'));
    expect(await service.json(...reverse)).toMatchObject({ ...row, available: '0' });
    for (const wrong of [
      adjustEther('1.5'),
      adjustEther('0'),
      adjustEther('1', '--currency', 'EUR'),
      adjustEther('-1', '--against', 'receivable'),
      adjustEther('1').filter((word) => word !== '--network' && word !== 'ethereum'),
    ]) {
      expect((await service.refusal(...wrong)).code).toBe('invalid_usage');
    }
    expect((await service.cli('ledger', 'verify', '--full')).exit).toBe(0);
  });

  test('require an operator and a reason', async () => {
    const { account_id } = await service.account();
    const nobody = adjusting(account_id, '1').filter((word) => !WHO.includes(word));
    expect((await service.refusal(...nobody)).code).toBe('invalid_usage');
  });

  test('reverse a funding once; a repeat posts nothing', async () => {
    const { account_id } = await service.account();
    const { operation_id } = Funded.parse(await service.json(...funding(account_id)));
    const reverse = ['balance', 'reverse', operation_id, ...WHO];
    const row = { ...EUROS, available: 0, operation_id: `reversed:${operation_id}` };
    expect(await service.json(...reverse)).toEqual(row);
    expect(await service.json(...reverse)).toMatchObject({ available: 0 });
    expect(await ledger(account_id)).toHaveLength(2);
    const unknown = ['balance', 'reverse', 'funded:nothing', ...WHO];
    expect((await service.refusal(...unknown)).code).toBe('operation_not_found');
    const twice = ['balance', 'reverse', `reversed:${operation_id}`, ...WHO];
    expect((await service.refusal(...twice)).code).toBe('not_reversible');
  });

  test('refuse to reverse what was spent meanwhile', async () => {
    const { account_id } = await service.account();
    const { operation_id } = Funded.parse(await service.json(...funding(account_id)));
    await service.json(...adjusting(account_id, '-1'));
    const reverse = ['balance', 'reverse', operation_id, ...WHO];
    expect((await service.refusal(...reverse)).code).toBe('insufficient_balance');
  });

  test('collect at most what a merchant owes', async () => {
    const { account_id } = await service.account();
    await service.json(...funding(account_id));
    const owner = { account_id, livemode: true, currency: 'EUR', at: new Date().toISOString() };
    const resource_id = `payment-of-${account_id}`;
    const legs = ENTRY_LINES.payment_clawed_back('bank', 0, 700);
    const { mongo, stores } = service;
    await inTransaction(mongo, (session) =>
      stores.ledger.post({ kind: 'payment_clawed_back', resource_id, ...owner, legs }, session),
    );
    expect(await service.json('balance', 'show', account_id, '--env', 'live')).toMatchObject({
      receivables: [{ currency: 'EUR', owed: 700 }],
    });
    const shown = (await service.cli('balance', 'show', account_id, '--env', 'live')).stdout;
    expect(shown).toContain('The merchant owes €7.00.');
    const collect = (amount: string) => adjusting(account_id, amount, '--against', 'receivable');
    expect((await service.refusal(...collect('-701'))).code).toBe('nothing_owed');
    expect((await service.refusal(...collect('5'))).code).toBe('nothing_owed');
    expect(await service.json(...collect('-700'))).toMatchObject({ available: 99_300 });
    expect(await service.json('balance', 'show', account_id, '--env', 'live')).toEqual({
      data: [{ ...EUROS, available: 99_300 }],
    });
  });
});

describe('balance adjust --against', () => {
  /** Opens a sandbox account with 100,000.00 on `main`, and builds its `balance adjust`. */
  async function openAdjusting() {
    const { account_id } = await service.account();
    const adjusting = (amount: string, ...more: string[]) => [
      ...['balance', 'adjust', account_id, '--env', 'sandbox', '--balance-account', 'main'],
      ...['--currency', 'EUR', '--operator', 'mia', '--reason', 'Ticket 42', '--amount', amount],
      ...more,
    ];
    const adjust = (...args: Parameters<typeof adjusting>) => service.json(...adjusting(...args));
    const entries = () =>
      service.db
        .collection('ledger_postings')
        .find({ book: `${account_id}:sandbox:EUR`, kind: { $in: ['adjusted', 'reversed'] } })
        .sort({ written_at: 1 })
        .toArray();
    return { account_id, adjusting, adjust, entries };
  }

  /** Account of refused corrections. */
  const merchant = useFixture(openAdjusting);

  const lines = (account: string, amount: number) => [
    { account, amount: -amount },
    { account: 'balances.main.available', amount },
  ];

  test.each([
    ['bank_fees', 'expense.bank_fees', 5],
    ['suspense', 'suspense.held', -5],
    ['adjustments', 'external.adjustments', 5],
  ])('%s moves no money at a bank', async (against, account, amount) => {
    const { adjust, entries } = await openAdjusting();
    const row = await adjust(String(amount), '--against', against);
    expect(row).toMatchObject({ available: 10_000_000 + amount });
    const [entry] = await entries();
    expect(entry).toMatchObject({ legs: lines(account, amount) });
    expect(entry).not.toHaveProperty('uncleared');
  });

  test('clearing waits for a line of the bank statement', async () => {
    const { adjust, adjusting, entries } = await openAdjusting();
    const bank = ['--against', 'clearing:sandbox', '--bank-reference', 'ACCT-7'];
    const once = ['-700', ...bank, '--operation-id', 'ticket-43'] as const;
    expect(await adjust(...once)).toMatchObject({ available: 9_999_300 });
    expect(await adjust(...once)).toMatchObject({ available: 9_999_300 });
    const [entry, ...others] = await entries();
    expect(others).toEqual([]);
    expect(entry).toMatchObject({
      ...{ legs: lines('clearing.sandbox', -700), bank_reference: 'ACCT-7' },
      ...{ uncleared: 'sandbox', bank_amount: -700, livemode: false, currency: 'EUR' },
    });
    const scope = { connector: 'sandbox', livemode: false, currency: 'EUR' };
    expect(
      await service.stores.ledger.findUncleared({ ...scope, bank_reference: 'ACCT-7' }),
    ).toMatchObject([{ entry_id: 'adjusted:ticket-43', amount: -700 }]);
    const other = adjusting(...once).map((word) => (word === 'ACCT-7' ? 'ACCT-8' : word));
    expect((await service.refusal(...other)).code).toBe('operation_id_used');
  });

  test('a reversed mistake needs no statement line; the reversal of a matched entry does', async () => {
    const { adjust, entries } = await openAdjusting();
    const reverse = (id: string) =>
      service.json('balance', 'reverse', id, '--operator', 'mia', '--reason', 'Typo');
    const against = ['--against', 'clearing:sandbox'] as const;
    await adjust('700', ...against, '--operation-id', 'typo');
    await reverse('adjusted:typo');
    const cleared = { cleared: 'sandbox', cleared_at: expect.any(String) };
    expect(await entries()).toMatchObject([cleared, cleared]);
    await adjust('800', ...against, '--operation-id', 'moved');
    const { mongo, ledger } = { mongo: service.mongo, ...service.stores };
    await mongo.withSession((session) => ledger.clear(['adjusted:moved'], session));
    await reverse('adjusted:moved');
    expect((await entries()).slice(2)).toMatchObject([
      cleared,
      { kind: 'reversed', uncleared: 'sandbox', bank_amount: -800 },
    ]);
  });

  test('suspense gives back at most what an operator has put there', async () => {
    const { adjust, adjusting } = await openAdjusting();
    await adjust('-5', '--against', 'suspense');
    const refused = await service.refusal(...adjusting('6', '--against', 'suspense'));
    expect(refused).toEqual({
      code: 'insufficient_balance',
      message: 'Less is in suspense. Nothing was posted.',
    });
    expect(await adjust('5', '--against', 'suspense')).toMatchObject({ available: 10_000_000 });
  });

  test.each([
    [['--against', 'clearing:acme'], 'connector_unknown', /no connector acme/],
    [['--against', 'clearing:a.b'], 'invalid_usage', /clearing:CONNECTOR/],
    [['--against', 'clearing:'], 'invalid_usage', /clearing:CONNECTOR/],
    [['--against', 'clearing'], 'invalid_usage', /clearing:CONNECTOR/],
    [['--bank-reference', 'ACCT-7'], 'invalid_usage', /needs --against clearing:CONNECTOR/],
    [
      ['--against', 'suspense', '--bank-reference', 'ACCT-7'],
      ...(['invalid_usage', /needs --against clearing:CONNECTOR/] as const),
    ],
  ])('%j is refused with a message', async (options, code, message) => {
    const { adjusting, entries } = merchant;
    const refusal = await service.refusal(...adjusting('5', ...options));
    expect(refusal).toEqual({ code, message: expect.stringMatching(message) });
    expect(await entries()).toEqual([]);
  });

  test('the sandbox bank is refused on live', async () => {
    const { adjusting } = await openAdjusting();
    const live = adjusting('5', '--against', 'clearing:sandbox').map((word) =>
      word === 'sandbox' ? 'live' : word,
    );
    const { refusal } = commandsIn({ ...service.env, LIVE_CONNECTORS: 'acme=ideal' });
    expect((await refusal(...live)).code).toBe('connector_unknown');
  });
});

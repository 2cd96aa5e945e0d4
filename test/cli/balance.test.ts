import { randomUUID } from 'node:crypto';
import { inTransaction } from '../../src/base/mongo';
import type { NewEntry } from '../../src/ledger/entries';
import { ENTRY_LINES } from '../../src/ledger/entry-lines';
import { verifyLedger } from '../../src/ledger-check/verify';
import { reverseOperation } from '../../src/service/money/balances/act';
import { type Adjustment, adjustBalance } from '../../src/service/money/balances/adjust';
import { type Funding, fundBalance } from '../../src/service/money/balances/fund';
import { readBalances } from '../../src/service/money/read';
import { retryUntilDone } from '../support/eventually';
import { useService } from '../support/service';
import { asOperator, commandsIn, useCommands } from './cli';

const service = useService();
const commands = useCommands(service);

const NOTE = { operator: 'mia', reason: 'Ticket 42' };
const WHO = ['--operator', 'mia', '--reason', 'Ticket 42'];
const EUROS = { balance_account: 'main', currency: 'EUR', reserved: 0 };
const SHORT = { code: 'insufficient_balance' };
const USED = { code: 'operation_id_used' };
const BANK = { LIVE_CONNECTORS: 'acme=visa' };

const lines = (account: string, amount: number, balance = 'main') => [
  { account, amount: -amount },
  { account: `balances.${balance}.available`, amount },
];

/** A merchant without funds, and what changes its sandbox balance in euros. */
async function openMerchant() {
  const { account_id } = await service.account();
  const owner = { account_id, livemode: false, balance_account: 'main', currency: 'EUR' };
  const { ledger } = service.stores;
  return {
    account_id,
    fund: (change: Partial<Funding> = {}, id: string = randomUUID()) =>
      fundBalance(commands.deps, { ...owner, amount: 100_000, ...change }, { id }),
    adjust: (
      amount: number | bigint,
      change: Partial<Adjustment> = {},
      id: string = randomUUID(),
    ) => {
      const adjustment = { ...owner, against: 'adjustments' as const, amount, ...change };
      return adjustBalance(commands.deps, adjustment, NOTE, id);
    },
    reverse: (id: string) => reverseOperation(commands.deps, id, NOTE),
    post: (entry: Pick<NewEntry, 'kind' | 'lines'> & Partial<NewEntry>) => {
      const at = new Date().toISOString();
      const posted = { ...owner, resource_id: randomUUID(), at, ...entry };
      return inTransaction(service.mongo, (session) => ledger.post(posted, session));
    },
    read: async (livemode = false) => await readBalances(service, { account_id, livemode }),
    entries: () =>
      ledger.collections.entries
        .find({ book: `${account_id}:sandbox:EUR`, kind: { $in: ['adjusted', 'reversed'] } })
        .sort({ written_at: 1 })
        .toArray(),
  };
}

test('a funding credits the balance in its environment by an entry, once under one operation id', async () => {
  const { account_id, fund, read } = await openMerchant();
  const id = randomUUID();
  const ads = { balance_account: 'Ads_2-b' };
  const once = () => retryUntilDone(() => fund(ads, id));
  const row = { ...EUROS, ...ads, available: 100_000 };
  const first = { ...row, operation_id: `funded:${id}` };
  expect(await Promise.all([once(), once(), once(), once()])).toEqual(Array(4).fill(first));
  const { operation_id } = await fund({ ...ads, amount: 99_999_999_999 });
  expect(await once()).toEqual({ ...first, available: 100_000_099_999 });
  const entry = await service.stores.ledger.findEntry(operation_id);
  expect(entry).toMatchObject({
    ...{ book: `${account_id}:sandbox:EUR`, kind: 'funded' },
    lines: lines('external.funding', 99_999_999_999, 'Ads_2-b'),
  });
  expect(entry).not.toHaveProperty('note');
  const others = [{ amount: 99_999 }, { currency: 'USD' }, { balance_account: 'main' }];
  for (const change of [...others, { livemode: true }]) {
    const message = expect.stringMatching(
      /^funded:\S+ is the id of another funding, of .+ -100000,/,
    );
    await expect(fund({ ...ads, ...change }, id)).rejects.toMatchObject({ ...USED, message });
  }
  const balances = [{ ...row, available: 100_000_099_999 }];
  expect(await read()).toEqual({ balances, receivables: [] });
  expect((await read(true)).balances).toEqual([]);
});

// The lines of each kind are in test/ledger/unit, what a bank moved in test/statements.
describe('an adjustment', () => {
  test('corrects a balance up and down, never below 0, once under one operation id', async () => {
    const { adjust, entries } = await openMerchant();
    const id = randomUUID();
    for (const _repeat of [1, 2]) {
      expect(await adjust(5_000, {}, id)).toMatchObject({ ...EUROS, available: 5_000 });
    }
    await expect(adjust(5_001, {}, id)).rejects.toMatchObject(USED);
    const other = { against: 'clearing:sandbox', bank_reference: id } as const;
    await expect(adjust(5_000, other, id)).rejects.toMatchObject(USED);
    expect(await adjust(-3_000)).toMatchObject({ ...EUROS, available: 2_000 });
    await expect(adjust(-2_001)).rejects.toMatchObject(SHORT);
    expect(await entries()).toMatchObject([{ kind: 'adjusted', note: NOTE }, { kind: 'adjusted' }]);
  });

  test.each([
    [0, 0, 700],
    [300, 0, 400],
    [900, 200, 0],
  ])('that is owed debits what a balance of %i holds, once', async (funds, available, owed) => {
    const { adjust, entries, fund, read } = await openMerchant();
    if (funds > 0) await fund({ amount: funds });
    const id = randomUUID();
    for (const _repeat of [1, 2]) {
      expect(await adjust(-700, { owed: true }, id)).toMatchObject({ available });
    }
    expect(await entries()).toHaveLength(1);
    await expect(adjust(-701, { owed: true }, id)).rejects.toMatchObject(USED);
    const { receivables } = await read();
    expect(receivables).toEqual(owed === 0 ? [] : [{ currency: 'EUR', owed }]);
  });

  test('collects at most what a merchant owes', async () => {
    const { adjust, fund, post, read } = await openMerchant();
    await fund();
    const lines = ENTRY_LINES.payment_clawed_back('bank', 0, 700);
    await post({ kind: 'payment_clawed_back', lines });
    const id = randomUUID();
    const collect = (amount: number) => adjust(amount, { against: 'receivable' }, id);
    for (const amount of [-701, 5]) {
      await expect(collect(amount)).rejects.toMatchObject({
        code: 'nothing_owed',
        message: 'The merchant owes €7.00: an amount from -1 to -700 collects it.',
      });
    }
    expect(await collect(-700)).toMatchObject({ available: 99_300 });
    expect(await collect(-700)).toMatchObject({ available: 99_300 });
    const row = { ...EUROS, available: 99_300 };
    expect(await read()).toEqual({ balances: [row], receivables: [] });
  });

  test('moves no money at a bank against suspense, of which it takes at most what is there, or bank fees', async () => {
    const { adjust, entries, fund } = await openMerchant();
    await fund();
    const against = 'suspense' as const;
    await adjust(-5, { against });
    await expect(adjust(6, { against })).rejects.toMatchObject({
      code: 'insufficient_balance',
      message: 'Less is in suspense. Nothing was posted.',
    });
    expect(await adjust(5, { against })).toMatchObject({ available: 100_000 });
    await adjust(7, { against: 'bank_fees' });
    const sides = [lines('suspense.held', -5), lines('suspense.held', 5)];
    const all = [...sides, lines('expense.bank_fees', 7)];
    expect(await entries()).toMatchObject(all.map((each) => ({ lines: each })));
    for (const entry of await entries()) expect(entry).not.toHaveProperty('bank_amount');
  });
});

test('a reversal undoes a funding once, and nothing that was spent meanwhile', async () => {
  const { adjust, entries, fund, reverse } = await openMerchant();
  const { operation_id } = await fund();
  const row = { ...EUROS, available: 0, operation_id: `reversed:${operation_id}` };
  expect(await reverse(operation_id)).toEqual({ ...row, amount: -100_000 });
  expect(await reverse(operation_id)).toMatchObject({ available: 0 });
  expect(await entries()).toMatchObject([{ kind: 'reversed', note: NOTE }]);
  const final = { code: 'not_reversible' };
  await expect(reverse(`reversed:${operation_id}`)).rejects.toMatchObject(final);
  const spent = await fund();
  await adjust(-1);
  await expect(reverse(spent.operation_id)).rejects.toMatchObject(SHORT);
});

test('a balance of an asset is corrected and reversed to the unit', async () => {
  const { account_id, adjust, reverse } = await openMerchant();
  const ether = { currency: 'ETH.ethereum' };
  const id = randomUUID();
  for (const _repeat of [1, 2]) {
    expect(await adjust(5_000_000_000_000_000_001n, ether, id)).toEqual({
      ...{ ...EUROS, ...ether, available: 5_000_000_000_000_000_001n },
      operation_id: `adjusted:${id}`,
    });
  }
  const debit = -5_000_000_000_000_000_000n;
  expect(await adjust(debit, ether)).toMatchObject({ available: 1 });
  await expect(adjust(debit, ether)).rejects.toMatchObject(SHORT);
  await expect(reverse(`adjusted:${id}`)).rejects.toMatchObject(SHORT);
  await adjust(-debit, ether);
  expect(await reverse(`adjusted:${id}`)).toMatchObject({ available: 0 });
  const own = { book: `${account_id}:sandbox:ETH.ethereum`, full: true };
  const { differences } = await verifyLedger(service.mongo, service.database, own);
  expect(differences).toEqual([]);
});

describe('the command', () => {
  test('balance show prints a table in the decimals of each currency, and what is owed', async () => {
    const { account_id, fund, post } = await openMerchant();
    const show = ['balance', 'show', account_id, '--env', 'sandbox'];
    expect(await commands.cli(...show)).toMatchObject({
      exit: 0,
      stdout: 'The sandbox account holds nothing yet: main exists and is empty.\n',
    });
    await fund({ currency: 'JPY', amount: 1_050 });
    await fund({ currency: 'KWD', balance_account: 'ads' });
    const lines = ENTRY_LINES.adjusted('main', 2n ** 53n + 1n, 'adjustments');
    await post({ kind: 'adjusted', lines });
    await post({
      ...{ kind: 'crypto_payment_credited', currency: 'ETH.ethereum' },
      lines: ENTRY_LINES.crypto_payment_credited('chain', 10n ** 25n + 1n),
    });
    const debt = ENTRY_LINES.payment_clawed_back('bank', 0, 700);
    await post({ kind: 'payment_clawed_back', currency: 'GBP', lines: debt });
    const { stdout } = await commands.cli(...show);
    const rows = stdout.replaceAll('\u00a0', ' ').split('\n');
    expect(rows.map((row) => row.split(/ {2,}/))).toEqual([
      ['BALANCE ACCOUNT', 'CURRENCY', 'AVAILABLE', 'RESERVED'],
      ['ads', 'KWD', 'KWD 100.000', 'KWD 0.000'],
      ['main', 'ETH.ethereum', '10000000.000000000000000001 ETH', '0 ETH'],
      ['main', 'EUR', '€90,071,992,547,409.93', '€0.00'],
      ['main', 'JPY', '¥1,050', '¥0'],
      ['main', 'GBP', '£0.00', '£0.00'],
      [''],
      ['The merchant owes £7.00.'],
      [''],
    ]);
    const unproved = { proved_until: null };
    const euros = { ...EUROS, ...unproved };
    const asset = { asset: 'ETH', network: 'ethereum', reserved: '0', ...unproved };
    expect(await commands.json(...show)).toEqual({
      data: [
        { ...euros, balance_account: 'ads', currency: 'KWD', available: 100_000 },
        { balance_account: 'main', ...asset, available: '10000000000000000000000001' },
        { ...euros, available: '9007199254740993' },
        { ...euros, currency: 'JPY', available: 1_050 },
        { ...euros, currency: 'GBP', available: 0 },
      ],
      receivables: [{ currency: 'GBP', owed: 700 }],
    });
  });

  test('balance fund credits the funding that its options describe', async () => {
    const { account_id } = await openMerchant();
    const { json, cli, refusal } = await asOperator(commands, 'mia', 'operator', BANK);
    const where = ['--env', 'live', '--balance-account', 'ads', '--currency', 'EUR'];
    const wire = ['balance', 'fund', account_id, ...where, '--amount', '500', '--reason', 'Wire'];
    const bank = ['--connector', 'acme', '--bank-reference'];
    const id = `wire-${account_id}`;
    const operation_id = `funded:${id}`;
    for (const operation of [id, operation_id]) {
      const funded = await json(...wire, ...bank, account_id, '--operation-id', operation);
      expect(funded).toEqual({ ...EUROS, balance_account: 'ads', available: 500, operation_id });
    }
    expect(await service.stores.ledger.findEntry(operation_id)).toMatchObject({
      ...{ book: `${account_id}:live:EUR`, note: { operator: 'mia', reason: 'Wire' } },
      lines: lines('clearing.acme', 500, 'ads'),
    });
    for (const [more, code] of [
      [[], 'invalid_usage'],
      [['--connector', 'acme'], 'invalid_usage'],
      [[...bank, account_id], 'bank_reference_used'],
    ] as const) {
      expect((await refusal(...wire, ...more)).code).toBe(code);
    }
    const listed = await json('movement', 'list', '--connector', 'acme', '--limit', '1000');
    const own = ({ identity }: { identity: string }) => identity === account_id;
    const [{ id: movement }] = Object(listed).data.filter(own);
    expect((await cli('movement', 'show', movement)).stdout).toMatch(/Resource: +-\n/);
    const resolve = ['movement', 'resolve', movement, '--as', 'merchant', '--reason', 'Ticket 42'];
    expect(await refusal(...resolve)).toMatchObject({
      ...{
        code: 'wrong_state',
        message: expect.stringContaining(`balance reverse ${operation_id}`),
      },
    });
    // In the audit log, such a reference looks like a secret.
    const other = `${account_id}-2`.padEnd(43, '0');
    expect((await cli(...wire, ...bank, other)).stdout).toMatch(
      /^Balance account: +ads\nCredited: +€5\.00\nAvailable: +€10\.00\nReserved: +€0\.00\nOperation: +funded:fund_[0-9a-f-]{36}\n$/,
    );
  });

  test('balance adjust posts the adjustment that its options describe, and reverse what it reversed', async () => {
    const { account_id, entries, fund } = await openMerchant();
    const { operation_id } = await fund();
    const main = ['balance', 'adjust', account_id, '--env', 'sandbox', '--balance-account', 'main'];
    const euros = [...main, ...WHO, '--currency', 'EUR', '--amount'];
    const print = async (...args: string[]) => (await commands.cli(...args)).stdout;
    const bank = ['--against', 'clearing:sandbox', '--bank-reference', account_id];
    const once = [...euros, '-700', ...bank, '--operation-id', account_id];
    const row = { ...EUROS, available: 99_300, operation_id: `adjusted:${account_id}` };
    for (const _repeat of [1, 2]) expect(await commands.json(...once)).toEqual(row);
    expect(await print(...euros, '700')).toMatch(/Adjusted: +€7\.00\nAvail.*€1,000\.00\n/);
    const moved = { bank_amount: -700, bank_reference: account_id, note: NOTE };
    expect(await entries()).toMatchObject([moved, { note: NOTE }]);
    const reversed = /Reversed: +-€1,000\.00\nAvailable: +€0\.00\n/;
    expect(await print('balance', 'reverse', operation_id, ...WHO)).toMatch(reversed);
    const audited = await service.stores.auditLog.list({ account_id, livemode: false, limit: 4 });
    const after = { balance_account: 'main', currency: 'EUR', amount: 100_000 };
    expect(audited).toMatchObject([
      ...['reversed', 'adjusted', 'adjusted'].map((act) => ({ act: `balance.${act}` })),
      { act: 'balance.funded', target: operation_id, after },
    ]);
    expect(await commands.json(...euros, '-2000', '--owed')).toMatchObject({ available: 0 });
    expect((await commands.refusal(...euros, '5', '--owed')).code).toBe('invalid_usage');
    const ether = [...main, ...WHO, '--asset', 'ETH', '--network', 'ethereum', '--amount'];
    expect(await print(...ether, '5000000000000000001')).toMatch(/Adjusted: +5\.0{17}1 ETH\n/);
    const rest = { asset: 'ETH', available: '1' };
    expect(await commands.json(...ether, '-5000000000000000000')).toMatchObject(rest);
    await commands.json(...main, '--currency', 'EUR', '--amount', '5');
    expect((await entries()).at(-1)).not.toHaveProperty('note');
  });

  test('balance reverse and statement clear need neither an operator nor a reason in the sandbox', async () => {
    const { account_id, adjust, entries, fund } = await openMerchant();
    const { operation_id } = await fund();
    expect(await commands.json('balance', 'reverse', operation_id)).toMatchObject({ available: 0 });
    const [reversal] = await entries();
    expect(reversal).not.toHaveProperty('note');
    const book = async (amount: number) => {
      const bank = { against: 'clearing:sandbox', bank_reference: randomUUID() } as const;
      return (await adjust(amount, bank)).operation_id;
    };
    const moved = [await book(700), await book(-700)];
    const { data } = Object(await commands.json('statement', 'clear', ...moved));
    expect(data).toHaveLength(2);
    const { auditLog } = service.stores;
    const reversed = await auditLog.list({ account_id, limit: 1, act: 'balance.reversed' });
    const cleared = await auditLog.list({ limit: 1, act: 'statement.cleared' });
    expect(cleared).toMatchObject([{ after: { entries: expect.arrayContaining(moved) } }]);
    for (const line of [...reversed, ...cleared]) {
      expect(Object(line.after)).not.toHaveProperty('operator');
      expect(Object(line.after)).not.toHaveProperty('reason');
    }
  });

  // What such money does is in test/statements.
  test('platform post posts own money of a bank in its environment, once, and audits it', async () => {
    const mia = await asOperator(commands, 'mia', 'operator', BANK);
    const bank_reference = randomUUID();
    const money = ['--connector', 'acme', '--kind', 'fee_sweep', '--currency', 'EUR'];
    const post = (amount: string, reference = bank_reference) => [
      ...['platform', 'post', ...money, '--amount', amount, '--bank-reference', reference],
      ...['--reason', 'Fees'],
    ];
    const id = `sweep-${bank_reference}`;
    const once = [...post('-1250'), '--operation-id', id];
    const posted = {
      ...{ operation_id: `platform_posted:${id}`, connector: 'acme', env: 'live' },
      ...{ kind: 'fee_sweep', amount: -1_250, currency: 'EUR', bank_reference },
    };
    for (const _repeat of [1, 2]) expect(await mia.json(...once)).toEqual(posted);
    expect((await mia.refusal(...post('-1250'))).code).toBe('bank_reference_used');
    const bare = commandsIn({ ...commands.env, ...BANK });
    expect((await bare.refusal(...post('-1250'))).code).toBe('operator_key_required');
    const note = { operator: 'mia', reason: 'Fees' };
    const entry = await service.stores.ledger.findEntry(posted.operation_id);
    expect(entry).toMatchObject({ book: 'platform:live:EUR', note });
    const [line] = await service.stores.auditLog.list({ limit: 1, act: 'platform.posted' });
    expect(line).toMatchObject({ account_id: null, livemode: true, target: posted.operation_id });
    const much = Object(await mia.json(...post('-100001', randomUUID())));
    const approver = await asOperator(commands, 'bo', 'approver', BANK);
    const approve = ['approval', 'approve', much.approval_id, '--reason', 'Seen'];
    expect(await approver.json(...approve)).toMatchObject({ act: 'platform.post', state: 'done' });
  });
});

import fc from 'fast-check';
import { type Direction, OUTCOMES } from '../../../src/domain/banks/movement';
import { isBalanceAccountName } from '../../../src/domain/money/money';
import { sumByBook } from '../../../src/ledger/book';
import {
  bookId,
  bookOwner,
  buildBookRange,
  type EntryLine,
  isPending,
  type NewEntry,
  operationId,
} from '../../../src/ledger/entries';
import {
  assertBalanced,
  type Bearer,
  ENTRY_LINES,
  mergeLines,
} from '../../../src/ledger/entry-lines';
import {
  mustNotBeNegative,
  PLATFORM_ACCOUNTS,
  type PlatformKind,
} from '../../../src/ledger/ledger-accounts';

const amount = fc.integer({ min: 1, max: 99_999_999_999 });
const fee = fc.integer({ min: 0, max: 99_999_999_999 });
const name = fc.stringMatching(/^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/);

const units = fc.bigInt({ min: 1n, max: 10n ** 27n });

const money = fc.tuple(name, amount);
const withFee = fc.tuple(name, amount, fee);
const sending = fc.tuple(name, name, amount, fee);
const assets = fc.tuple(name, units);
const direction = fc.constantFrom<Direction>('in', 'out');
const bearer = fc.record({
  ...{ as: fc.constantFrom(...OUTCOMES), connector: name, balance: name, owed: fc.constant(0) },
});
const moved = fc.tuple(name, direction, amount);
const movedAssets = fc.tuple(name, direction, units);
const resolved = fc.tuple(direction, amount, bearer);
const resolvedAssets = fc.tuple(direction, units, bearer);
const resolvedWithFee = fc
  .tuple(resolved, fee)
  .map(([[direction, minor, { as, ...more }], most]): [Direction, number, Bearer] => {
    const borne = as === 'merchant' ? Math.min(minor, most) : 0;
    return [direction, minor, { as, ...more, fee: borne }];
  });
const match = fc.record({ clearing: amount, bank_fees: fee });
const unmatched = fc.record({ clearing: amount, bank_fees: fee, unmatched: fee });
const writtenOff = fc.tuple(name, units, fc.boolean());
const available = amount.map((each) => new Map([['2026-03-04', each]]));
const platform = fc.constantFrom(...(Object.keys(PLATFORM_ACCOUNTS) as PlatformKind[]));
const against = fc.constantFrom('adjustments', 'receivable');

const LINES = ENTRY_LINES;
type Lines = fc.Arbitrary<EntryLine[]>;
const build = <A extends unknown[]>(of: fc.Arbitrary<A>, kind: (...of: A) => EntryLine[]): Lines =>
  of.map((args) => kind(...args));

const EVERY_KIND = {
  funded: build(money, LINES.funded),
  adjusted: build(fc.tuple(name, amount, against), LINES.adjusted),
  reversed: build(money, LINES.funded).map(LINES.reversed),
  debt_collected: build(money, LINES.debt_collected),
  made_available: build(fc.tuple(name, available), LINES.made_available),
  platform_posted: build(fc.tuple(name, platform, amount), LINES.platform_posted),
  payment_settled: withFee.map(([bank, minor, most]) =>
    LINES.payment_settled(bank, minor, 0, Math.min(minor, most)),
  ),
  payment_held: build(moved, LINES.payment_held),
  payment_resolved: build(resolvedWithFee, LINES.payment_resolved),
  payment_clawed_back: build(withFee, LINES.payment_clawed_back),
  payment_dispute_opened: build(withFee, LINES.payment_dispute_opened),
  payment_dispute_won: build(money, LINES.payment_dispute_won),
  refund_accepted: amount.map(LINES.refund_accepted),
  refund_settled: fc
    .tuple(name, amount, amount)
    .map(([bank, accepted, sent]) =>
      LINES.refund_settled(bank, accepted, Math.min(accepted, sent)),
    ),
  refund_failed: amount.map(LINES.refund_failed),
  payout_reserved: build(withFee, LINES.payout_reserved),
  payout_captured: build(sending, LINES.payout_captured),
  payout_released: build(withFee, LINES.payout_released),
  payout_reversed: build(sending, LINES.payout_reversed),
  payout_returned: build(fc.tuple(name, name, amount), LINES.payout_returned),
  crypto_payment_held: build(assets, LINES.crypto_payment_held),
  crypto_payment_withdrawn: units.map(LINES.crypto_payment_withdrawn),
  crypto_payment_sent_back: build(assets, LINES.crypto_payment_sent_back),
  crypto_payment_written_off: build(writtenOff, LINES.crypto_payment_written_off),
  crypto_payment_credited: build(assets, LINES.crypto_payment_credited),
  crypto_payment_returned: build(assets, LINES.crypto_payment_returned),
  crypto_settlement_reserved: units.map(LINES.crypto_settlement_reserved),
  crypto_settlement_captured: build(assets, LINES.crypto_settlement_captured),
  crypto_settlement_released: units.map(LINES.crypto_settlement_released),
  crypto_settlement_fee: build(assets, LINES.crypto_settlement_fee),
  refund_held: build(moved, LINES.refund_held),
  payout_held: build(moved, LINES.payout_held),
  crypto_settlement_held: build(movedAssets, LINES.crypto_settlement_held),
  refund_resolved: build(resolved, LINES.refund_resolved),
  payout_resolved: build(resolved, LINES.payout_resolved),
  crypto_settlement_resolved: build(resolvedAssets, LINES.crypto_settlement_resolved),
  bank_opening: amount.map(LINES.bank_opening),
  bank_line: unmatched.map(LINES.bank_line),
  bank_line_abandoned: unmatched.map(LINES.bank_line_abandoned),
  bank_line_matched: match.map(LINES.bank_line_matched),
  bank_line_unmatched: match.map(LINES.bank_line_unmatched),
} satisfies Record<keyof typeof ENTRY_LINES, Lines>;

const bear = (as: Bearer['as'], owed = 0): Bearer => ({
  ...{ as, connector: 'bank', balance: 'ads', owed },
});

/** A bank, and what is available of a balance, by their names alone. */
const MEANINGS: [meaning: string, lines: EntryLine[]][] = [
  ['external.funding -5, ads 5', LINES.funded('ads', 5)],
  ['bank 5, platform.fees -5', LINES.platform_posted('bank', 'fee_sweep', -5)],
  ['bank -5, platform.interest 5', LINES.platform_posted('bank', 'interest', 5)],
  ['bank 5, platform.in_transit -5', LINES.platform_posted('bank', 'transfer', -5)],
  ['bank 5, platform.in_transit -5', LINES.platform_posted('bank', 'acquirer_payout', -5)],
  ['bank -5, due.main.2026-03-04 5', LINES.payment_settled('bank', 5, 0, 0, '2026-03-04')],
  [
    'due.ads.2026-03-03 -2, due.ads.2026-03-04 -3, ads 5',
    LINES.made_available('ads', new Map(Object.entries({ '2026-03-03': 2, '2026-03-04': 3 }))),
  ],
  ['bank -5, main 5', LINES.payment_settled('bank', 5)],
  ['bank -5, main 5', LINES.reversed(LINES.payment_dispute_opened('bank', 3, 2))],
  ['main -5, transit.refunds 5', LINES.refund_accepted(5)],
  ['transit.refunds -5, bank 5', LINES.refund_settled('bank', 5, 5)],
  ['transit.refunds -5, main 5', LINES.refund_failed(5)],
  ['bank -5, suspense.late 5', LINES.payment_held('bank', 'in', 5)],
  ['bank -5, suspense.late 5', LINES.refund_held('bank', 'in', 5)],
  ['bank -5, suspense.late 5', LINES.payout_held('bank', 'in', 5)],
  ['suspense.late -5, bank 5', LINES.payment_resolved('in', 5, bear('customer'))],
  ['suspense.late -5, bank 5', LINES.payment_resolved('in', 5, bear('bank'))],
  ['suspense.late -5, bank 5', LINES.payout_resolved('in', 5, bear('never_happened'))],
  ['suspense.late -5, external.adjustments 5', LINES.payment_resolved('in', 5, bear('loss'))],
  ['suspense.late -5, ads 5', LINES.payout_resolved('in', 5, bear('merchant'))],
  ['bank -5, suspense.deposits 5', LINES.crypto_payment_held('bank', 5n)],
  ['suspense.deposits -5, main 5', LINES.crypto_payment_credited('bank', 5n, true)],
  [
    'suspense.deposits -5, external.adjustments 5',
    LINES.crypto_payment_written_off('bank', 5n, false),
  ],
  ['external.adjustments -5, bank 5', LINES.crypto_payment_written_off('bank', 5n, true)],
  ['suspense.late -5, main 5', LINES.payment_settled('bank', 5, 5)],
  ['bank -5, income.acquirer_fees 2, main 3', LINES.payment_settled('bank', 5, 0, 2)],
  ['suspense.late -5, income.acquirer_fees 5, main 0', LINES.payment_settled('bank', 5, 5, 5)],
  [
    'suspense.late -5, income.acquirer_fees 2, ads 3',
    LINES.payment_resolved('in', 5, { ...bear('merchant'), fee: 2 }),
  ],
  ['bank 2, suspense.late -7, main 5', LINES.payment_settled('bank', 5, 7)],
  ['bank 5, main -3, receivable.merchant -2', LINES.payment_clawed_back('bank', 3, 2)],
  ['suspense.sent -5, bank 5', LINES.refund_held('bank', 'out', 5)],
  ['suspense.sent -5, bank 5', LINES.payout_held('bank', 'out', 5)],
  ['suspense.sent -5, bank 5', LINES.crypto_settlement_held('bank', 'out', 5n)],
  ['bank -5, suspense.sent 5', LINES.payout_resolved('out', 5, bear('bank'))],
  ['bank -5, suspense.sent 5', LINES.payout_resolved('out', 5, bear('never_happened'))],
  ['external.adjustments -5, suspense.sent 5', LINES.refund_resolved('out', 5, bear('loss'))],
  [
    'ads -3, receivable.merchant -2, suspense.sent 5',
    LINES.payout_resolved('out', 5, bear('merchant', 2)),
  ],
  ['ads -5, suspense.sent 5', LINES.crypto_settlement_resolved('out', 5n, bear('merchant'))],
  ['transit.refunds -5, suspense.sent 3, bank 1, main 1', LINES.refund_settled('bank', 5, 4, 3)],
  [
    'ads.reserved -7, suspense.sent 5, income.fees 2',
    LINES.payout_captured('ads', 'bank', 5, 2, 5),
  ],
  ['main.reserved -5, suspense.sent 2, bank 3', LINES.crypto_settlement_captured('bank', 5n, 2n)],
  ['bank -2, suspense.late -3, ads 5', LINES.payout_returned('ads', 'bank', 5, 3)],
  [
    'bank -4, suspense.late -1, income.fees -2, ads 7',
    LINES.payout_reversed('ads', 'bank', 5, 2, 1),
  ],
  ['transit.refunds -5, bank 3, main 2', LINES.refund_settled('bank', 5, 3)],
  ['main -5, bank 5', LINES.crypto_payment_returned('bank', 5n)],
  ['ads -5, receivable.merchant 5', LINES.debt_collected('ads', 5)],
  ['external.adjustments 5, ads -5', LINES.adjusted('ads', -5, 'adjustments')],
  ['receivable.merchant 5, ads -5', LINES.adjusted('ads', -5, 'receivable')],
  ['bank -2, main 2', LINES.reversed(LINES.payment_clawed_back('bank', 0, 2))],
  ['receivable.merchant -5, ads 5', LINES.reversed(LINES.adjusted('ads', -5, 'receivable'))],
  ['external.adjustments -5, ads 5', LINES.reversed(LINES.adjusted('ads', -5, 'adjustments', 3))],
  ['external.funding 5, ads -5', LINES.reversed(LINES.funded('ads', 5))],
  ['cash -5, external.opening 5', LINES.bank_opening(5)],
  ['cash -5, clearing 5', LINES.bank_line({ clearing: 5 })],
  ['cash 5, expense.bank_fees -5', LINES.bank_line({ bank_fees: -5 })],
  [
    'cash -995, clearing 1000, expense.bank_fees -5',
    LINES.bank_line({ clearing: 1_000, bank_fees: -5 }),
  ],
  ['cash 5, suspense.unmatched -5', LINES.bank_line({ unmatched: -5 })],
  ['cash 5, suspense.unmatched -5', LINES.bank_line_abandoned({ unmatched: 5 })],
  [
    'suspense.unmatched -5, clearing 7, expense.bank_fees -2',
    LINES.bank_line_matched({ clearing: 7, bank_fees: -2 }),
  ],
  [
    'suspense.unmatched 5, clearing -7, expense.bank_fees 2',
    LINES.bank_line_unmatched({ clearing: 7, bank_fees: -2 }),
  ],
  ['ads -7, ads.reserved 7', LINES.payout_reserved('ads', 5, 2)],
  ['ads.reserved -7, bank 5, income.fees 2', LINES.payout_captured('ads', 'bank', 5, 2)],
  ['ads.reserved -7, ads 7', LINES.payout_released('ads', 5, 2)],
  ['bank -5, income.fees -2, ads 7', LINES.payout_reversed('ads', 'bank', 5, 2)],
  ['bank -5, ads 5', LINES.funded('ads', 5, 'bank')],
  ['bank -5, ads 5', LINES.payout_returned('ads', 'bank', 5)],
  ['bank -5, ads 5', LINES.payout_reversed('ads', 'bank', 5, 0)],
  ['ads.reserved -5, bank 5', LINES.payout_captured('ads', 'bank', 5, 0)],
];

/** Kinds that take from no balance that others may take from. */
const PENDING_KINDS = [
  ...['payment_settled', 'payment_held', 'payment_dispute_won'],
  ...['refund_settled', 'refund_failed', 'refund_held', 'crypto_payment_held'],
  ...['payout_captured', 'payout_released', 'payout_reversed', 'payout_returned'],
  ...['payout_held', 'crypto_payment_credited'],
  ...['crypto_settlement_captured', 'crypto_settlement_released', 'crypto_settlement_fee'],
  'crypto_settlement_held',
];

function sumLines(lines: EntryLine[], of: string): number {
  return lines
    .filter(({ account }) => account === of)
    .reduce((sum, line) => sum + Number(line.amount), 0);
}

describe('the lines of a journal entry', () => {
  test.each(Object.entries(EVERY_KIND))(
    '%s sum to zero, whatever the amount, and are pending if their kind says so',
    (kind, lines) => {
      fc.assert(
        fc.property(lines, (each) => {
          expect(() => assertBalanced(each)).not.toThrow();
          expect(each.reduce((sum, line) => sum + BigInt(line.amount), 0n)).toBe(0n);
          expect(new Set(each.map(({ account }) => account)).size).toBe(each.length);
          expect(isPending({ kind, lines: each })).toBe(PENDING_KINDS.includes(kind));
        }),
      );
    },
  );

  test.each(MEANINGS)('say where money comes from and where it goes: %s', (meaning, lines) => {
    const name = (account: string) => account.replace(/^(?:balances|clearing)\.|\.available$/g, '');
    expect(lines.map((each) => `${name(each.account)} ${each.amount}`).join(', ')).toBe(meaning);
  });

  test('of a released deposit are applied at once', () => {
    const lines = LINES.crypto_payment_credited('chain', 5n, true);
    expect(isPending({ kind: 'crypto_payment_credited', lines })).toBe(false);
  });

  test('leave nothing reserved when a payout ends, and its fee is lost only when it is returned', () => {
    fc.assert(
      fc.property(amount, fee, name, name, (minor, cost, balance, bank) => {
        const reserved = LINES.payout_reserved(balance, minor, cost);
        const captured = [...reserved, ...LINES.payout_captured(balance, bank, minor, cost)];
        const ends = [
          captured,
          [...reserved, ...LINES.payout_released(balance, minor, cost)],
          [...captured, ...LINES.payout_reversed(balance, bank, minor, cost)],
          [...captured, ...LINES.payout_returned(balance, bank, minor)],
        ];
        const left = (part: string) =>
          ends.map((lines) => sumLines(lines, `balances.${balance}.${part}`));
        expect(left('reserved')).toEqual([0, 0, 0, 0]);
        expect(left('available')).toEqual([-minor - cost, 0, 0, 0 - cost]);
      }),
    );
  });

  test('leave nothing in transit when a refund settles or fails', () => {
    const left = (lines: EntryLine[]) => sumLines(lines, 'transit.refunds');
    fc.assert(
      fc.property(amount, name, (minor, connector) => {
        const accepted = LINES.refund_accepted(minor);
        expect(left([...accepted, ...LINES.refund_settled(connector, minor, minor)])).toBe(0);
        expect(left([...accepted, ...LINES.refund_failed(minor)])).toBe(0);
      }),
    );
  });
});

test.each(['balances.main.available', 'suspense.late', 'receivable.merchant'])(
  'an entry that takes from %s is not pending, whatever its kind',
  (account) => {
    const taken = { account, amount: -1 };
    const lines = [taken, { account: 'clearing.bank', amount: 1 }];
    for (const kind of PENDING_KINDS) expect(isPending({ kind, lines })).toBe(false);
  },
);

describe('the id of a book', () => {
  const owner = fc.record({
    account_id: name.map((text) => `acct_${text}`),
    livemode: fc.boolean(),
    currency: fc.constantFrom('EUR', 'JPY', 'KWD'),
  });

  test('names its owner, and is in the range of its account and environment alone', () => {
    fc.assert(
      fc.property(owner, owner, (one, other) => {
        const book = bookId(one);
        expect(bookOwner(book)).toEqual(one);
        const { $gte, $lt } = buildBookRange(other.account_id, other.livemode);
        const isOfOther = one.account_id === other.account_id && one.livemode === other.livemode;
        expect(book >= $gte && book < $lt).toBe(isOfOther);
      }),
    );
  });

  test('is no other text', () => {
    for (const text of ['', 'acct_1', 'acct_1:sandbox', 'acct_1:test:EUR', ':live:EUR']) {
      expect(() => bookOwner(text)).toThrow(RangeError);
    }
  });
});

describe('the name of a balance account', () => {
  const REACHING = ['', 'a.b', '.', '$inc', 'main.available', '__proto__', '-a', '_a', 'a b', 'é'];

  const NAMES = ['main', 'marketing', 'A-1_b', '0', 'x'.repeat(64), 'constructor'];
  const WRONG = [...REACHING, 'a\0', 'a\n', 'x'.repeat(65)];

  test('could reach into another field by no character that it may have', () => {
    expect([...NAMES, ...WRONG].filter(isBalanceAccountName)).toEqual(NAMES);
    for (const text of WRONG) {
      expect(() => LINES.funded(text, 1)).toThrow(RangeError);
      expect(() => LINES.payment_settled(text, 1)).toThrow(RangeError);
      expect(() => LINES.refund_settled(text, 1, 1)).toThrow(RangeError);
      expect(() => LINES.payout_reserved(text, 1, 0)).toThrow(RangeError);
      expect(() => LINES.payout_captured('main', text, 1, 0)).toThrow(RangeError);
      expect(() => LINES.payout_returned(text, 'bank', 1)).toThrow(RangeError);
    }
  });

  test('has no dot, dollar sign or NUL, which MongoDB reads as a path', () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        expect(isBalanceAccountName(text) && /[.$\0]/.test(text)).toBe(false);
      }),
    );
  });
});

describe('a journal entry', () => {
  const line = (minor: number): EntryLine => ({ account: `clearing.${minor}`, amount: minor });

  test.each([
    ['does not sum to zero', [line(5), line(-4)]],
    ['has no lines', []],
    ['has one line', [line(0)]],
    ['has decimals', [line(0.5), line(-0.5)]],
    ['has NaN', [line(Number.NaN), line(1)]],
    ['has more than a number holds', [line(2 ** 53), line(-(2 ** 53))]],
    ['is infinite', [line(Number.POSITIVE_INFINITY), line(Number.NEGATIVE_INFINITY)]],
  ])('is refused if it %s', (_what, lines) => {
    expect(() => assertBalanced(lines)).toThrow(RangeError);
  });

  test('may have any number of lines, and is named by its kind and resource', () => {
    expect(() => assertBalanced([line(-10), line(3), line(7)])).not.toThrow();
    const resource = { kind: 'funded', resource_id: 'fund_1' } as const;
    expect(operationId(resource)).toBe('funded:fund_1');
    expect(operationId({ ...resource, step: '1' })).toBe('funded:fund_1:1');
    const of = { ...resource, account_id: 'acct_1', currency: 'EUR', at: '' };
    expect(bookId({ ...of, livemode: true })).toBe('acct_1:live:EUR');
    expect(bookId({ ...of, livemode: false })).toBe('acct_1:sandbox:EUR');
  });
});

test('accounts with money of merchants or in transit never fall below 0, and others may', () => {
  const never = 'balances.main.available balances.a.reserved transit.refunds suspense.late'.split(
    ' ',
  );
  expect(never.filter(mustNotBeNegative)).toEqual(never);
  const may = [
    ...['clearing.sandbox', 'external.funding', 'income.fees', 'receivable.merchant'],
    ...['cash', 'clearing', 'suspense.unmatched', 'expense.bank_fees', 'suspense.sent'],
  ];
  expect(may.filter(mustNotBeNegative)).toEqual([]);
});

test('lines of one account become one with the exact sum, also of an asset', () => {
  const wei = 10n ** 21n;
  const main = (amount: bigint) => ({ account: 'main', amount });
  const owed = { account: 'owed', amount: -wei };
  expect(mergeLines([main(wei + 1n), owed, main(-wei)])).toEqual([main(1n), owed]);
  const numbers = [5, 7].map((amount) => ({ account: 'main', amount }));
  expect(mergeLines(numbers)).toEqual([{ account: 'main', amount: 12 }]);
});

test('lines of one statement that cancel out leave balances of 0, since they have entries', () => {
  const buildEntry = (resource_id: string, amount: number): NewEntry => ({
    ...{ kind: 'bank_line', resource_id, account_id: 'ba_1', livemode: false, currency: 'USD' },
    at: '2026-11-26T00:00:00.000Z',
    lines: [
      { account: 'cash', amount: -amount },
      { account: 'suspense.unmatched', amount },
    ],
  });
  const balances = ['cash', 'suspense.unmatched'].map((account) => ({ account, amount: 0n }));
  const sums = sumByBook([buildEntry('a', 500), buildEntry('b', -500)]);
  expect([...sums]).toEqual([['ba_1:sandbox:USD', balances]]);
});

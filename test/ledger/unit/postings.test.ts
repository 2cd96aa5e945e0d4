import fc from 'fast-check';
import { isBalanceAccountName } from '../../../src/domain/account/balance-account';
import {
  bookId,
  bookOwner,
  buildBookRange,
  type EntryLine,
  isPending,
  operationId,
} from '../../../src/ledger/entries';
import { assertBalanced, ENTRY_LINES, mustNotBeNegative } from '../../../src/ledger/entry-lines';

const amount = fc.integer({ min: 1, max: 99_999_999_999 });
const fee = fc.integer({ min: 0, max: 99_999_999_999 });
const name = fc.stringMatching(/^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/);

/** Smallest units of a coin. */
const units = fc.bigInt({ min: 1n, max: 10n ** 27n });

/** Each kind of posting with arguments that it takes. */
const EVERY_KIND = {
  funded: fc.tuple(name, amount).map((of) => ENTRY_LINES.funded(...of)),
  adjusted: fc
    .tuple(name, amount, fc.constantFrom('adjustments', 'receivable'))
    .map((of) => ENTRY_LINES.adjusted(...of)),
  reversed: fc.tuple(name, amount).map((of) => ENTRY_LINES.reversed(ENTRY_LINES.funded(...of))),
  debt_collected: fc.tuple(name, amount).map((of) => ENTRY_LINES.debt_collected(...of)),
  payment_settled: fc.tuple(name, amount).map((of) => ENTRY_LINES.payment_settled(...of)),
  payment_receipt_held: fc.tuple(name, amount).map((of) => ENTRY_LINES.payment_receipt_held(...of)),
  payment_receipt_returned: fc
    .tuple(name, amount)
    .map((of) => ENTRY_LINES.payment_receipt_returned(...of)),
  payment_late_received: fc
    .tuple(name, amount)
    .map((of) => ENTRY_LINES.payment_late_received(...of)),
  payment_late_reversed: fc
    .tuple(name, amount)
    .map((of) => ENTRY_LINES.payment_late_reversed(...of)),
  payment_clawed_back: fc
    .tuple(name, amount, fee)
    .map((of) => ENTRY_LINES.payment_clawed_back(...of)),
  payment_dispute_opened: fc
    .tuple(name, amount, fee)
    .map((of) => ENTRY_LINES.payment_dispute_opened(...of)),
  payment_dispute_won: fc.tuple(name, amount).map((of) => ENTRY_LINES.payment_dispute_won(...of)),
  refund_accepted: amount.map(ENTRY_LINES.refund_accepted),
  refund_sent_late: fc.tuple(name, amount, fee).map((of) => ENTRY_LINES.refund_sent_late(...of)),
  refund_sent_again: fc.tuple(name, amount).map((of) => ENTRY_LINES.refund_sent_again(...of)),
  payout_sent_again: fc.tuple(name, amount).map((of) => ENTRY_LINES.payout_sent_again(...of)),
  refund_settled: fc
    .tuple(name, amount, amount)
    .map(([bank, asked, sent]) => ENTRY_LINES.refund_settled(bank, asked, Math.min(asked, sent))),
  refund_failed: amount.map(ENTRY_LINES.refund_failed),
  payout_reserved: fc.tuple(name, amount, fee).map((of) => ENTRY_LINES.payout_reserved(...of)),
  payout_captured: fc
    .tuple(name, name, amount, fee)
    .map((of) => ENTRY_LINES.payout_captured(...of)),
  payout_released: fc.tuple(name, amount, fee).map((of) => ENTRY_LINES.payout_released(...of)),
  payout_reversed: fc
    .tuple(name, name, amount, fee)
    .map((of) => ENTRY_LINES.payout_reversed(...of)),
  payout_returned: fc.tuple(name, name, amount).map((of) => ENTRY_LINES.payout_returned(...of)),
  crypto_payment_held: fc.tuple(name, units).map((of) => ENTRY_LINES.crypto_payment_held(...of)),
  crypto_payment_withdrawn: units.map(ENTRY_LINES.crypto_payment_withdrawn),
  crypto_payment_sent_back: fc
    .tuple(name, units)
    .map((of) => ENTRY_LINES.crypto_payment_sent_back(...of)),
  crypto_payment_written_off: fc
    .tuple(name, units, fc.boolean())
    .map((of) => ENTRY_LINES.crypto_payment_written_off(...of)),
  crypto_payment_credited: fc
    .tuple(name, units)
    .map((of) => ENTRY_LINES.crypto_payment_credited(...of)),
  crypto_payment_returned: fc
    .tuple(name, units)
    .map((of) => ENTRY_LINES.crypto_payment_returned(...of)),
  crypto_settlement_reserved: units.map(ENTRY_LINES.crypto_settlement_reserved),
  crypto_settlement_captured: fc
    .tuple(name, units)
    .map((of) => ENTRY_LINES.crypto_settlement_captured(...of)),
  crypto_settlement_released: units.map(ENTRY_LINES.crypto_settlement_released),
  crypto_settlement_fee: fc
    .tuple(name, units)
    .map((of) => ENTRY_LINES.crypto_settlement_fee(...of)),
  bank_opening: amount.map(ENTRY_LINES.bank_opening),
  bank_line: fc
    .record({ clearing: amount, bank_fees: fee, unmatched: fee })
    .map(ENTRY_LINES.bank_line),
  bank_line_matched: fc
    .record({ clearing: amount, bank_fees: fee })
    .map(ENTRY_LINES.bank_line_matched),
  bank_line_unmatched: fc
    .record({ clearing: amount, bank_fees: fee })
    .map(ENTRY_LINES.bank_line_unmatched),
} satisfies Record<keyof typeof ENTRY_LINES, fc.Arbitrary<EntryLine[]>>;

function sumOf(legs: EntryLine[], of: string): number {
  return legs
    .filter(({ account }) => account === of)
    .reduce((sum, leg) => sum + Number(leg.amount), 0);
}

describe('the legs of every posting', () => {
  test.each(Object.entries(EVERY_KIND))('%s sum to zero, whatever the amount', (_kind, legs) => {
    fc.assert(
      fc.property(legs, (each) => {
        expect(() => assertBalanced(each)).not.toThrow();
        expect(each.reduce((sum, leg) => sum + BigInt(leg.amount), 0n)).toBe(0n);
        expect(new Set(each.map(({ account }) => account)).size).toBe(each.length);
      }),
    );
  });

  test('say where the money comes from and where it goes', () => {
    const moves = (legs: EntryLine[]) => legs.map(({ account, amount }) => `${account} ${amount}`);
    expect(moves(ENTRY_LINES.funded('ads', 5))).toEqual([
      'external.funding -5',
      'balances.ads.available 5',
    ]);
    expect(moves(ENTRY_LINES.payment_settled('sandbox', 5))).toEqual([
      'clearing.sandbox -5',
      'balances.main.available 5',
    ]);
    expect(moves(ENTRY_LINES.refund_accepted(5))).toEqual([
      'balances.main.available -5',
      'transit.refunds 5',
    ]);
    expect(moves(ENTRY_LINES.refund_settled('sandbox', 5, 5))).toEqual([
      'transit.refunds -5',
      'clearing.sandbox 5',
    ]);
    expect(moves(ENTRY_LINES.refund_failed(5))).toEqual([
      'transit.refunds -5',
      'balances.main.available 5',
    ]);
  });

  test('say what becomes of money that goes wrong', () => {
    const moves = (legs: EntryLine[]) => legs.map(({ account, amount }) => `${account} ${amount}`);
    expect(moves(ENTRY_LINES.payment_late_received('sandbox', 5))).toEqual([
      'clearing.sandbox -5',
      'suspense.late 5',
    ]);
    expect(moves(ENTRY_LINES.payment_late_reversed('sandbox', 5))).toEqual([
      'suspense.late -5',
      'clearing.sandbox 5',
    ]);
    expect(moves(ENTRY_LINES.payment_receipt_held('sandbox', 5))).toEqual([
      'clearing.sandbox -5',
      'suspense.late 5',
    ]);
    expect(moves(ENTRY_LINES.payment_receipt_returned('sandbox', 5))).toEqual([
      'suspense.late -5',
      'clearing.sandbox 5',
    ]);
    expect(moves(ENTRY_LINES.crypto_payment_held('chain', 5n))).toEqual([
      'clearing.chain -5',
      'suspense.deposits 5',
    ]);
    const released = ENTRY_LINES.crypto_payment_credited('chain', 5n, true);
    expect(moves(released)).toEqual(['suspense.deposits -5', 'balances.main.available 5']);
    expect(isPending({ kind: 'crypto_payment_credited', legs: released })).toBe(false);
    expect(moves(ENTRY_LINES.crypto_payment_written_off('chain', 5n, false))).toEqual([
      'suspense.deposits -5',
      'external.adjustments 5',
    ]);
    expect(moves(ENTRY_LINES.crypto_payment_written_off('chain', 5n, true))).toEqual([
      'external.adjustments -5',
      'clearing.chain 5',
    ]);
    expect(moves(ENTRY_LINES.payment_settled('sandbox', 5, 5))).toEqual([
      'suspense.late -5',
      'balances.main.available 5',
    ]);
    expect(moves(ENTRY_LINES.payment_settled('sandbox', 5, 7))).toEqual([
      'clearing.sandbox 2',
      'suspense.late -7',
      'balances.main.available 5',
    ]);
    expect(moves(ENTRY_LINES.payment_clawed_back('sandbox', 3, 2))).toEqual([
      'clearing.sandbox 5',
      'balances.main.available -3',
      'receivable.merchant -2',
    ]);
    expect(moves(ENTRY_LINES.refund_sent_late('sandbox', 3, 2))).toEqual([
      'clearing.sandbox 5',
      'balances.main.available -3',
      'receivable.merchant -2',
    ]);
    for (const kind of ['refund_sent_again', 'payout_sent_again'] as const) {
      expect(moves(ENTRY_LINES[kind]('sandbox', 5))).toEqual([
        'receivable.bank -5',
        'clearing.sandbox 5',
      ]);
    }
    expect(moves(ENTRY_LINES.refund_settled('sandbox', 5, 3))).toEqual([
      'transit.refunds -5',
      'clearing.sandbox 3',
      'balances.main.available 2',
    ]);
    expect(moves(ENTRY_LINES.adjusted('ads', -5, 'adjustments'))).toEqual([
      'external.adjustments 5',
      'balances.ads.available -5',
    ]);
    expect(moves(ENTRY_LINES.adjusted('ads', -5, 'receivable'))).toEqual([
      'receivable.merchant 5',
      'balances.ads.available -5',
    ]);
    expect(
      moves(ENTRY_LINES.reversed(ENTRY_LINES.payment_dispute_opened('sandbox', 3, 2))),
    ).toEqual(['clearing.sandbox -5', 'balances.main.available 5']);
    expect(moves(ENTRY_LINES.reversed(ENTRY_LINES.payment_clawed_back('sandbox', 0, 2)))).toEqual([
      'clearing.sandbox -2',
      'balances.main.available 2',
    ]);
    expect(moves(ENTRY_LINES.reversed(ENTRY_LINES.adjusted('ads', -5, 'receivable')))).toEqual([
      'receivable.merchant -5',
      'balances.ads.available 5',
    ]);
    expect(moves(ENTRY_LINES.reversed(ENTRY_LINES.funded('ads', 5)))).toEqual([
      'external.funding 5',
      'balances.ads.available -5',
    ]);
  });

  test('say what a line of a bank statement is, in the signs of the statement', () => {
    const moves = (legs: EntryLine[]) => legs.map(({ account, amount }) => `${account} ${amount}`);
    expect(moves(ENTRY_LINES.bank_opening(5))).toEqual(['cash -5', 'external.opening 5']);
    expect(moves(ENTRY_LINES.bank_line({ clearing: 5 }))).toEqual(['cash -5', 'clearing 5']);
    expect(moves(ENTRY_LINES.bank_line({ bank_fees: -5 }))).toEqual([
      'cash 5',
      'expense.bank_fees -5',
    ]);
    expect(moves(ENTRY_LINES.bank_line({ clearing: 1_000, bank_fees: -5 }))).toEqual([
      'cash -995',
      'clearing 1000',
      'expense.bank_fees -5',
    ]);
    expect(moves(ENTRY_LINES.bank_line({ unmatched: -5 }))).toEqual([
      'cash 5',
      'suspense.unmatched -5',
    ]);
    const match = { clearing: 7, bank_fees: -2 };
    expect(moves(ENTRY_LINES.bank_line_matched(match))).toEqual([
      'suspense.unmatched -5',
      'clearing 7',
      'expense.bank_fees -2',
    ]);
    expect(moves(ENTRY_LINES.bank_line_unmatched(match))).toEqual([
      'suspense.unmatched 5',
      'clearing -7',
      'expense.bank_fees 2',
    ]);
  });

  test('say the same of a payout, with its fee and without', () => {
    const moves = (legs: EntryLine[]) => legs.map(({ account, amount }) => `${account} ${amount}`);
    expect(moves(ENTRY_LINES.payout_reserved('ads', 5, 2))).toEqual([
      'balances.ads.available -7',
      'balances.ads.reserved 7',
    ]);
    expect(moves(ENTRY_LINES.payout_captured('ads', 'sandbox', 5, 2))).toEqual([
      'balances.ads.reserved -7',
      'clearing.sandbox 5',
      'income.fees 2',
    ]);
    expect(moves(ENTRY_LINES.payout_released('ads', 5, 2))).toEqual([
      'balances.ads.reserved -7',
      'balances.ads.available 7',
    ]);
    expect(moves(ENTRY_LINES.payout_reversed('ads', 'sandbox', 5, 2))).toEqual([
      'clearing.sandbox -5',
      'income.fees -2',
      'balances.ads.available 7',
    ]);
    expect(moves(ENTRY_LINES.payout_returned('ads', 'sandbox', 5))).toEqual([
      'clearing.sandbox -5',
      'balances.ads.available 5',
    ]);
    expect(moves(ENTRY_LINES.payout_captured('ads', 'sandbox', 5, 0))).toHaveLength(2);
    expect(moves(ENTRY_LINES.payout_reversed('ads', 'sandbox', 5, 0))).toHaveLength(2);
  });

  test('a payout that ends leaves nothing reserved; only one that came back costs its fee', () => {
    fc.assert(
      fc.property(amount, fee, name, name, (minor, cost, balance, bank) => {
        const reserved = ENTRY_LINES.payout_reserved(balance, minor, cost);
        const captured = [...reserved, ...ENTRY_LINES.payout_captured(balance, bank, minor, cost)];
        const ends = {
          sent: captured,
          failed: [...reserved, ...ENTRY_LINES.payout_released(balance, minor, cost)],
          failedAfterSent: [
            ...captured,
            ...ENTRY_LINES.payout_reversed(balance, bank, minor, cost),
          ],
          returned: [...captured, ...ENTRY_LINES.payout_returned(balance, bank, minor)],
        };
        const left = (legs: EntryLine[]) => ({
          reserved: sumOf(legs, `balances.${balance}.reserved`),
          available: sumOf(legs, `balances.${balance}.available`),
        });
        expect(left(ends.sent)).toEqual({ reserved: 0, available: -minor - cost });
        expect(left(ends.failed)).toEqual({ reserved: 0, available: 0 });
        expect(left(ends.failedAfterSent)).toEqual({ reserved: 0, available: 0 });
        expect(left(ends.returned)).toEqual({ reserved: 0, available: 0 - cost });
      }),
    );
  });

  test('a refund that fails, or settles, leaves nothing in transit', () => {
    const left = (legs: EntryLine[]) => sumOf(legs, 'transit.refunds');
    fc.assert(
      fc.property(amount, name, (minor, connector) => {
        const accepted = ENTRY_LINES.refund_accepted(minor);
        expect(left([...accepted, ...ENTRY_LINES.refund_settled(connector, minor, minor)])).toBe(0);
        expect(left([...accepted, ...ENTRY_LINES.refund_failed(minor)])).toBe(0);
      }),
    );
  });
});

describe('open postings', () => {
  const OPEN = [
    'payment_settled',
    'payment_late_received',
    'payment_receipt_held',
    'payment_dispute_won',
    'refund_settled',
    'refund_failed',
    'payout_captured',
    'payout_released',
    'payout_reversed',
    'payout_returned',
    'crypto_payment_held',
    'crypto_payment_credited',
    'crypto_settlement_captured',
    'crypto_settlement_released',
    'crypto_settlement_fee',
  ];

  test.each(Object.entries(EVERY_KIND))(
    '%s is open when it takes from no balance that others may take from',
    (kind, legs) => {
      fc.assert(
        fc.property(legs, (each) => {
          expect(isPending({ kind, legs: each })).toBe(OPEN.includes(kind));
        }),
      );
    },
  );

  test.each(['balances.main.available', 'suspense.late', 'receivable.merchant'])(
    'are none that take from %s, whatever their kind',
    (account) => {
      const legs = [
        { account, amount: -1 },
        { account: 'clearing.bank', amount: 1 },
      ];
      for (const kind of OPEN) expect(isPending({ kind, legs })).toBe(false);
    },
  );
});

describe('the id of a book', () => {
  const owner = fc.record({
    account_id: name.map((text) => `acct_${text}`),
    livemode: fc.boolean(),
    currency: fc.constantFrom('EUR', 'JPY', 'KWD'),
  });

  test('names its owner, and lies among the books of its account and environment alone', () => {
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

  test.each(['', 'acct_1', 'acct_1:sandbox', 'acct_1:test:EUR', ':live:EUR'])(
    '%j is none',
    (text) => {
      expect(() => bookOwner(text)).toThrow(RangeError);
    },
  );
});

describe('a name', () => {
  const REACHING = ['', 'a.b', '.', '$inc', 'main.available', '__proto__', '-a', '_a', 'a b', 'é'];

  test.each([...REACHING, 'a\0', 'a\n', 'x'.repeat(65)])(
    '%j is none, since it could reach into another field',
    (text) => {
      expect(isBalanceAccountName(text)).toBe(false);
      expect(() => ENTRY_LINES.funded(text, 1)).toThrow(RangeError);
      expect(() => ENTRY_LINES.payment_settled(text, 1)).toThrow(RangeError);
      expect(() => ENTRY_LINES.refund_settled(text, 1, 1)).toThrow(RangeError);
      expect(() => ENTRY_LINES.payout_reserved(text, 1, 0)).toThrow(RangeError);
      expect(() => ENTRY_LINES.payout_captured('main', text, 1, 0)).toThrow(RangeError);
      expect(() => ENTRY_LINES.payout_returned(text, 'bank', 1)).toThrow(RangeError);
    },
  );

  test.each(['main', 'marketing', 'A-1_b', '0', 'x'.repeat(64), 'constructor'])(
    '%j is one',
    (text) => {
      expect(isBalanceAccountName(text)).toBe(true);
    },
  );

  test('that is taken never has a character of a path', () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        expect(isBalanceAccountName(text) && /[.$\0]/.test(text)).toBe(false);
      }),
    );
  });
});

describe('a posting', () => {
  const leg = (minor: number): EntryLine => ({ account: `clearing.${minor}`, amount: minor });

  test.each([
    ['sums to something', [leg(5), leg(-4)]],
    ['has no legs', []],
    ['has one leg', [leg(0)]],
    ['has decimals', [leg(0.5), leg(-0.5)]],
    ['has no number', [leg(Number.NaN), leg(1)]],
    ['has more than a number holds', [leg(2 ** 53), leg(-(2 ** 53))]],
    ['is endless', [leg(Number.POSITIVE_INFINITY), leg(Number.NEGATIVE_INFINITY)]],
  ])('that %s is refused', (_what, legs) => {
    expect(() => assertBalanced(legs)).toThrow(RangeError);
  });

  test('may have any number of legs, and is named by its kind and resource', () => {
    expect(() => assertBalanced([leg(-10), leg(3), leg(7)])).not.toThrow();
    const resource = { kind: 'funded', resource_id: 'fund_1' } as const;
    expect(operationId(resource)).toBe('funded:fund_1');
    const of = { ...resource, account_id: 'acct_1', currency: 'EUR', at: '' };
    expect(bookId({ ...of, livemode: true })).toBe('acct_1:live:EUR');
    expect(bookId({ ...of, livemode: false })).toBe('acct_1:sandbox:EUR');
  });
});

test('the money of merchants and in transit never falls below 0; the rest may', () => {
  const never = [
    'balances.main.available',
    'balances.a.reserved',
    'transit.refunds',
    'suspense.late',
  ];
  expect(never.filter(mustNotBeNegative)).toEqual(never);
  const may = [
    ...['clearing.sandbox', 'external.funding', 'income.fees', 'receivable.merchant'],
    ...['cash', 'clearing', 'suspense.unmatched', 'expense.bank_fees'],
  ];
  expect(may.filter(mustNotBeNegative)).toEqual([]);
});

import { PAYMENT_METHOD_IDS } from '../../src/domain/payment/catalog';
import { PAYMENT_STATUSES, type PaymentStatus } from '../../src/domain/payment/payment';
import { type RefundablePayment, refundFault } from '../../src/domain/refund/rules';
import { REFUNDS } from '../support/promises';

const DAY_MS = 24 * 60 * 60 * 1_000;
const SETTLED_AT = '2026-03-01T12:34:56.789Z';

function buildSettled(changes: Partial<RefundablePayment> = {}): RefundablePayment {
  return {
    status: 'settled',
    method: 'ideal',
    currency: 'EUR',
    amount: 1_050,
    refunded: 0,
    settled_at: SETTLED_AT,
    ...changes,
  };
}

function judge(payment: RefundablePayment, amount: number | null, at: Date | string): string {
  return refundFault(payment, amount, new Date(at))?.code ?? 'allowed';
}
const soon = new Date(Date.parse(SETTLED_AT) + 1);

describe.each(PAYMENT_METHOD_IDS)('a payment by %s', (method) => {
  const { kind, withinDays } = REFUNDS[method];
  const payment = buildSettled({ method });
  const at = (days: number, ms: number) => new Date(Date.parse(SETTLED_AT) + days * DAY_MS + ms);
  const message = (time: Date) => refundFault(payment, null, time)?.message ?? '';

  if (kind === 'standard') {
    test.each([null, 1, 1_050])(
      `can be refunded by %p for ${withinDays} days, to the last millisecond`,
      (amount) => {
        for (const time of [at(0, 0), at(withinDays, -1), at(withinDays, 0)]) {
          expect(judge(payment, amount, time)).toBe('allowed');
        }
        for (const time of [at(withinDays, 1), at(withinDays + 1, 0), at(10 * withinDays, 0)]) {
          expect(judge(payment, amount, time)).toBe('refund_window_expired');
        }
        expect(message(at(withinDays, 1))).toContain(`for ${withinDays} days after`);
      },
    );
  } else {
    test('is never refunded, at any time, in any status and by any amount', () => {
      for (const time of [at(-1, 0), at(0, 0), at(0, 1), at(90, 0), at(365, 1)]) {
        for (const amount of [null, 1, 1_050, 1_051]) {
          for (const status of PAYMENT_STATUSES) {
            const each = buildSettled({ method, status });
            expect(judge(each, amount, time)).toBe('refund_not_supported');
          }
        }
      }
      // Only where payouts replace refunds does the message name them.
      expect(message(soon).includes('payout')).toBe(kind === 'payout_only');
    });
  }
});

test.each<[PaymentStatus, RegExp]>([
  ['created', /Cancel it instead\.$/],
  ['awaiting_customer', /Cancel it instead\.$/],
  ['authorized', /Wait until it settles\.$/],
  ['failed', /only a settled payment can be refunded\.$/],
  ['cancelled', /only a settled payment can be refunded\.$/],
  ['expired', /only a settled payment can be refunded\.$/],
])('a payment that is %s is not refunded, and the message says what to do', (status, advice) => {
  const payment = buildSettled({ status, settled_at: null });
  for (const amount of [null, 1, 5_000]) {
    const fault = refundFault(payment, amount, soon);
    expect(fault?.code).toBe('payment_not_settled');
    expect(fault?.message).toMatch(advice);
    expect(fault?.message).toContain(`The payment is ${status}`);
  }
});

test.each(['giropay', 'constructor'])(
  'a payment by %s, which is no method, is not refunded',
  (method) => {
    expect(judge(buildSettled({ method }), null, soon)).toBe('refund_not_supported');
  },
);

test.each([
  [0, 1_050, 'allowed'],
  [0, 1_051, 'refund_amount_exceeds_balance'],
  [1, 1_050, 'refund_amount_exceeds_balance'],
  [1_049, 1, 'allowed'],
  [1_049, null, 'allowed'],
  [1_050, null, 'refund_amount_exceeds_balance'],
])('of 1050, of which %s are refunded, a refund of %s is %s', (refunded, amount, code) => {
  expect(judge(buildSettled({ refunded }), amount, soon)).toBe(code);
});

test.each([
  ['EUR', 99_999_999_999, 99_999_998_949, '€10.50'],
  ['EUR', 1_050, 1_050, '€0.00'],
  ['JPY', 1_050, 50, '¥1,000'],
  ['JPY', 1_050, 1_050, '¥0'],
  ['KWD', 1_234, 0, 'KWD\u00a01.234'],
])('the message states what remains in the units of %s', (currency, amount, refunded, text) => {
  const payment = buildSettled({ method: 'visa', currency, amount, refunded });
  expect(refundFault(payment, 99_999_999_999 + 1, soon)).toEqual({
    code: 'refund_amount_exceeds_balance',
    message: `${text} of the payment can still be refunded.`,
  });
});

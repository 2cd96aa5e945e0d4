import { PAYMENT_METHOD_IDS } from '../../src/domain/payment/catalog';
import { PAYMENT_STATUSES, type PaymentStatus } from '../../src/domain/payment/payment';
import { type RefundablePayment, refundFault } from '../../src/domain/refund/refund';
import { REFUNDS } from '../support/promises';

const DAY_MS = 24 * 60 * 60 * 1_000;
const SETTLED_AT = '2026-03-01T12:34:56.789Z';

const buildSettled = (changes: Partial<RefundablePayment> = {}): RefundablePayment => ({
  ...{ status: 'settled', method: 'ideal', currency: 'EUR', amount: 1_050, refunded: 0 },
  ...{ settled_at: SETTLED_AT, ...changes },
});

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
    test(`can be refunded for ${withinDays} days, to the last millisecond`, () => {
      const [allowed, expired] = ['allowed', 'refund_window_expired'];
      const times = [at(0, 0), at(withinDays, -1), at(withinDays, 0)];
      const late = [at(withinDays, 1), at(withinDays + 1, 0), at(10 * withinDays, 0)];
      for (const amount of [null, 1, 1_050]) {
        const codes = [...times, ...late].map((time) => judge(payment, amount, time));
        expect(codes).toEqual([allowed, allowed, allowed, expired, expired, expired]);
      }
      expect(message(at(withinDays, 1))).toContain(`for ${withinDays} days after`);
    });
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

test.each([
  [{ disputed: 300 }, 750, 'allowed'],
  [{ disputed: 300 }, 751, 'refund_amount_exceeds_balance'],
  [{ disputed: 300, refunded: 750 }, 1, 'payment_disputed'],
  [{ disputed: 1_050 }, null, 'payment_disputed'],
  [{ refunded: 1_050 }, 1, 'refund_amount_exceeds_balance'],
])('of a payment of 1050 with %j, a refund of %p is %s', (taken, amount, code) => {
  expect(judge(buildSettled(taken), amount, soon)).toBe(code);
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

const EXCEEDS = 'refund_amount_exceeds_balance';

test.each([
  ['by another method', { method: 'giropay' }, null, 'refund_not_supported'],
  ['by an inherited name', { method: 'constructor' }, null, 'refund_not_supported'],
  ['in full', {}, 1_050, 'allowed'],
  ['of more', {}, 1_051, EXCEEDS],
  ['of more than the rest', { refunded: 1 }, 1_050, EXCEEDS],
  ['of the rest', { refunded: 1_049 }, 1, 'allowed'],
  ['of whatever is left', { refunded: 1_049 }, null, 'allowed'],
  ['of nothing', { refunded: 1_050 }, null, EXCEEDS],
])('a refund %s of a payment of 1050 with %j, here of %s, is %s', (_, payment, amount, code) => {
  expect(judge(buildSettled(payment), amount, soon)).toBe(code);
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

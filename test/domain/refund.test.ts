import fc from 'fast-check';
import { REFUND_CALLBACKS, type RefundCallbackName } from '../../src/domain/callback/callback';
import { PAYMENT_METHOD_IDS } from '../../src/domain/payment/catalog';
import { PAYMENT_STATUSES, type PaymentStatus } from '../../src/domain/payment/payment';
import {
  decideRefund,
  isFinalRefund,
  REFUND_EVENTS,
  REFUND_STATUSES,
  REFUND_TRANSITIONS,
  type RefundStatus,
  refundWorkflowId,
} from '../../src/domain/refund/refund';
import { type RefundablePayment, refundFault } from '../../src/domain/refund/rules';
import { REFUNDS } from '../support/promises';

const DAY_MS = 24 * 60 * 60 * 1_000;
const SETTLED_AT = '2026-03-01T12:34:56.789Z';

function settled(changes: Partial<RefundablePayment> = {}): RefundablePayment {
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

/** The code of the refusal; `allowed` when there is none. */
function judged(payment: RefundablePayment, amount: number | null, at: Date | string): string {
  return refundFault(payment, amount, new Date(at))?.code ?? 'allowed';
}
const soon = new Date(Date.parse(SETTLED_AT) + 1);

describe.each(PAYMENT_METHOD_IDS)('%s', (method) => {
  const { kind, withinDays } = REFUNDS[method];
  const payment = settled({ method });
  const at = (days: number, ms: number) => new Date(Date.parse(SETTLED_AT) + days * DAY_MS + ms);

  if (kind === 'standard') {
    test(`can be refunded for ${withinDays} days, to the last millisecond`, () => {
      for (const amount of [null, 1, 1_050]) {
        expect(judged(payment, amount, at(0, 0))).toBe('allowed');
        expect(judged(payment, amount, at(withinDays, -1))).toBe('allowed');
        expect(judged(payment, amount, at(withinDays, 0))).toBe('allowed');
        expect(judged(payment, amount, at(withinDays, 1))).toBe('refund_window_expired');
        expect(judged(payment, amount, at(withinDays + 1, 0))).toBe('refund_window_expired');
        expect(judged(payment, amount, at(10 * withinDays, 0))).toBe('refund_window_expired');
      }
    });

    test('says after how many days it is too late', () => {
      expect(refundFault(payment, null, at(withinDays, 1))?.message).toContain(
        `for ${withinDays} days after`,
      );
    });
  } else {
    test('is never refunded, whatever the time, the state or the amount', () => {
      for (const time of [at(-1, 0), at(0, 0), at(0, 1), at(90, 0), at(365, 1)]) {
        for (const amount of [null, 1, 1_050, 1_051]) {
          for (const status of PAYMENT_STATUSES) {
            const each = settled({ method, status });
            expect(judged(each, amount, time)).toBe('refund_not_supported');
          }
        }
      }
    });

    test('sends the merchant to payouts only where they are the way', () => {
      const message = refundFault(payment, null, soon)?.message ?? '';
      expect(message.includes('payout')).toBe(kind === 'payout_only');
    });
  }
});

test.each([
  ['ideal', '2026-01-01T23:59:59.999Z', '2027-01-01T23:59:59.999Z', '2027-01-02T00:00:00.000Z'],
  ['ideal', '2026-01-01T00:00:00.000Z', '2027-01-01T00:00:00.000Z', '2027-01-01T00:00:00.001Z'],
  ['ideal', '2028-02-29T23:59:59.999Z', '2029-02-28T23:59:59.999Z', '2029-03-01T00:00:00.000Z'],
  ['ideal', '2027-03-01T12:00:00.000Z', '2028-02-29T12:00:00.000Z', '2028-02-29T12:00:00.001Z'],
  ['visa', '2027-09-02T23:59:59.999Z', '2028-02-29T23:59:59.999Z', '2028-03-01T00:00:00.000Z'],
  ['visa', '2026-12-31T23:59:59.999Z', '2027-06-29T23:59:59.999Z', '2027-06-30T00:00:00.000Z'],
  [
    'przelewy24',
    '2027-12-01T08:00:00.000Z',
    '2028-02-29T08:00:00.000Z',
    '2028-02-29T08:00:00.001Z',
  ],
  [
    'przelewy24',
    '2026-02-28T23:59:59.999Z',
    '2026-05-29T23:59:59.999Z',
    '2026-05-30T00:00:00.000Z',
  ],
])('%s settled at %s: the last moment is %s, too late is %s', (method, settled_at, last, late) => {
  expect(Date.parse(late) - Date.parse(last)).toBe(1);
  const payment = settled({ method, settled_at });
  expect(judged(payment, null, last)).toBe('allowed');
  expect(judged(payment, null, late)).toBe('refund_window_expired');
});

/** Every status, and what a merchant is told to do about it. */
const BY_STATUS: Record<PaymentStatus, [code: string, advice: RegExp]> = {
  created: ['payment_not_settled', /Cancel it instead\.$/],
  awaiting_customer: ['payment_not_settled', /Cancel it instead\.$/],
  authorized: ['payment_not_settled', /Wait until it settles\.$/],
  settled: ['allowed', /^$/],
  failed: ['payment_not_settled', /only a settled payment can be refunded\.$/],
  cancelled: ['payment_not_settled', /only a settled payment can be refunded\.$/],
  expired: ['payment_not_settled', /only a settled payment can be refunded\.$/],
};

test.each(PAYMENT_STATUSES)('a payment that is %s', (status) => {
  const [code, advice] = BY_STATUS[status];
  const payment = settled({ status, settled_at: status === 'settled' ? SETTLED_AT : null });
  for (const amount of [null, 1, 5_000]) {
    const fault = refundFault(payment, amount, soon);
    if (code === 'allowed' && amount === 5_000) continue;
    expect(fault?.code ?? 'allowed').toBe(code);
    expect(fault?.message ?? '').toMatch(advice);
    if (fault !== undefined) expect(fault.message).toContain(`The payment is ${status}`);
  }
});

test('a method that has left the catalogue is not refunded', () => {
  expect(judged(settled({ method: 'giropay' }), null, soon)).toBe('refund_not_supported');
  expect(judged(settled({ method: 'constructor' }), null, soon)).toBe('refund_not_supported');
});

test.each([
  [0, 1_050, 'allowed'],
  [0, 1_051, 'refund_amount_exceeds_balance'],
  [0, 1, 'allowed'],
  [0, null, 'allowed'],
  [1, 1_050, 'refund_amount_exceeds_balance'],
  [1, 1_049, 'allowed'],
  [1_049, 1, 'allowed'],
  [1_049, 2, 'refund_amount_exceeds_balance'],
  [1_049, null, 'allowed'],
  [1_050, 1, 'refund_amount_exceeds_balance'],
  [1_050, null, 'refund_amount_exceeds_balance'],
])('of 10.50, %s refunded already, a refund of %s is %s', (refunded, amount, code) => {
  expect(judged(settled({ refunded }), amount, soon)).toBe(code);
});

test.each([
  ['EUR', 99_999_999_999, 99_999_998_949, '€10.50'],
  ['EUR', 1_050, 1_050, '€0.00'],
  ['JPY', 1_050, 50, '¥1,000'],
  ['JPY', 1_050, 1_050, '¥0'],
  ['KWD', 1_234, 0, 'KWD\u00a01.234'],
])('the message states what remains in the units of %s', (currency, amount, refunded, text) => {
  const payment = settled({ method: 'visa', currency, amount, refunded });
  const message = `${text} of the payment can still be refunded.`;
  expect(refundFault(payment, 99_999_999_999 + 1, soon)).toEqual({
    code: 'refund_amount_exceeds_balance',
    message,
  });
});

test('any refunds that are allowed one after another never exceed the payment', () => {
  const amounts = fc.array(fc.option(fc.integer({ min: 1, max: 2_000 })), { maxLength: 20 });
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 5_000 }), amounts, (amount, asked) => {
      let refunded = 0;
      for (const each of asked) {
        const payment = settled({ amount, refunded });
        if (judged(payment, each, soon) === 'allowed') refunded += each ?? amount - refunded;
        else if (each === null && refunded < amount) return false;
      }
      return refunded <= amount;
    }),
  );
});

/** Every status × every callback, written out once more. */
const DECIDED: Record<RefundStatus, Record<RefundCallbackName, string>> = {
  processing: { settled: 'move settled', failed: 'move failed' },
  settled: { settled: 'unapplied', failed: 'unapplied failed_after_settled' },
  failed: { settled: 'unapplied settled_after_failed', failed: 'unapplied' },
};

describe.each(REFUND_STATUSES)('a refund that is %s', (status) => {
  test.each(REFUND_CALLBACKS)('meets the callback %s', (callback) => {
    const decision = decideRefund(status, callback);
    const told =
      decision.kind === 'move'
        ? `move ${decision.to}`
        : ['unapplied', decision.attention].filter((word) => word !== undefined).join(' ');
    expect(told).toBe(DECIDED[status][callback]);
    if (decision.kind === 'unapplied') expect(decision.reason).not.toBe('');
    else expect(REFUND_TRANSITIONS[status]).toEqual(expect.arrayContaining([...decision.to]));
  });
});

test('settled and failed are final; each has the event of its name, processing has none', () => {
  expect(REFUND_STATUSES.filter(isFinalRefund)).toEqual(['settled', 'failed']);
  expect(REFUND_EVENTS).toEqual({
    processing: undefined,
    settled: 'refund.settled',
    failed: 'refund.failed',
  });
  expect(refundWorkflowId('some-id')).toBe('refund:some-id');
});

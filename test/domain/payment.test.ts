import fc from 'fast-check';
import { PAYMENT_CALLBACKS, type PaymentCallbackName } from '../../src/domain/callback/callback';
import {
  decidePayment,
  isCancellable,
  isFinal,
  PAYMENT_EVENTS,
  PAYMENT_STATUSES,
  PAYMENT_TRANSITIONS,
  type PaymentStatus,
} from '../../src/domain/payment/payment';

const UNDISPUTED = {
  dispute_opened: 'unapplied dispute_differs',
  dispute_won: 'unapplied dispute_differs',
  dispute_lost: 'unapplied dispute_differs',
};
const LATE = {
  authorized: 'void',
  settled: 'reverse',
  clawed_back: 'unapplied clawed_back',
  reversed: 'reversed',
  reversal_failed: 'not_reversed',
  ...UNDISPUTED,
};
const UNSETTLED = { clawed_back: 'unapplied clawed_back', ...UNDISPUTED };

/**
 * Every status × every callback, apart from the product's own table: `move` lists the statuses
 * passed, and others are `unapplied`.
 */
const EXPECTED: Record<PaymentStatus, Partial<Record<PaymentCallbackName, string>>> = {
  created: {
    authorized: 'move awaiting_customer,authorized',
    settled: 'move awaiting_customer,authorized,settled',
    failed: 'move failed',
    expired: 'move expired',
    ...UNSETTLED,
  },
  awaiting_customer: {
    authorized: 'move authorized',
    settled: 'move authorized,settled',
    failed: 'move failed',
    expired: 'move expired',
    ...UNSETTLED,
  },
  authorized: {
    settled: 'move settled',
    failed: 'move failed',
    expired: 'unapplied expired_after_authorized',
    ...UNSETTLED,
  },
  settled: {
    settled: 'settled_again',
    failed: 'dispute failed_after_settled',
    clawed_back: 'dispute clawed_back',
    reversed: 'reversed',
    dispute_opened: 'dispute_report',
    dispute_won: 'dispute_report',
    dispute_lost: 'dispute_report',
  },
  failed: LATE,
  cancelled: LATE,
  expired: LATE,
};

function decide(status: PaymentStatus, callback: PaymentCallbackName): string {
  const decision = decidePayment(status, callback);
  if (decision.kind === 'move') return `${decision.kind} ${decision.to.join(',')}`;
  if (decision.kind === 'dispute') return `dispute ${decision.attention}`;
  if (decision.kind !== 'unapplied') return decision.kind;
  return decision.attention === undefined ? 'unapplied' : `unapplied ${decision.attention}`;
}

describe.each(PAYMENT_STATUSES)('a payment that is %s', (status) => {
  test.each(PAYMENT_CALLBACKS)('decides about the callback %s as documented', (callback) => {
    expect(decide(status, callback)).toBe(EXPECTED[status][callback] ?? 'unapplied');
  });

  test('applies reversals to funds in suspense, and does not expire', () => {
    expect(decidePayment(status, 'reversed', true)).toEqual({ kind: 'reversed' });
    expect(decidePayment(status, 'reversal_failed', true)).toEqual({ kind: 'not_reversed' });
    expect(decidePayment(status, 'expired', true).kind).toBe('unapplied');
  });

  test('has the event of its name, unless it is only created', () => {
    expect(PAYMENT_EVENTS[status]).toBe(status === 'created' ? undefined : `payment.${status}`);
  });
});

test('a payment can be canceled before it is authorized, and is final in four statuses', () => {
  expect(PAYMENT_STATUSES.filter(isCancellable)).toEqual(['created', 'awaiting_customer']);
  expect(PAYMENT_STATUSES.filter(isFinal)).toEqual(['settled', 'failed', 'cancelled', 'expired']);
});

test('any callbacks in any order make only lawful transitions', () => {
  const callbacks = fc.array(fc.constantFrom(...PAYMENT_CALLBACKS), { maxLength: 12 });
  const start = fc.constantFrom<PaymentStatus>('created', 'awaiting_customer');
  fc.assert(
    fc.property(start, callbacks, (first, sequence) => {
      let status: PaymentStatus = first;
      for (const callback of sequence) {
        const decision = decidePayment(status, callback);
        if (decision.kind !== 'move') continue;
        for (const next of decision.to) {
          const lawful: readonly PaymentStatus[] = PAYMENT_TRANSITIONS[status];
          if (!lawful.includes(next)) return false;
          status = next;
        }
      }
      return true;
    }),
  );
});

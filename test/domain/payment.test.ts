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

const CHAIN = { awaiting_customer: 'awaiting_customer', authorized: 'authorized' };

const UNDISPUTED = {
  dispute_opened: 'unapplied dispute_differs',
  dispute_won: 'unapplied dispute_differs',
  dispute_lost: 'unapplied dispute_differs',
};
const LATE = {
  authorized: 'void',
  settled: 'reverse',
  failed: 'unapplied',
  expired: 'unapplied',
  reversed: 'reversed',
  reversal_failed: 'not_reversed',
  clawed_back: 'unapplied clawed_back',
  ...UNDISPUTED,
};
const UNSETTLED = {
  reversed: 'unapplied',
  reversal_failed: 'unapplied',
  clawed_back: 'unapplied clawed_back',
  ...UNDISPUTED,
};

/** Every status × every callback, written out once more: `move…` lists the states passed. */
const EXPECTED: Record<PaymentStatus, Record<PaymentCallbackName, string>> = {
  created: {
    authorized: `move ${CHAIN.awaiting_customer},${CHAIN.authorized}`,
    settled: `move ${CHAIN.awaiting_customer},${CHAIN.authorized},settled`,
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
    authorized: 'unapplied',
    settled: 'move settled',
    failed: 'move failed',
    expired: 'unapplied expired_after_authorized',
    ...UNSETTLED,
  },
  settled: {
    authorized: 'unapplied',
    settled: 'settled_again',
    failed: 'dispute failed_after_settled',
    expired: 'unapplied',
    reversed: 'unapplied',
    reversal_failed: 'unapplied',
    clawed_back: 'dispute clawed_back',
    dispute_opened: 'dispute_report',
    dispute_won: 'dispute_report',
    dispute_lost: 'dispute_report',
  },
  failed: LATE,
  cancelled: LATE,
  expired: LATE,
};

function told(status: PaymentStatus, callback: PaymentCallbackName): string {
  const decision = decidePayment(status, callback);
  if (decision.kind === 'move') return `move ${decision.to.join(',')}`;
  if (decision.kind === 'dispute') return `dispute ${decision.attention}`;
  if (decision.kind !== 'unapplied') return decision.kind;
  return decision.attention === undefined ? 'unapplied' : `unapplied ${decision.attention}`;
}

describe.each(PAYMENT_STATUSES)('a payment that is %s', (status) => {
  test.each(PAYMENT_CALLBACKS)('meets the callback %s', (callback) => {
    expect(told(status, callback)).toBe(EXPECTED[status][callback]);
  });
});

test('money in suspense is sent back in any state, and nothing expires over it', () => {
  for (const status of PAYMENT_STATUSES) {
    expect(decidePayment(status, 'reversed', true)).toEqual({ kind: 'reversed' });
    expect(decidePayment(status, 'reversal_failed', true)).toEqual({ kind: 'not_reversed' });
    expect(decidePayment(status, 'expired', true).kind).toBe('unapplied');
  }
});

test('cancellable are created and awaiting_customer only', () => {
  expect(PAYMENT_STATUSES.filter(isCancellable)).toEqual(['created', 'awaiting_customer']);
});

test('final are settled, failed, cancelled and expired', () => {
  expect(PAYMENT_STATUSES.filter(isFinal)).toEqual(['settled', 'failed', 'cancelled', 'expired']);
});

test('each state but created has the event of its name', () => {
  for (const status of PAYMENT_STATUSES) {
    expect(PAYMENT_EVENTS[status]).toBe(status === 'created' ? undefined : `payment.${status}`);
  }
});

test('any sequence of callbacks makes only lawful moves, ends at most once, never leaves an end', () => {
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

test('a void or a reversal happens only where no money is owed to the merchant', () => {
  for (const status of PAYMENT_STATUSES) {
    for (const callback of PAYMENT_CALLBACKS) {
      const { kind } = decidePayment(status, callback);
      if (kind === 'void' || kind === 'reverse') {
        expect(['failed', 'cancelled', 'expired']).toContain(status);
      }
    }
  }
});

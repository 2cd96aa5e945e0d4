import { assertLawful, assertNever } from '../../src/domain/assert';
import {
  PAYMENT_CALLBACKS,
  PAYOUT_CALLBACKS,
  type PaymentCallbackName,
  type PayoutCallbackName,
  REFUND_CALLBACKS,
  type RefundCallbackName,
} from '../../src/domain/banks/callback';
import {
  CRYPTO_SETTLEMENT_CALLBACKS,
  type CryptoSettlementCallbackName,
} from '../../src/domain/crypto/callback';
import {
  CRYPTO_SETTLEMENT_STATUSES,
  CRYPTO_SETTLEMENT_TRANSITIONS,
  type CryptoSettlementStatus,
  decideSettlement,
  isSettlementEnded,
  settlementPathTo,
} from '../../src/domain/crypto/settlement';
import {
  decidePayment,
  isCancellable,
  isFinal,
  PAYMENT_EVENTS,
  PAYMENT_STATUSES,
  PAYMENT_TRANSITIONS,
  type PaymentStatus,
} from '../../src/domain/payment/payment';
import {
  decidePayout,
  isEnded,
  OVERDUE_ATTENTION,
  PAYOUT_EVENTS,
  PAYOUT_STATUSES,
  PAYOUT_TRANSITIONS,
  type PayoutStatus,
  pathTo,
  payoutWorkflowId,
  type Returnable,
} from '../../src/domain/payout/payout';
import {
  decideRefund,
  isFinalRefund,
  REFUND_EVENTS,
  REFUND_STATUSES,
  REFUND_TRANSITIONS,
  type RefundStatus,
  refundWorkflowId,
} from '../../src/domain/refund/refund';

/** Status × callback, apart from the product's own tables: of a transition, the path. */
type Expected<Status extends string, Name extends string> = Record<
  Status,
  Partial<Record<Name, string>>
>;

const DISPUTES = ['opened', 'updated', 'withdrawn', 'reinstated', 'won', 'lost'] as const;
/** Decides alike about each report of a dispute. */
const ofDisputes = (decision: string) =>
  Object.fromEntries(DISPUTES.map((report) => [`dispute_${report}`, decision]));
const UNSETTLED = {
  ...{ clawed_back: 'unapplied clawed_back', ...ofDisputes('unapplied dispute_differs') },
};
const LATE = {
  ...{ authorized: 'void', settled: 'reverse', reversed: 'reversed' },
  ...{ reversal_failed: 'not_reversed', ...UNSETTLED },
};
const UNPAID = { authorized: 'authorized', settled: 'authorized settled' };
const PAYMENTS: Expected<PaymentStatus, PaymentCallbackName> = {
  created: {
    authorized: 'awaiting_customer authorized',
    settled: 'awaiting_customer authorized settled',
    ...{ failed: 'failed', expired: 'expired', ...UNSETTLED },
  },
  awaiting_customer: { ...UNPAID, failed: 'failed', expired: 'expired', ...UNSETTLED },
  authorized: {
    ...{ settled: 'settled', failed: 'failed', expired: 'unapplied expired_after_authorized' },
    ...UNSETTLED,
  },
  settled: {
    ...{ settled: 'settled_again', failed: 'dispute failed_after_settled', reversed: 'reversed' },
    ...{ clawed_back: 'dispute clawed_back', ...ofDisputes('dispute_report') },
  },
  failed: LATE,
  cancelled: LATE,
  expired: LATE,
};

const REFUNDS: Expected<RefundStatus, RefundCallbackName> = {
  processing: { settled: 'settled', failed: 'failed' },
  settled: { failed: 'unapplied failed_after_settled' },
  failed: { settled: 'unapplied settled_after_failed' },
};

const CORRECTED = {
  debit_reversed: 'unapplied debit_reversed',
  return_reversed: 'unapplied return_reversed',
};
const UNSENT = { failed: 'failed', called_duplicate: 'unapplied called_duplicate', ...CORRECTED };
const [FAILED, RETURNED] = ['unapplied moved_after_failed', 'unapplied moved_after_returned'];
const PAYOUTS: Expected<PayoutStatus, PayoutCallbackName> = {
  created: {
    ...{ submitted: 'submitted', sent: 'submitted sent', completed: 'submitted sent completed' },
    ...{ returned: 'submitted sent returned', ...UNSENT },
  },
  submitted: { sent: 'sent', completed: 'sent completed', returned: 'sent returned', ...UNSENT },
  sent: { completed: 'completed', failed: 'failed', returned: 'returned', ...CORRECTED },
  completed: { failed: 'unapplied failed_after_completed', returned: 'returned', ...CORRECTED },
  failed: { sent: FAILED, completed: FAILED, returned: FAILED, ...CORRECTED },
  returned: {
    ...{ completed: RETURNED, failed: RETURNED, returned: 'unapplied second_return' },
    ...CORRECTED,
  },
};

const SETTLEMENTS: Expected<CryptoSettlementStatus, CryptoSettlementCallbackName> = {
  pending: { sent: 'sent', completed: 'sent completed', failed: 'failed' },
  sent: { completed: 'completed', failed: 'failed' },
  completed: { failed: 'unapplied failed_after_completed' },
  failed: { sent: FAILED, completed: FAILED },
};

const SENT_AT = '2026-03-01T12:00:00.000Z';
const COMPLETED_AT = '2026-03-02T12:00:00.000Z';
const SOON = Date.parse('2026-03-03T12:00:00.000Z');

function buildReturnable(status: PayoutStatus, can_be_returned = true): Returnable {
  const wasSent = status === 'sent' || status === 'completed' || status === 'returned';
  const completed_at = status === 'completed' ? COMPLETED_AT : null;
  return { can_be_returned, sent_at: wasSent ? SENT_AT : null, completed_at };
}

const decideAt = (status: PayoutStatus, name: PayoutCallbackName, ms = SOON, returns = true) =>
  decidePayout(status, name, buildReturnable(status, returns), ms);

interface AnyDecision {
  kind: string;
  to?: readonly string[];
  attention?: string;
  reason?: string;
}

/** Says the path of a transition, or else the kind of a decision and its attention reason. */
function formatDecision({ kind, to = [], attention, reason }: AnyDecision): string {
  expect(reason).not.toBe('');
  expect(to.length > 0).toBe(kind === 'move');
  const words = kind === 'move' ? [...to, attention] : [kind, attention];
  return words.filter((word) => word !== undefined).join(' ');
}

/** Each decision: what is expected, what is made, and the statuses that may follow one another. */
function listDecisions<Status extends string, Name extends string>(
  resource: string,
  names: readonly Name[],
  expected: Expected<Status, Name>,
  transitions: Record<Status, readonly Status[]>,
  decide: (status: Status, name: Name) => AnyDecision & { to?: readonly Status[] },
) {
  const statuses: Status[] = Object(Object.keys(transitions));
  return statuses.flatMap((status) =>
    names.map((name) => {
      const check = () => {
        const decision = decide(status, name);
        if (decision.to !== undefined) assertLawful(transitions, status, decision.to);
        return formatDecision(decision);
      };
      return [resource, status, name, expected[status][name] ?? 'unapplied', check] as const;
    }),
  );
}

test.each([
  ...listDecisions('payment', PAYMENT_CALLBACKS, PAYMENTS, PAYMENT_TRANSITIONS, decidePayment),
  ...listDecisions('refund', REFUND_CALLBACKS, REFUNDS, REFUND_TRANSITIONS, decideRefund),
  ...listDecisions('payout', PAYOUT_CALLBACKS, PAYOUTS, PAYOUT_TRANSITIONS, decideAt),
  ...listDecisions(
    'crypto settlement',
    CRYPTO_SETTLEMENT_CALLBACKS,
    SETTLEMENTS,
    CRYPTO_SETTLEMENT_TRANSITIONS,
    decideSettlement,
  ),
])('a %s that is %s decides about the callback %s as documented: %s', (...row) => {
  const [, , , expected, check] = row;
  expect(check()).toBe(expected);
});

test.each(PAYMENT_STATUSES)(
  'a payment that is %s with funds in suspense does not expire',
  (status) => {
    expect(decidePayment(status, 'reversed', true)).toEqual({ kind: 'reversed' });
    expect(decidePayment(status, 'reversal_failed', true)).toEqual({ kind: 'not_reversed' });
    expect(decidePayment(status, 'expired', true).kind).toBe('unapplied');
  },
);

test.each(PAYOUT_STATUSES)(
  'a payout that is %s on a rail without returns does not return',
  (status) => {
    for (const name of PAYOUT_CALLBACKS) {
      const usual = PAYOUTS[status][name] ?? 'unapplied';
      const isReturn = name === 'returned' && usual.endsWith(name);
      const decision = formatDecision(decideAt(status, name, SOON, false));
      expect(decision).toBe(isReturn ? 'unapplied return_not_possible' : usual);
    }
    for (const to of ['submitted', 'sent', 'completed', 'returned'] as const) {
      const usual = PAYOUTS[status][to] ?? 'unapplied';
      expect(pathTo(status, to)).toEqual(usual.startsWith('unapplied') ? [] : usual.split(' '));
    }
  },
);

test.each([
  ['completed', '2026-05-01T12:00:00.000Z'],
  ['sent', '2026-04-30T12:00:00.000Z'],
] as const)('a payout that is %s can be returned for 60 days, until %s', (status, last) => {
  expect(decideAt(status, 'returned', Date.parse(last))).toEqual({
    kind: 'move',
    to: ['returned'],
  });
  expect(decideAt(status, 'returned', Date.parse(last) + 1)).toEqual({
    kind: 'unapplied',
    reason: 'a payout comes back within 60 days',
    attention: 'return_too_late',
  });
});

test('a resource is final in some statuses, and each of the others has its attention reason', () => {
  expect(PAYMENT_STATUSES.filter(isCancellable)).toEqual(['created', 'awaiting_customer']);
  expect(PAYMENT_STATUSES.filter(isFinal)).toEqual(['settled', 'failed', 'cancelled', 'expired']);
  expect(REFUND_STATUSES.filter(isFinalRefund)).toEqual(['settled', 'failed']);
  const ended = PAYOUT_STATUSES.filter(isEnded);
  expect(ended).toEqual(['completed', 'failed', 'returned']);
  expect(ended.filter((status) => PAYOUT_TRANSITIONS[status].length > 0)).toEqual(['completed']);
  const waiting = PAYOUT_STATUSES.filter((status) => !isEnded(status));
  expect(Object.keys(OVERDUE_ATTENTION)).toEqual(waiting);
  expect(CRYPTO_SETTLEMENT_STATUSES.filter(isSettlementEnded)).toEqual(['completed', 'failed']);
});

test('each status has the event of its name, unless it is the first', () => {
  const name = (resource: string, [, ...later]: readonly string[]) =>
    Object.fromEntries(later.map((status) => [status, `${resource}.${status}`]));
  expect({ ...PAYMENT_EVENTS }).toEqual(name('payment', PAYMENT_STATUSES));
  expect({ ...REFUND_EVENTS }).toEqual(name('refund', REFUND_STATUSES));
  expect({ ...PAYOUT_EVENTS }).toEqual(name('payout', PAYOUT_STATUSES));
  const ids = [refundWorkflowId('some-id'), payoutWorkflowId('some-id')];
  expect(ids).toEqual(['refund:some-id', 'payout:some-id']);
});

test('a crypto settlement passes sent when its completion overtakes the broadcast', () => {
  expect(settlementPathTo('pending', 'completed')).toEqual(['sent', 'completed']);
  expect(settlementPathTo('failed', 'completed')).toEqual([]);
});

test.each([
  ['leaves out a step', () => assertLawful(PAYMENT_TRANSITIONS, 'awaiting_customer', ['settled'])],
  ['leaves a final status', () => assertLawful(REFUND_TRANSITIONS, 'failed', ['settled'])],
  ['goes back', () => assertLawful(PAYOUT_TRANSITIONS, 'sent', ['completed', 'sent'])],
])('a transition that %s is refused', (_, check) => {
  expect(check).toThrow(RangeError);
});

test('a case that no switch has is refused by name', () => {
  const unknown = JSON.parse('{"kind":"news"}') as never;
  expect(() => assertNever(unknown)).toThrow('{"kind":"news"}');
});

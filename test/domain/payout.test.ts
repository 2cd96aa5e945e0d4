import fc from 'fast-check';
import { PAYOUT_CALLBACKS, type PayoutCallbackName } from '../../src/domain/callback/callback';
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

const SENT_AT = '2026-03-01T12:00:00.000Z';
const COMPLETED_AT = '2026-03-02T12:00:00.000Z';
const SOON = Date.parse('2026-03-03T12:00:00.000Z');

/** Facts of a payout in this state. */
function buildReturnable(status: PayoutStatus, can_be_returned = true): Returnable {
  const wasSent = status === 'sent' || status === 'completed' || status === 'returned';
  const completed_at = status === 'completed' ? COMPLETED_AT : null;
  return { can_be_returned, sent_at: wasSent ? SENT_AT : null, completed_at };
}

function decide(status: PayoutStatus, callback: PayoutCallbackName, can_be_returned = true) {
  const decision = decidePayout(status, callback, buildReturnable(status, can_be_returned), SOON);
  if (decision.kind === 'move') return `${decision.kind} ${decision.to.join(' ')}`;
  expect(decision.reason).not.toBe('');
  return ['unapplied', decision.attention].filter((word) => word !== undefined).join(' ');
}

/** Every status × every callback, apart from the product's own table; others are `unapplied`. */
const DECIDED: Record<PayoutStatus, Partial<Record<PayoutCallbackName, string>>> = {
  created: {
    submitted: 'move submitted',
    sent: 'move submitted sent',
    completed: 'move submitted sent completed',
    failed: 'move failed',
    returned: 'move submitted sent returned',
    called_duplicate: 'unapplied called_duplicate',
  },
  submitted: {
    sent: 'move sent',
    completed: 'move sent completed',
    failed: 'move failed',
    returned: 'move sent returned',
    called_duplicate: 'unapplied called_duplicate',
  },
  sent: { completed: 'move completed', failed: 'move failed', returned: 'move returned' },
  completed: { failed: 'unapplied failed_after_completed', returned: 'move returned' },
  failed: {
    sent: 'unapplied moved_after_failed',
    completed: 'unapplied moved_after_failed',
    returned: 'unapplied moved_after_failed',
  },
  returned: {
    completed: 'unapplied moved_after_returned',
    failed: 'unapplied moved_after_returned',
    returned: 'unapplied second_return',
  },
};

/** Decisions whatever the status. */
const CORRECTIONS: Partial<Record<PayoutCallbackName, string>> = {
  debit_reversed: 'unapplied debit_reversed',
  return_reversed: 'unapplied return_reversed',
};

describe.each(PAYOUT_STATUSES)('a payout that is %s', (status) => {
  test.each(PAYOUT_CALLBACKS)('decides about the callback %s as documented', (callback) => {
    const usual = DECIDED[status][callback] ?? CORRECTIONS[callback] ?? 'unapplied';
    expect(decide(status, callback)).toBe(usual);
    const isReturn = callback === 'returned' && usual.startsWith('move');
    // On a rail where nothing comes back, only a return is decided differently.
    expect(decide(status, callback, false)).toBe(
      isReturn ? 'unapplied return_not_possible' : usual,
    );
  });

  test.each(['submitted', 'sent', 'completed', 'returned'] as const)('has a path to %s', (to) => {
    const usual = DECIDED[status][to] ?? 'unapplied';
    const path = usual.startsWith('move') ? usual.split(' ').slice(1) : [];
    expect(pathTo(status, to)).toEqual(path);
  });
});

test.each([
  ['completed', '2026-05-01T12:00:00.000Z'],
  ['sent', '2026-04-30T12:00:00.000Z'],
] as const)(
  'a payout that is %s can be returned for 60 days, to the millisecond',
  (status, last) => {
    const at = (ms: number) => decidePayout(status, 'returned', buildReturnable(status), ms);
    expect(at(Date.parse(last))).toEqual({ kind: 'move', to: ['returned'] });
    expect(at(Date.parse(last) + 1)).toEqual({
      kind: 'unapplied',
      reason: 'a payout comes back within 60 days',
      attention: 'return_too_late',
    });
  },
);

test('any callbacks, at any time, make only lawful transitions, each at most once', () => {
  const callback = fc.constantFrom(...PAYOUT_CALLBACKS);
  const reports = fc.array(fc.record({ callback, days: fc.nat(40) }), { maxLength: 30 });
  fc.assert(
    fc.property(reports, fc.boolean(), (all, can_be_returned) => {
      let status: PayoutStatus = 'created';
      let at = Date.parse(SENT_AT);
      const facts: Returnable = { can_be_returned, sent_at: null, completed_at: null };
      const passed: PayoutStatus[] = [status];
      for (const { callback, days } of all) {
        at += days * 86_400_000;
        const decision = decidePayout(status, callback, facts, at);
        if (decision.kind === 'unapplied') continue;
        for (const to of decision.to) {
          const lawful: readonly PayoutStatus[] = PAYOUT_TRANSITIONS[status];
          if (!lawful.includes(to)) return false;
          if (to === 'returned' && !can_be_returned) return false;
          if (to === 'sent') facts.sent_at = new Date(at).toISOString();
          if (to === 'completed') facts.completed_at = new Date(at).toISOString();
          status = to;
          passed.push(to);
        }
      }
      return new Set(passed).size === passed.length;
    }),
  );
});

test('a payout ends completed, failed or returned, and only a completed one can change again', () => {
  const ended = PAYOUT_STATUSES.filter(isEnded);
  expect(ended).toEqual(['completed', 'failed', 'returned']);
  expect(ended.filter((status) => PAYOUT_TRANSITIONS[status].length > 0)).toEqual(['completed']);
});

test('each status but created has its event, and each that is not final its attention reason', () => {
  for (const status of PAYOUT_STATUSES) {
    expect(PAYOUT_EVENTS[status]).toBe(status === 'created' ? undefined : `payout.${status}`);
  }
  const waiting = PAYOUT_STATUSES.filter((status) => !isEnded(status));
  expect(Object.keys(OVERDUE_ATTENTION)).toEqual(waiting);
  expect(payoutWorkflowId('some-id')).toBe('payout:some-id');
});

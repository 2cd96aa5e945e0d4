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

/** As a payout in this state is remembered. */
function returnable(status: PayoutStatus, can_be_returned = true): Returnable {
  const wasSent = status === 'sent' || status === 'completed' || status === 'returned';
  const completed_at = status === 'completed' ? COMPLETED_AT : null;
  return { can_be_returned, sent_at: wasSent ? SENT_AT : null, completed_at };
}

function decided(
  status: PayoutStatus,
  callback: PayoutCallbackName,
  can_be_returned = true,
): string {
  const decision = decidePayout(status, callback, returnable(status, can_be_returned), SOON);
  if (decision.kind === 'move') return `move ${decision.to.join(' ')}`;
  expect(decision.reason).not.toBe('');
  return ['unapplied', decision.attention].filter((word) => word !== undefined).join(' ');
}

/** Every status × every callback, written out once more. */
const DECIDED: Record<PayoutStatus, Record<PayoutCallbackName, string>> = {
  created: {
    submitted: 'move submitted',
    sent: 'move submitted sent',
    completed: 'move submitted sent completed',
    failed: 'move failed',
    returned: 'move submitted sent returned',
  },
  submitted: {
    submitted: 'unapplied',
    sent: 'move sent',
    completed: 'move sent completed',
    failed: 'move failed',
    returned: 'move sent returned',
  },
  sent: {
    submitted: 'unapplied',
    sent: 'unapplied',
    completed: 'move completed',
    failed: 'move failed',
    returned: 'move returned',
  },
  completed: {
    submitted: 'unapplied',
    sent: 'unapplied',
    completed: 'unapplied',
    failed: 'unapplied failed_after_completed',
    returned: 'move returned',
  },
  failed: {
    submitted: 'unapplied',
    sent: 'unapplied moved_after_failed',
    completed: 'unapplied moved_after_failed',
    failed: 'unapplied',
    returned: 'unapplied moved_after_failed',
  },
  returned: {
    submitted: 'unapplied',
    sent: 'unapplied',
    completed: 'unapplied moved_after_returned',
    failed: 'unapplied moved_after_returned',
    returned: 'unapplied second_return',
  },
};

describe.each(PAYOUT_STATUSES)('a payout that is %s', (status) => {
  test.each(PAYOUT_CALLBACKS)('meets the callback %s', (callback) => {
    expect(decided(status, callback)).toBe(DECIDED[status][callback]);
  });

  test('on a rail where nothing comes back, a return moves nothing; all else is the same', () => {
    for (const callback of PAYOUT_CALLBACKS) {
      const usual = DECIDED[status][callback];
      const moves = callback === 'returned' && usual.startsWith('move');
      const expected = moves ? 'unapplied return_not_possible' : usual;
      expect(decided(status, callback, false)).toBe(expected);
    }
  });

  test.each(['submitted', 'sent', 'completed', 'returned'] as const)('the way to %s', (to) => {
    const usual = DECIDED[status][to];
    const way = usual.startsWith('move') ? usual.split(' ').slice(1) : [];
    expect(pathTo(status, to)).toEqual(way);
  });
});

test.each([
  ['completed', COMPLETED_AT, '2026-05-01T12:00:00.000Z'],
  ['sent', SENT_AT, '2026-04-30T12:00:00.000Z'],
] as const)(
  '%s: it comes back for 60 days, the last millisecond included',
  (status, _since, last) => {
    const at = (ms: number) => decidePayout(status, 'returned', returnable(status), ms);
    expect(at(Date.parse(last))).toEqual({ kind: 'move', to: ['returned'] });
    expect(at(Date.parse(last) + 1)).toEqual({
      kind: 'unapplied',
      reason: 'a payout comes back within 60 days',
      attention: 'return_too_late',
    });
  },
);

test('any callbacks, at any time, make lawful moves only, and none twice', () => {
  const news = fc.record({
    callback: fc.constantFrom(...PAYOUT_CALLBACKS),
    days: fc.integer({ min: 0, max: 40 }),
  });
  fc.assert(
    fc.property(fc.array(news, { maxLength: 30 }), fc.boolean(), (all, can_be_returned) => {
      let status: PayoutStatus = 'created';
      let at = Date.parse(SENT_AT);
      let [sent_at, completed_at]: (string | null)[] = [null, null];
      const passed: PayoutStatus[] = [status];
      for (const { callback, days } of all) {
        at += days * 86_400_000;
        const facts = {
          can_be_returned,
          sent_at: sent_at ?? null,
          completed_at: completed_at ?? null,
        };
        const decision = decidePayout(status, callback, facts, at);
        if (decision.kind === 'unapplied') continue;
        for (const to of decision.to) {
          const lawful: readonly PayoutStatus[] = PAYOUT_TRANSITIONS[status];
          if (!lawful.includes(to)) return false;
          if (to === 'returned' && !can_be_returned) return false;
          if (to === 'sent') sent_at = new Date(at).toISOString();
          if (to === 'completed') completed_at = new Date(at).toISOString();
          status = to;
          passed.push(to);
        }
      }
      return new Set(passed).size === passed.length;
    }),
  );
});

test('it ends at completed, failed and returned; only a completed one is left again', () => {
  expect(PAYOUT_STATUSES.filter(isEnded)).toEqual(['completed', 'failed', 'returned']);
  const left = PAYOUT_STATUSES.filter(
    (status) => isEnded(status) && PAYOUT_TRANSITIONS[status].length > 0,
  );
  expect(left).toEqual(['completed']);
});

test('each state has the event of its name, created has none; each that waits has its mark', () => {
  const named = PAYOUT_STATUSES.filter((status) => status !== 'created');
  expect(PAYOUT_EVENTS.created).toBeUndefined();
  for (const status of named) expect(PAYOUT_EVENTS[status]).toBe(`payout.${status}`);
  expect(Object.keys(OVERDUE_ATTENTION)).toEqual(
    PAYOUT_STATUSES.filter((status) => !isEnded(status)),
  );
  expect(payoutWorkflowId('some-id')).toBe('payout:some-id');
});

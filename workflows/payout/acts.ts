import { PAYOUT_STATUSES, type PayoutAct, type PayoutStatus } from '../../src/domain/payout/payout';
import { type ActRules, stateFault } from '../shared/operator-acts';
import { isReported } from '../shared/state';
import type { Payout } from './state';

const IN_FLIGHT = ['created', 'submitted', 'sent'] as const;

const only = (rest: string) => (status: PayoutStatus) => `The payout is ${status}; only ${rest}.`;

const ACTS: ActRules<PayoutAct, PayoutStatus> = {
  resubmit: {
    from: ['created', 'submitted'],
    refusal: only('one that the bank has not sent can be given to it again'),
  },
  mark_failed: {
    from: IN_FLIGHT,
    refusal: only('one that is under way can be marked as failed'),
  },
  mark_completed: {
    from: IN_FLIGHT,
    refusal: only('one that is under way can be marked as completed'),
  },
  mark_returned: {
    from: ['sent', 'completed'],
    refusal: only('one that was sent, and did not fail or return, can come back'),
  },
  release_unverified: {
    from: ['submitted'],
    refusal: only('one that the bank has not sent can be released'),
  },
  resolve_movement: { from: PAYOUT_STATUSES, refusal: only('what is in suspense') },
  snooze: { from: IN_FLIGHT, refusal: only('one that is under way can be snoozed') },
};

export function actFault(payout: Payout, what: PayoutAct): string | undefined {
  const fault = stateFault(ACTS, payout.status, what);
  if (fault !== undefined) return fault;
  const { facts, payee } = payout;
  if (what === 'release_unverified') {
    if (payee === undefined || payee.result === 'match') {
      return 'The bank has reported no recipient of it as not verified.';
    }
    return payee.released ? 'It was released already: its next file takes it.' : undefined;
  }
  if (what !== 'mark_returned') return undefined;
  // A bank's report against the rail's rules may be true: an operator decides.
  const isContradicted =
    isReported(payout, 'return_not_possible') || isReported(payout, 'failed_after_completed');
  return facts.can_be_returned || isContradicted
    ? undefined
    : `Nothing comes back on the rail ${facts.method}.`;
}

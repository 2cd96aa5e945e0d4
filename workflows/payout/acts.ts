import { assertNever } from '../../src/domain/assert';
import {
  isUnsent,
  PAYOUT_FAILURES,
  type PayoutAct,
  type PayoutStatus,
  pathTo,
  RETURNS,
} from '../../src/domain/payout/payout';
import { stopInstructing } from '../shared/bank-instruction';
import {
  type ActRule,
  amountFault,
  buildAudit,
  type OperatorItem,
  stateFault,
} from '../shared/operator-acts';
import { rejectUpdate } from '../shared/refusal';
import { instructPayout } from './bank';
import { getState, type Payout, type PayoutActResult, record } from './state';

const IN_FLIGHT = ['created', 'submitted', 'sent'] as const;

const only = (rest: string) => (status: PayoutStatus) => `The payout is ${status}; only ${rest}.`;

/** States in which each act is possible, for the validators and the loop. */
export const ACTS: Record<PayoutAct, ActRule<PayoutStatus>> = {
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
  snooze: { from: IN_FLIGHT, refusal: only('one that is under way can be snoozed') },
};

export function actFault(payout: Payout, what: PayoutAct): string | undefined {
  const fault = stateFault(ACTS[what], payout.status);
  if (fault !== undefined || what !== 'mark_returned') return fault;
  const { attention, facts } = payout;
  // A bank's report against the rail's rules may be true: an operator decides.
  const isContradicted =
    attention === 'return_not_possible' || attention === 'failed_after_completed';
  return facts.can_be_returned || isContradicted
    ? undefined
    : `Nothing comes back on the rail ${facts.method}.`;
}

/** Decides an act again: the state may have changed since its update was accepted. */
export async function applyAct(
  payout: Payout,
  item: OperatorItem<PayoutAct, PayoutActResult>,
): Promise<void> {
  const { what, act, hours, amount, answer } = item;
  const fault = actFault(payout, what);
  if (fault !== undefined) return rejectUpdate(answer, 'wrong_state', fault);
  const tooMuch = amountFault(amount, payout.facts.amount);
  if (tooMuch !== undefined) return rejectUpdate(answer, 'invalid_request', tooMuch);
  record.logActivity(payout, `operator ${act.operator}: ${what} (${act.reason})`);
  const audit = buildAudit(item);
  switch (what) {
    case 'resubmit':
      await record.recordAct(payout, audit, payout.attention);
      // Resolved with the bank's answer, or when the payout changes before it.
      payout.resubmits.push(answer);
      void instructPayout(payout, { arrivesBy: 0 });
      return record.show(payout);
    case 'mark_failed': {
      if (isUnsent(payout.status) && (await stopInstructing(payout))) {
        const message = 'The bank has just taken the payout; look again.';
        return rejectUpdate(answer, 'wrong_state', message);
      }
      const change = { failure: PAYOUT_FAILURES.operator };
      await record.transition(payout, ['failed'], { change, audit, scheduled: true });
      break;
    }
    case 'mark_returned': {
      const amountChange = amount === undefined ? {} : { returned_amount: amount };
      const change = { returned: RETURNS.operator, ...amountChange };
      const path = pathTo(payout.status, 'returned');
      await record.transition(payout, path, { change, audit, scheduled: true });
      break;
    }
    case 'mark_completed':
      await record.transition(payout, pathTo(payout.status, 'completed'), {
        audit,
        scheduled: true,
      });
      break;
    case 'snooze':
      await record.snooze(payout, audit, hours);
      break;
    default:
      assertNever(what);
  }
  answer.resolve(getState(payout));
}

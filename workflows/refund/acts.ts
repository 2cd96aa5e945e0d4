import { assertNever } from '../../src/domain/assert';
import { REFUND_FAILURES, type RefundAct, type RefundStatus } from '../../src/domain/refund/refund';
import type { RefundState } from '../../src/domain/refund/workflow';
import { stopInstructing } from '../shared/bank-instruction';
import {
  type ActRule,
  amountFault,
  buildAudit,
  type OperatorItem,
  stateFault,
} from '../shared/operator-acts';
import { rejectUpdate } from '../shared/refusal';
import { getState, type Refund, record } from './state';

const IN_FLIGHT: ActRule<RefundStatus> = {
  from: ['processing'],
  refusal: (status) => `The refund is ${status}; a final state is never left.`,
};

/** States in which each act is possible, for the validators and the loop. */
export const ACTS: Record<RefundAct, ActRule<RefundStatus>> = {
  mark_settled: IN_FLIGHT,
  mark_failed: IN_FLIGHT,
  snooze: IN_FLIGHT,
};

export function actFault(refund: Refund, what: RefundAct): string | undefined {
  return stateFault(ACTS[what], refund.status);
}

/** Decides an act again: the state may have changed since its update was accepted. */
export async function applyAct(
  refund: Refund,
  item: OperatorItem<RefundAct, RefundState>,
): Promise<void> {
  const { what, act, hours, amount, answer } = item;
  const fault = actFault(refund, what);
  if (fault !== undefined) return rejectUpdate(answer, 'wrong_state', fault);
  const tooMuch = amountFault(amount, refund.facts.amount);
  if (tooMuch !== undefined) return rejectUpdate(answer, 'invalid_request', tooMuch);
  record.logActivity(refund, `operator ${act.operator}: ${what} (${act.reason})`);
  const audit = buildAudit(item);
  switch (what) {
    case 'mark_settled': {
      const change = amount === undefined ? {} : { settled_amount: amount };
      await record.transition(refund, ['settled'], { change, audit, scheduled: true });
      break;
    }
    case 'mark_failed': {
      if (await stopInstructing(refund)) {
        const message = 'The bank has just taken the refund; look again.';
        return rejectUpdate(answer, 'wrong_state', message);
      }
      const change = { failure: REFUND_FAILURES.operator };
      await record.transition(refund, ['failed'], { change, audit, scheduled: true });
      break;
    }
    case 'snooze':
      await record.snooze(refund, audit, hours);
      break;
    default:
      assertNever(what);
  }
  answer.resolve(getState(refund));
}

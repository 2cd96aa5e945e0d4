import { REFUND_STATUSES, type RefundAct, type RefundStatus } from '../../src/domain/refund/refund';
import { type ActRule, type ActRules, stateFault } from '../shared/operator-acts';
import type { Refund } from './state';

const IN_FLIGHT: ActRule<RefundStatus> = {
  from: ['processing'],
  refusal: (status) => `The refund is ${status}; a final state is never left.`,
};

const ACTS: ActRules<RefundAct, RefundStatus> = {
  mark_settled: IN_FLIGHT,
  mark_failed: IN_FLIGHT,
  resolve_movement: { from: REFUND_STATUSES, refusal: IN_FLIGHT.refusal },
  snooze: IN_FLIGHT,
};

export function actFault(refund: Refund, what: RefundAct): string | undefined {
  return stateFault(ACTS, refund.status, what);
}

import type { RefundFacts } from '../../activities/refunds';
import type { RefundAnswer } from '../../connectors/contract/activities';
import type { RefundCallbackName } from '../../src/domain/callback';
import type { RefundAttention, RefundStatus } from '../../src/domain/refund';
import type { RefusedFor } from '../../src/domain/refund-rules';
import type { RefundResult, RefundStart, RefundState } from '../../src/domain/refund-workflow';
import type { Instructing } from '../shared/bank-instruction';
import { type Life, newLife } from '../shared/life';
import type { CallbackItem } from '../shared/mailbox';
import type { OperatorItem } from '../shared/operator-acts';

/** What an operator can do to a refund. */
export type RefundAct = 'mark_settled' | 'mark_failed' | 'snooze';

/** What the loop takes in, in order of arrival. Handlers only enqueue; the loop decides. */
export type InboxItem =
  | CallbackItem<RefundCallbackName>
  /** The bank's, to the instruction or to the look-up. */
  | { kind: 'answer'; answer: RefundAnswer }
  | OperatorItem<RefundAct, RefundState>;

/** A refund's memory within one run. */
export interface RefundLife extends Life<RefundStatus, RefundAttention, RefundFacts>, Instructing {
  refundId: string;
  inbox: InboxItem[];
  /** Operators know that it is overdue. */
  overdueTold: boolean;
  /** Why it was never accepted; nothing is stored then. */
  refusal: RefusedFor | undefined;
  /** The bank's own name for it, from its acceptance. */
  bankReference: string | undefined;
}

export function beginLife(start: RefundStart): RefundLife {
  return {
    ...newLife('processing', 'resume' in start),
    refundId: start.refund_id,
    inbox: [],
    instruction: 0,
    sending: undefined,
    overdueTold: false,
    refusal: undefined,
    bankReference: undefined,
  };
}

export function stateOf(life: RefundLife): RefundState {
  return { refund_id: life.refundId, status: life.status, version: life.version };
}

/** The same, or that it was refused. */
export function resultOf(life: RefundLife): RefundResult {
  const { refundId: refund_id, refusal } = life;
  return refusal === undefined ? stateOf(life) : { refund_id, status: 'refused', ...refusal };
}

import type { Trigger } from '@temporalio/workflow';
import type { SessionAnswer } from '../../connectors/contract/activities';
import type { PaymentCallbackName } from '../../src/domain/callback';
import type { CancelledBy, PaymentAttention, PaymentStatus } from '../../src/domain/payment';
import type { PaymentInput, PaymentStart, PaymentState } from '../../src/domain/payment-workflow';
import { type Life, newLife } from '../shared/life';
import type { CallbackItem } from '../shared/mailbox';
import type { OperatorItem } from '../shared/operator-acts';

/** What an operator can do to a payment. */
export type PaymentAct = 'mark_settled' | 'mark_failed' | 'snooze';

/** What the loop takes in, in order of arrival. Handlers only enqueue; the loop decides. */
export type InboxItem =
  | CallbackItem<PaymentCallbackName>
  | { kind: 'cancel'; by: CancelledBy; answer: Trigger<PaymentState> }
  | { kind: 'session'; answer: SessionAnswer }
  | OperatorItem<PaymentAct, PaymentState>;

/** What the loop needs of the input; the same after a resume. */
export type PaymentFacts = Omit<PaymentInput, 'return_url' | 'expires_in_seconds'> & {
  expires_at_ms: number;
};

/** A payment's memory within one run. */
export interface PaymentLife extends Life<PaymentStatus, PaymentAttention, PaymentFacts> {
  paymentId: string;
  inbox: InboxItem[];
}

export function beginLife(start: PaymentStart): PaymentLife {
  return { ...newLife('created', 'resume' in start), paymentId: start.payment_id, inbox: [] };
}

export function stateOf(life: PaymentLife): PaymentState {
  return { payment_id: life.paymentId, status: life.status, version: life.version };
}

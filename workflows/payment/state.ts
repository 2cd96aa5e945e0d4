import type { Trigger } from '@temporalio/workflow';
import type { PaymentChange } from '../../activities/payments';
import type {
  CloseAnswer,
  Outdated,
  ReversalAnswer,
  SessionAnswer,
  VoidAnswer,
} from '../../connectors/contract/activities';
import type { PaymentCallbackName } from '../../src/domain/callback/callback';
import { listTakeable, take } from '../../src/domain/movement/movement';
import {
  type CancelledBy,
  isFinal,
  type PaymentAct,
  type PaymentAttention,
  type PaymentStatus,
} from '../../src/domain/payment/payment';
import type {
  PaymentInput,
  PaymentOpened,
  PaymentOpening,
  PaymentState,
} from '../../src/domain/payment/workflow';
import { type CallbackItem, getResource, type Mailbox } from '../shared/mailbox';
import type { OperatorItem } from '../shared/operator-acts';
import { createRecord } from '../shared/record';
import {
  initialState,
  type ResourceSnapshot,
  startLabels,
  type WorkflowState,
} from '../shared/state';
import { COMMON_REMEDIES, FINAL, type View } from '../shared/view';

export type PaymentFacts = Omit<PaymentInput, 'return_url' | 'expires_in_seconds' | 'clock'> & {
  expires_at_ms: number;
};

export interface Payment extends WorkflowState<PaymentStatus, PaymentAttention, PaymentFacts> {
  readonly inbox: PaymentItem[];
  closing: boolean;
  giveUpClosing: () => void;
  /** Ids of unanswered instructions. */
  readonly instructing: Set<string>;
  /** The bank's name for it, where a callback came before its session. */
  bankReference: string | undefined;
  opening: PaymentOpening | undefined;
}

/** @param resumed its search attributes are not known */
export function newPayment(
  { inbox, clock }: PaymentMailbox,
  id: string,
  snapshot: ResourceSnapshot<PaymentStatus, PaymentAttention, PaymentFacts>,
  resumed: boolean,
): Payment {
  return {
    ...initialState(id, snapshot, startLabels(resumed), clock),
    inbox,
    closing: false,
    giveUpClosing: () => undefined,
    bankReference: undefined,
    instructing: new Set(),
    opening: undefined,
  };
}

export type PaymentMailbox = Mailbox<PaymentItem, Payment>;

export type PaymentItem =
  | CallbackItem<PaymentCallbackName>
  | { kind: 'cancel'; by: CancelledBy; answer: Trigger<PaymentState> }
  | { kind: 'session'; answer: SessionAnswer }
  /** Undefined when the connector refuses permanently. */
  | { kind: 'closed'; answer: CloseAnswer | undefined }
  | { kind: 'voided'; instruction_id: string; answer: VoidAnswer | undefined }
  | {
      kind: 'sent_back';
      instruction_id: string;
      movement_id: string;
      answer: ReversalAnswer | Outdated | undefined;
    }
  | OperatorItem<PaymentAct, PaymentState>;

export function getState({ id, status, version }: Payment): PaymentState {
  return { payment_id: id, status, version };
}

export function buildOpened(payment: Payment): PaymentOpened {
  const { opening } = payment;
  return opening === undefined ? getState(payment) : { ...getState(payment), opening };
}

export function readState(mail: PaymentMailbox, payment_id: string): PaymentState {
  const payment = getResource(mail);
  return payment === undefined ? { payment_id, status: 'created', version: 0 } : getState(payment);
}

export const VIEW: View<PaymentStatus, PaymentAttention> = {
  waitingFor: {
    created: {
      what: 'the bank to open a session for the customer',
      updates: '`mark_settled`, `mark_failed`',
    },
    awaiting_customer: {
      what: 'the customer to pay',
      updates: '`mark_settled`, `mark_failed`',
    },
    authorized: {
      what: 'the bank to settle; it never expires',
      updates: '`mark_settled`, `mark_failed`, `snooze`',
    },
    settled: { what: FINAL.what, updates: '`claw_back`, `dispute_won`, by the command line' },
    failed: FINAL,
    cancelled: FINAL,
    expired: FINAL,
  },
  remedies: {
    settlement_overdue: 'Ask the bank, then send `mark_settled` or `mark_failed`.',
    session_not_closed:
      'The bank has not confirmed that the customer can no longer pay. Money that still comes is ' +
      'sent back. If this lasts, check the connector; if it is retired, run `payment act ID ' +
      'give_up_closing`.',
    late_money_pending:
      'The customer paid after the end, and the bank has to send the money back. If this lasts, ' +
      'check the connector.',
    late_authorization_voided:
      'The customer authorized after the end, and the bank released it. Nothing to do.',
    late_settlement_reversed:
      'The money moved after the end, and the bank has to send it back. It has confirmed that ' +
      'once the money has left suspense.',
    late_settlement_not_reversed:
      'The bank refused to send late funds back. Return them by hand, notify the merchant, then run ' +
      '`payment act ID mark_reversed`.',
    late_reversal_overdue:
      'The bank has not confirmed for five days that it sent late funds back. Ask the bank. If they ' +
      'are back, run `payment act ID mark_reversed`.',
    failed_after_settled:
      'A settled payment failed at the bank, and can no longer be refunded. Ask the bank. If the ' +
      'bank has the money back, run `payment act ID claw_back`.',
    clawed_back:
      'The bank charges the payment back. Once it has, run `payment act ID claw_back`; if it was an ' +
      'error, `dispute_won`. If the payment had not settled, ask the bank.',
    dispute_differs:
      'A dispute does not fit the payment, and was not posted; the callback in `payment show` ' +
      'says why. Ask the bank, then run `payment act ID claw_back` or `dispute_won`.',
    amount_differs:
      'A different amount or currency came, and is in suspense. Ask the bank. `mark_settled` ' +
      'credits it; if it went back to the customer, run `payment act ID mark_reversed`. If no ' +
      'money came, send `mark_failed`. `movement resolve` decides about what is left, and about ' +
      'another currency.',
    second_settlement:
      'A second settlement is in suspense. Ask the bank. Once the customer has it back, run ' +
      '`payment act ID mark_reversed`. If it never came, run `movement resolve ID --as ' +
      'never_happened`; to give it to the merchant, `movement resolve ID --as merchant`.',
    expired_after_authorized:
      'An authorized payment expired at the bank. Ask the bank, then send `mark_settled` or ' +
      '`mark_failed`.',
    ...COMMON_REMEDIES,
  },
};

export const record = createRecord<PaymentStatus, PaymentAttention, Payment, PaymentChange>({
  noun: 'payment',
  view: VIEW,
  until,
  unverifiedReason: 'sender_not_known',
  malformedReason: 'malformed_callback',
  givenUpReason: 'message_given_up',
  refusedReason: 'books_refused',
  overdueReasons: ['settlement_overdue'],
  getExtraFields: ({ bankReference: bank_reference }) =>
    bank_reference === undefined ? {} : { bank_reference },
  // What an operator says has come; the bank's own report is of another movement.
  take: ({ movements, facts }, { to, isAct, change, movement: id }) => {
    if (!isAct || !to.includes('settled')) return [];
    const { currency, amount } = facts;
    const held = listTakeable(movements, { direction: 'in', currency, id });
    return take(held, BigInt(change.settled_amount ?? amount));
  },
  writeTransition: (input) => (activities) => activities.recordPaymentMove(input),
  writeAttention: (input) => (activities) => activities.recordPaymentAttention(input),
});

function until(payment: Payment): string {
  const { status, facts } = payment;
  if (isFinal(status)) return '';
  const at = status === 'authorized' ? settlementDue(payment) : facts.expires_at_ms;
  const word = status === 'authorized' ? 'due' : 'until';
  return `, ${word} ${new Date(at).toISOString()}`;
}

/** Ms since the epoch. */
export function settlementDue({ enteredAt, snoozedUntil, facts }: Payment): number {
  return snoozedUntil ?? enteredAt + facts.settlement_due_seconds * 1_000;
}

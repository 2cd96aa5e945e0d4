import type { Trigger } from '@temporalio/workflow';
import type { PaymentChange } from '../../activities/payments';
import type {
  CloseAnswer,
  Outdated,
  ReversalAnswer,
  SessionAnswer,
  VoidAnswer,
} from '../../connectors/contract/activities';
import type { BankCallback, PaymentCallbackName } from '../../src/domain/callback/callback';
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
import { type CallbackItem, getResource, type Mailbox } from '../shared/inbox';
import type { OperatorItem } from '../shared/operator-acts';
import { createRecord } from '../shared/record';
import {
  FINAL,
  initialState,
  type ResourceSnapshot,
  startLabels,
  type View,
  type WorkflowState,
} from '../shared/state';

export type PaymentFacts = Omit<PaymentInput, 'return_url' | 'expires_in_seconds' | 'clock'> & {
  expires_at_ms: number;
};

export interface PaymentKind {
  status: PaymentStatus;
  attention: PaymentAttention;
  facts: PaymentFacts;
  change: PaymentChange;
  callbackName: PaymentCallbackName;
  callback: BankCallback;
  act: PaymentAct;
  actResult: PaymentState;
  result: PaymentState;
  opened: PaymentOpened;
}

export interface Payment extends WorkflowState<PaymentStatus, PaymentAttention, PaymentFacts> {
  readonly inbox: PaymentItem[];
  closing: boolean;
  giveUpClosing: () => void;
  /** Unanswered instructions by their ids, each with what gives it up. */
  readonly instructing: Map<string, () => void>;
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
    instructing: new Map(),
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

const VIEW: View<PaymentStatus> = {
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
};

export const record = createRecord<PaymentKind, Payment>({
  noun: 'payment',
  view: VIEW,
  until: (payment) => {
    const { status, facts } = payment;
    if (isFinal(status)) return '';
    const at = status === 'authorized' ? settlementDue(payment) : facts.expires_at_ms;
    const word = status === 'authorized' ? 'due' : 'until';
    return `, ${word} ${new Date(at).toISOString()}`;
  },
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

/** Ms since the epoch. */
export function settlementDue({ enteredAt, snoozedUntil, facts }: Payment): number {
  return snoozedUntil ?? enteredAt + facts.settlement_due_seconds * 1_000;
}

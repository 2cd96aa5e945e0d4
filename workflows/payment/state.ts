import { defineUpdate, type Trigger } from '@temporalio/workflow';
import type { PaymentChange } from '../../activities/payments';
import type {
  CloseAnswer,
  Outdated,
  ReversalAnswer,
  SessionAnswer,
  VoidAnswer,
} from '../../connectors/contract/activities';
import {
  type BankCallback,
  PAYMENT_CALLBACKS,
  type PaymentCallbackName,
  readCallback,
} from '../../src/domain/banks/callback';
import { listTakeable, take } from '../../src/domain/banks/movement';
import {
  type CancelInput,
  type CancelledBy,
  isFinal,
  PAYMENT_ACTS,
  type PaymentAct,
  type PaymentAttention,
  type PaymentInput,
  type PaymentOpened,
  type PaymentOpening,
  type PaymentState,
  type PaymentStatus,
} from '../../src/domain/payment/payment';
import { defineMessages, getResource, type Mailbox } from '../shared/inbox';
import type { CommonItem } from '../shared/lifecycle';
import { ACKNOWLEDGE, OPERATOR, RESOLVE_MOVEMENT, SNOOZE } from '../shared/operator-acts';
import { ResourceRecord } from '../shared/record';
import {
  FINAL,
  initialState,
  type ResourceSnapshot,
  startLabels,
  type Waiting,
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
  | CommonItem<PaymentKind>
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
    };

/** Contract, changed only by addition. */
export const messages = defineMessages<PaymentKind>(PAYMENT_ACTS, PAYMENT_CALLBACKS, readCallback, {
  open: 'Waits until the payment is stored. Sent by the API with the start.',
  mark_settled:
    `The bank confirmed that the money moved: ${OPERATOR}}. ` +
    'It credits what is in suspense, or one "movement" of it; an "amount" in minor units posts ' +
    'what really came.',
  mark_failed: `The bank confirmed that the payment failed: ${OPERATOR}}.`,
  claw_back:
    `Posts the chargeback of a settled payment: ${OPERATOR}}. The merchant owes what the balance ` +
    'does not have. An "amount" in minor units posts a part, once for each "operation_id".',
  mark_reversed: `Money in suspense is back with the customer: ${OPERATOR}}. Of several, the "movement".`,
  resolve_movement: RESOLVE_MOVEMENT,
  give_up_closing:
    `Ends the attempts to close a session, void or send money back at a retired bank: ${OPERATOR}}. ` +
    'The money stays in suspense.',
  snooze: SNOOZE,
  acknowledge: ACKNOWLEDGE,
  state: 'The state of the payment.',
  authorized: 'From the bank: the customer paid, the money has not moved yet.',
  settled: 'From the bank: the money moved.',
  failed: 'From the bank: declined or errored.',
  expired: 'From the bank: the session closed unpaid.',
  reversed: 'From the bank: money in suspense is back with the customer.',
  reversal_failed: 'From the bank: money in suspense could not be sent back.',
  clawed_back: 'From the bank: it takes settled money back.',
  dispute_opened: 'From the bank: it takes settled money back, at once.',
  dispute_won:
    `What a dispute took is back: ${OPERATOR}}. The payment can be refunded again. Of several, ` +
    'the "dispute_id"; a "fee" in minor units came back, too. As a signal, from the bank.',
  dispute_updated: 'From the bank: the status of a dispute, or its deadline.',
  dispute_withdrawn: 'From the bank: a dispute took money, by a movement of its own.',
  dispute_reinstated: 'From the bank: money of a dispute came back, by a movement of its own.',
  dispute_lost: 'From the bank: what a dispute took does not come back.',
});

export const cancel = defineUpdate<PaymentState, [CancelInput]>('cancel');

export function getState({ id, status, version }: Payment): PaymentState {
  return { payment_id: id, status, version };
}

export function readState(mail: Pick<PaymentMailbox, 'opening'>, payment_id: string): PaymentState {
  const payment = getResource(mail);
  return payment === undefined ? { payment_id, status: 'created', version: 0 } : getState(payment);
}

const WAITING_FOR: Record<PaymentStatus, Waiting> = {
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
};

export const record = new ResourceRecord<PaymentKind, Payment>({
  noun: 'payment',
  waitingFor: WAITING_FOR,
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

import type { RefundChange, RefundFacts } from '../../activities/refunds';
import type { RefundAnswer } from '../../connectors/contract/activities';
import type { RefundCallbackName } from '../../src/domain/callback';
import {
  isFinalRefund,
  type RefundAct,
  type RefundAttention,
  type RefundStatus,
} from '../../src/domain/refund';
import type { RefundResult, RefundState } from '../../src/domain/refund-workflow';
import type { Instructing } from '../shared/bank-instruction';
import { type Life, type Loaded, newLife, startLabels } from '../shared/life';
import type { CallbackItem, Mailbox } from '../shared/mailbox';
import type { OperatorItem } from '../shared/operator-acts';
import { createRecord } from '../shared/record';
import { FINAL, MALFORMED_CURE, SENDER_CURE, type View } from '../shared/view';

/** A refund in memory, within one run. */
export interface Refund extends Life<RefundStatus, RefundAttention, RefundFacts>, Instructing {
  /** Its own mailbox, for what the bank answers. */
  readonly inbox: RefundItem[];
  /** The bank's own name for it, from its acceptance. */
  bankReference: string | undefined;
}

export type RefundMailbox = Mailbox<RefundItem, Refund>;

export type RefundItem =
  | CallbackItem<RefundCallbackName>
  /** The bank's, to the instruction or to the look-up. */
  | { kind: 'answer'; answer: RefundAnswer }
  /** The record has moved on without this run. */
  | { kind: 'outdated' }
  | OperatorItem<RefundAct, RefundState>;

/** @param resumed the search attributes may say anything: they are brought up to date */
export function newRefund(
  { inbox }: RefundMailbox,
  id: string,
  loaded: Loaded<RefundStatus, RefundAttention, RefundFacts>,
  resumed: boolean,
): Refund {
  const life = newLife(id, loaded, startLabels(resumed));
  return { ...life, inbox, bankReference: undefined, instruction: 0, sendings: new Set() };
}

export function stateOf({ id, status, version }: Refund): RefundState {
  return { refund_id: id, status, version };
}

/** Answers the query and the caller of the workflow, also before it is accepted or when it never was. */
export function resultIn({ opening }: RefundMailbox, refund_id: string): RefundResult {
  if (opening?.outcome === 'accepted') return stateOf(opening.resource);
  if (opening === undefined) return { refund_id, status: 'processing', version: 0 };
  const { code, message } = opening;
  return { refund_id, status: 'refused', code, message };
}

export const VIEW: View<RefundStatus, RefundAttention> = {
  waitsFor: {
    processing: {
      what: 'the bank to say that the customer has the money',
      levers: '`mark_settled`, `mark_failed`, `snooze`',
    },
    settled: FINAL,
    failed: FINAL,
  },
  cures: {
    refund_overdue:
      'The bank has not said what became of it. Ask the bank, then send the update ' +
      '`mark_settled` or `mark_failed`; `snooze` to wait some more.',
    failed_after_settled: 'The bank reported a failure after it had settled. Ask the bank.',
    settled_after_failed:
      'The bank reported that it settled after it had failed and its amount was given back. ' +
      'Ask the bank; if the customer has the money, the merchant was credited too much.',
    amount_differs:
      'The bank speaks of other money than was asked for; nothing was booked. Ask the bank, then ' +
      '`mark_settled` with the amount that was really sent, or `mark_failed`.',
    malformed_callback: MALFORMED_CURE,
    sender_not_known: SENDER_CURE,
  },
};

export const record = createRecord<RefundStatus, RefundAttention, Refund, RefundChange>({
  noun: 'refund',
  view: VIEW,
  until: (refund) =>
    isFinalRefund(refund.status) ? '' : `, due ${new Date(dueAt(refund)).toISOString()}`,
  isPast: (attention) => attention === 'refund_overdue' || attention === 'amount_differs',
  senderMark: 'sender_not_known',
  malformedMark: 'malformed_callback',
  weakMarks: [],
  lateMarks: ['refund_overdue'],
  known: ({ bankReference: bank_reference }) =>
    bank_reference === undefined ? {} : { bank_reference },
  remember: () => {},
  writeMove: (input) => (activities) => activities.recordRefundMove(input),
  readStanding: (input) => (activities) => activities.readRefundStanding(input),
  readLoaded: (input) => (activities) => activities.loadRefund(input),
  writeAttention: (input) => (activities) => activities.recordRefundAttention(input),
});

/** When operators are told that it is overdue, in ms since the epoch. */
export function dueAt({ snoozedUntil, facts }: Refund): number {
  return snoozedUntil ?? facts.due_at_ms;
}

import type { RefundChange, RefundFacts } from '../../activities/refunds';
import type { RefundAnswer } from '../../connectors/contract/activities';
import type { BankCallback, RefundCallbackName } from '../../src/domain/callback/callback';
import { take } from '../../src/domain/movement/movement';
import {
  isFinalRefund,
  type RefundAct,
  type RefundAttention,
  type RefundStatus,
} from '../../src/domain/refund/refund';
import type { RefundResult, RefundState } from '../../src/domain/refund/workflow';
import { type Instructed, type InstructedItem, newInstructed } from '../shared/instructed-rules';
import { type Mailbox, readResult } from '../shared/mailbox';
import { listOwn } from '../shared/movement';
import { createRecord } from '../shared/record';
import { COMMON_REMEDIES, FINAL, type View } from '../shared/view';

export interface RefundKind {
  status: RefundStatus;
  attention: RefundAttention;
  facts: RefundFacts;
  change: RefundChange;
  callbackName: RefundCallbackName;
  callback: BankCallback;
  answer: RefundAnswer;
  act: RefundAct;
  actResult: RefundState;
}

export type Refund = Instructed<RefundKind>;
export type RefundMailbox = Mailbox<InstructedItem<RefundKind>, Refund>;
export const newRefund = newInstructed<RefundKind>;

export function getState({ id, status, version }: Refund): RefundState {
  return { refund_id: id, status, version };
}

export function getResult(mail: RefundMailbox, refund_id: string): RefundResult {
  return readResult(mail, { refund_id, status: 'processing', version: 0 }, getState);
}

export const VIEW: View<RefundStatus, RefundAttention> = {
  waitingFor: {
    processing: {
      what: 'the bank to say that the customer has the money',
      updates: '`mark_settled`, `mark_failed`, `snooze`',
    },
    settled: FINAL,
    failed: FINAL,
  },
  remedies: {
    refund_overdue: 'Ask the bank, then send `mark_settled` or `mark_failed`.',
    failed_after_settled:
      'A settled refund failed at the bank; what came back is in suspense. Ask the bank, then ' +
      'decide with `movement resolve`: `--as merchant` credits it, and `--as never_happened` says ' +
      'that the customer has it.',
    settled_after_failed:
      'The bank settled a failed refund. The first of its amount was debited again; anything else ' +
      'is in suspense. Ask the bank, then decide with `movement resolve` who bears it. If the bank ' +
      'sent nothing, credit the merchant with `balance adjust --against clearing:CONNECTOR`.',
    moved_after_failed:
      'The bank accepted a refund that an operator had marked as failed. Ask the bank to cancel it.',
    second_completion:
      'The bank settled the refund again; what it sent is in suspense. Ask the bank, then decide ' +
      'with `movement resolve` who bears it: `--as bank` if the bank gives it back.',
    amount_differs:
      'A different amount or currency was sent, and is in suspense. Ask the bank, then send ' +
      '`mark_settled` with the amount that was sent, or `mark_failed` if nothing was. `movement ' +
      'resolve` decides who bears the rest.',
    ...COMMON_REMEDIES,
  },
};

export const record = createRecord<RefundStatus, RefundAttention, Refund, RefundChange>({
  noun: 'refund',
  view: VIEW,
  until: (refund) =>
    isFinalRefund(refund.status) ? '' : `, due ${new Date(dueAt(refund)).toISOString()}`,
  unverifiedReason: 'sender_not_known',
  malformedReason: 'malformed_callback',
  givenUpReason: 'message_given_up',
  refusedReason: 'books_refused',
  overdueReasons: ['refund_overdue'],
  take: ({ movements, facts }, next) => {
    if (!next.to.includes('settled')) return [];
    const { currency, amount } = facts;
    const own = listOwn(movements, next, { direction: 'out', currency });
    return take(own, BigInt(next.change.settled_amount ?? amount));
  },
  getExtraFields: ({ bankReference: bank_reference, storedReference }) =>
    bank_reference === undefined || storedReference !== undefined ? {} : { bank_reference },
  writeTransition: (input) => (activities) => activities.recordRefundMove(input),
  writeAttention: (input) => (activities) => activities.recordRefundAttention(input),
});

export function dueAt({ snoozedUntil, facts }: Refund): number {
  return snoozedUntil ?? facts.due_at_ms;
}

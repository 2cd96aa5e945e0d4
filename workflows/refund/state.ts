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
import { type Mailbox, readResult } from '../shared/inbox';
import { type Instructed, type InstructedItem, newInstructed } from '../shared/instructed-rules';
import { listOwn } from '../shared/movement';
import { createRecord } from '../shared/record';
import { FINAL, type View } from '../shared/state';

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
  result: RefundResult;
  opened: RefundState;
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

const VIEW: View<RefundStatus> = {
  waitingFor: {
    processing: {
      what: 'the bank to say that the customer has the money',
      updates: '`mark_settled`, `mark_failed`, `snooze`',
    },
    settled: FINAL,
    failed: FINAL,
  },
};

export const record = createRecord<RefundKind, Refund>({
  noun: 'refund',
  view: VIEW,
  until: (refund) =>
    isFinalRefund(refund.status) ? '' : `, due ${new Date(dueAt(refund)).toISOString()}`,
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

import type { PayoutChange, PayoutFacts } from '../../activities/payouts';
import type { PayoutAnswer } from '../../connectors/contract/activities';
import type { BankCallback, PayoutCallbackName } from '../../src/domain/callback/callback';
import { take } from '../../src/domain/movement/movement';
import {
  isEnded,
  isUnsent,
  OVERDUE_ATTENTION,
  type PayoutAct,
  type PayoutAttention,
  type PayoutStatus,
  type StoredVerification,
} from '../../src/domain/payout/payout';
import type { PayoutResult, PayoutState } from '../../src/domain/payout/workflow';
import { type Mailbox, readResult } from '../shared/inbox';
import { type Instructed, type InstructedItem, newInstructed } from '../shared/instructed-rules';
import { listOwn } from '../shared/movement';
import { createRecord } from '../shared/record';
import { FINAL, type ResourceSnapshot, type View, type Waiting } from '../shared/state';

export interface PayoutActResult extends PayoutState {
  /** Absent when the payout changed before the bank's answer. */
  bank?: PayoutAnswer['outcome'];
}

export interface PayoutKind {
  status: PayoutStatus;
  attention: PayoutAttention;
  facts: PayoutFacts;
  change: PayoutChange;
  callbackName: PayoutCallbackName;
  callback: BankCallback;
  answer: PayoutAnswer;
  act: PayoutAct;
  actResult: PayoutActResult;
  result: PayoutResult;
  opened: PayoutState;
}

export interface Payout extends Instructed<PayoutKind> {
  notOverdueBefore: number;
  sentAt: string | null;
  completedAt: string | null;
  /** Undefined before the bank has checked the recipient's name. */
  payee: StoredVerification | undefined;
}

export interface PayoutMailbox extends Mailbox<InstructedItem<PayoutKind>, Payout> {
  /** Ms since the epoch. */
  readonly acceptBy: number;
  attempted: boolean;
}

/** @param resumed its search attributes are not known */
export function newPayout(
  mail: PayoutMailbox,
  id: string,
  snapshot: ResourceSnapshot<PayoutStatus, PayoutAttention, PayoutFacts>,
  resumed: boolean,
): Payout {
  const instructed = newInstructed<PayoutKind>(mail, id, snapshot, resumed);
  return {
    ...instructed,
    notOverdueBefore: 0,
    sentAt: null,
    completedAt: null,
    payee: undefined,
  };
}

export function getState({ id, status, version }: Payout): PayoutState {
  return { payout_id: id, status, version };
}

export function getResult(mail: PayoutMailbox, payout_id: string): PayoutResult {
  return readResult(mail, { payout_id, status: 'created', version: 0 }, getState);
}

const UNSENT = '`resubmit`, `mark_completed`, `mark_failed`, `snooze`';
const QUEUED = '`resubmit`, `release_unverified`, `mark_completed`, `mark_failed`, `snooze`';

const COMPLETED: Waiting = {
  what: 'nothing: it reached the recipient; where the rail allows it, it may still come back',
  updates: 'none here; on the command line `payout act ID mark_returned`, which starts it again',
};

const VIEW: View<PayoutStatus> = {
  waitingFor: {
    created: { what: 'the bank to take it', updates: UNSENT },
    submitted: { what: 'the bank to hand it to the scheme', updates: QUEUED },
    sent: {
      what: 'the bank to say that it reached the recipient',
      updates: '`mark_completed`, `mark_failed`, `mark_returned`, `snooze`',
    },
    completed: COMPLETED,
    failed: FINAL,
    returned: FINAL,
  },
};

export const OVERDUE_REASONS: readonly PayoutAttention[] = Object.values(OVERDUE_ATTENTION);

const RESOLVED_BY_RETURN: readonly PayoutAttention[] = [
  ...OVERDUE_REASONS,
  'failed_after_completed',
  'return_not_possible',
  'return_too_late',
  'debit_reversed',
];

/** For a payout that changes late, or starts again. */
export const OVERDUE_AGAIN_MS = 60_000;

export const record = createRecord<PayoutKind, Payout>({
  noun: 'payout',
  view: VIEW,
  until: (payout) =>
    isEnded(payout.status)
      ? ''
      : `, due ${new Date(payout.snoozedUntil ?? payout.facts.due_at_ms).toISOString()}`,
  isPast: (attention, status) => {
    if (attention === 'restarted_in_flight') return isEnded(status);
    if (attention === 'called_duplicate' || attention === 'payee_not_verified') {
      return !isUnsent(status);
    }
    if (attention === 'amount_differs') return isEnded(status);
    if (status === 'returned') return RESOLVED_BY_RETURN.includes(attention);
    return OVERDUE_REASONS.includes(attention);
  },
  take: ({ movements, facts, status }, next) => {
    const { to, change } = next;
    const { currency, amount } = facts;
    const isBack = to.includes('returned') || (to.includes('failed') && status === 'sent');
    const sent = to.includes('sent')
      ? listOwn(movements, next, { direction: 'out', currency })
      : [];
    const back = isBack ? listOwn(movements, next, { direction: 'in', currency }) : [];
    const returned = to.includes('returned') ? (change.returned_amount ?? amount) : amount;
    return [...take(sent, BigInt(amount)), ...take(back, BigInt(returned))];
  },
  weakReasons: ['restarted_in_flight'],
  overdueReasons: OVERDUE_REASONS,
  getExtraFields: ({ bankReference: bank_reference, storedReference }) =>
    bank_reference === undefined || storedReference !== undefined ? {} : { bank_reference },
  remember: (payout, { to, at }) => {
    if (to.includes('sent')) payout.sentAt = at;
    if (to.includes('completed')) payout.completedAt = at;
    if (payout.enteredAt >= payout.facts.due_at_ms) {
      payout.notOverdueBefore = payout.enteredAt + OVERDUE_AGAIN_MS;
    }
  },
  writeTransition: (input) => (activities) => activities.recordPayoutMove(input),
  writeAttention: (input) => (activities) => activities.recordPayoutAttention(input),
});

export function dueAt({ snoozedUntil, facts, notOverdueBefore }: Payout): number {
  return snoozedUntil ?? Math.max(facts.due_at_ms, notOverdueBefore);
}

import type { Trigger } from '@temporalio/workflow';
import type { PayoutChange, PayoutFacts } from '../../activities/payouts';
import type { PayoutAnswer } from '../../connectors/contract/activities';
import type { PayoutCallbackName } from '../../src/domain/callback';
import {
  isEnded,
  OVERDUE,
  type PayoutAct,
  type PayoutAttention,
  type PayoutStatus,
} from '../../src/domain/payout';
import type { PayoutResult, PayoutState } from '../../src/domain/payout-workflow';
import type { Instructing } from '../shared/bank-instruction';
import { type Life, type Loaded, newLife, startLabels } from '../shared/life';
import type { CallbackItem, Mailbox } from '../shared/mailbox';
import type { OperatorItem } from '../shared/operator-acts';
import { createRecord } from '../shared/record';
import { FINAL, MALFORMED_CURE, SENDER_CURE, type View, type Waiting } from '../shared/view';

/** A payout in memory, within one run. */
export interface Payout extends Life<PayoutStatus, PayoutAttention, PayoutFacts>, Instructing {
  /** Its own mailbox, for what the bank answers. */
  readonly inbox: PayoutItem[];
  /** In ms since the epoch: a payout that moves on past its time is left alone until then. */
  notOverdueBefore: number;
  /** The bank's own name for it, from its answer. */
  bankReference: string | undefined;
  /** ISO 8601; null before. */
  sentAt: string | null;
  completedAt: string | null;
  /** Operators who wait for what the bank says. */
  resubmits: Trigger<PayoutActed>[];
}

export interface PayoutMailbox extends Mailbox<PayoutItem, Payout> {
  /** In ms since the epoch: accepted by then, or not at all. */
  readonly acceptBy: number;
  /** The attempt to accept it is over, however it went. */
  attempted: boolean;
}

/** Answer of an operator's update. */
export interface PayoutActed extends PayoutState {
  /** The bank's answer to `resubmit`; absent when the payout moved before it had answered. */
  bank?: PayoutAnswer['outcome'];
}

export type PayoutItem =
  | CallbackItem<PayoutCallbackName>
  /** The bank's, to the instruction or to the look-up. */
  | { kind: 'answer'; answer: PayoutAnswer }
  /** The record has moved on without this run. */
  | { kind: 'outdated' }
  | OperatorItem<PayoutAct, PayoutActed>;

/** @param resumed the search attributes may say anything: they are brought up to date */
export function newPayout(
  { inbox }: PayoutMailbox,
  id: string,
  loaded: Loaded<PayoutStatus, PayoutAttention, PayoutFacts>,
  resumed: boolean,
): Payout {
  return {
    ...newLife(id, loaded, startLabels(resumed)),
    inbox,
    notOverdueBefore: 0,
    bankReference: undefined,
    sentAt: null,
    completedAt: null,
    instruction: 0,
    sendings: new Set(),
    resubmits: [],
  };
}

export function stateOf({ id, status, version }: Payout): PayoutState {
  return { payout_id: id, status, version };
}

/** Answers the query and the caller of the workflow, also before it is accepted or when it never was. */
export function resultIn({ opening }: PayoutMailbox, payout_id: string): PayoutResult {
  if (opening?.outcome === 'accepted') return stateOf(opening.resource);
  if (opening === undefined) return { payout_id, status: 'created', version: 0 };
  const { code, message } = opening;
  return { payout_id, status: 'refused', code, message };
}

const UNSENT = '`resubmit`, `mark_completed`, `mark_failed`, `snooze`';

const COMPLETED: Waiting = {
  what: 'nothing: it reached the recipient; where the rail allows it, it may still come back',
  levers: 'none here; on the command line `payout act ID mark_returned`, which starts it again',
};

const OVERDUE_CURE =
  '`resubmit` asks the bank what it knows and sends the payout again only when it is unknown ' +
  'there. When the bank has told you what became of it: `mark_completed` or `mark_failed`; ' +
  '`snooze` to wait some more.';

const GIVEN_BACK =
  'Ask the bank; if the recipient has the money, the merchant was credited too much.';

export const VIEW: View<PayoutStatus, PayoutAttention> = {
  waitsFor: {
    created: { what: 'the bank to take it', levers: UNSENT },
    submitted: { what: 'the bank to hand it to the scheme', levers: UNSENT },
    sent: {
      what: 'the bank to say that it reached the recipient',
      levers: '`mark_completed`, `mark_failed`, `mark_returned`, `snooze`',
    },
    completed: COMPLETED,
    failed: FINAL,
    returned: FINAL,
  },
  cures: {
    not_submitted: `The bank has not taken it in its time. ${OVERDUE_CURE}`,
    not_sent: `The bank has not handed it to the scheme in its time. ${OVERDUE_CURE}`,
    not_completed:
      'The bank has not said in its time what became of it. Ask the bank, then send the update ' +
      '`mark_completed`, `mark_failed` or `mark_returned`; `snooze` to wait some more.',
    restarted_in_flight:
      'Its workflow was ended from outside and has started again. It goes on by itself: the bank ' +
      'is asked before anything is sent again. Find out who ended it; `snooze` clears this mark.',
    failed_after_completed:
      'The bank reported a failure after the payout had completed; nothing moved. Ask the bank; ' +
      'if the money is back, send `mark_returned`.',
    moved_after_failed:
      'The bank reported that the payout went on after it had failed and its money was given ' +
      `back; nothing moved. ${GIVEN_BACK}`,
    moved_after_returned:
      'The bank reported another end after the payout had come back and its amount was ' +
      `credited; nothing moved. ${GIVEN_BACK}`,
    second_return:
      'The bank reported a second return; the amount was credited once. Ask the bank whether ' +
      'both are the same.',
    return_too_late:
      'The bank reported a return more than 60 days later; nothing moved. Ask the bank; if the ' +
      'money is there, send `mark_returned`.',
    return_not_possible:
      'The bank reported a return on a rail where nothing comes back; nothing moved. Ask the bank.',
    amount_differs:
      'The bank speaks of other money than was asked for; nothing was booked. Ask the bank, then ' +
      '`mark_completed`, or `mark_returned` with the amount that really came back.',
    malformed_callback: MALFORMED_CURE,
    sender_not_known: SENDER_CURE,
  },
};

const OVERDUE_MARKS: readonly PayoutAttention[] = Object.values(OVERDUE);

const CURED_BY_RETURN: readonly PayoutAttention[] = [
  ...OVERDUE_MARKS,
  'failed_after_completed',
  'return_not_possible',
  'return_too_late',
];

/** A payout that moves on past its time, or whose workflow starts again, is given this long. */
export const OVERDUE_AGAIN_MS = 60_000;

export const record = createRecord<PayoutStatus, PayoutAttention, Payout, PayoutChange>({
  noun: 'payout',
  view: VIEW,
  until: (payout) =>
    isEnded(payout.status)
      ? ''
      : `, due ${new Date(payout.snoozedUntil ?? payout.facts.due_at_ms).toISOString()}`,
  isPast: (attention, status) => {
    if (attention === 'restarted_in_flight') return isEnded(status);
    if (attention === 'amount_differs') return isEnded(status);
    if (status === 'returned') return CURED_BY_RETURN.includes(attention);
    return OVERDUE_MARKS.includes(attention);
  },
  senderMark: 'sender_not_known',
  malformedMark: 'malformed_callback',
  weakMarks: ['restarted_in_flight'],
  lateMarks: OVERDUE_MARKS,
  known: ({ bankReference: bank_reference }) =>
    bank_reference === undefined ? {} : { bank_reference },
  remember: (payout, to, at) => {
    if (to.includes('sent')) payout.sentAt = at;
    if (to.includes('completed')) payout.completedAt = at;
    if (payout.since >= payout.facts.due_at_ms) {
      payout.notOverdueBefore = payout.since + OVERDUE_AGAIN_MS;
    }
  },
  writeMove: (input) => (activities) => activities.recordPayoutMove(input),
  readStanding: (input) => (activities) => activities.readPayoutStanding(input),
  readLoaded: (input) => (activities) => activities.loadPayout(input),
  writeAttention: (input) => (activities) => activities.recordPayoutAttention(input),
});

/** When operators are told that it is overdue, in ms since the epoch. */
export function dueAt({ snoozedUntil, facts, notOverdueBefore }: Payout): number {
  return snoozedUntil ?? Math.max(facts.due_at_ms, notOverdueBefore);
}

import {
  ApplicationFailure,
  condition,
  proxyLocalActivities,
  sleep,
  TemporalFailure,
  workflowInfo,
} from '@temporalio/workflow';
import type { LifecycleActivities } from '../../activities';
import type {
  OpenPayout,
  PayoutChange,
  PayoutFacts,
  PayoutOpening,
} from '../../activities/payouts';
import type { PayoutAnswer } from '../../connectors/contract/activities';
import {
  type BankCallback,
  PAYOUT_CALLBACKS,
  type PayoutCallbackName,
  readCallback,
} from '../../src/domain/banks/callback';
import { take } from '../../src/domain/banks/movement';
import { NO_LOCK } from '../../src/domain/no-lock';
import {
  ACCEPT_WITHIN_MS,
  isEnded,
  isUnsent,
  OVERDUE_ATTENTION,
  PAYOUT_ACTS,
  PAYOUT_STATUSES,
  type PayoutAct,
  type PayoutAttention,
  type PayoutResult,
  type PayoutStart,
  type PayoutState,
  type PayoutStatus,
  type StoredVerification,
} from '../../src/domain/payout/payout';
import {
  defineMessages,
  getResource,
  type Mailbox,
  openMailbox,
  readResult,
  requireAccepted,
} from '../shared/inbox';
import { type Instructed, type InstructedItem, newInstructed } from '../shared/instructed-rules';
import { listOwn } from '../shared/movement';
import {
  ACKNOWLEDGE,
  type ActRules,
  OPERATOR,
  RESOLVE_MOVEMENT,
  SNOOZE,
  stateFault,
} from '../shared/operator-acts';
import { writeScheduled } from '../shared/persist';
import { ResourceRecord } from '../shared/record';
import { refuse } from '../shared/refusal';
import { FINAL, isReported, type ResourceSnapshot, type Waiting } from '../shared/state';

interface PayoutActResult extends PayoutState {
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

/** Contract, changed only by addition. */
export const messages = defineMessages<PayoutKind>(PAYOUT_ACTS, PAYOUT_CALLBACKS, readCallback, {
  open: 'Waits until the payout is sent or refused, 5 s at most. Sent by the API with the start.',
  resubmit:
    `Asks the bank, and sends the payout again only if the bank does not know it: ${OPERATOR}}. ` +
    'Answers with what the bank said.',
  mark_failed:
    `No money left or will leave: ${OPERATOR}}. The merchant gets it back. Asks the bank first, ` +
    'and is refused if the bank holds it, unless "bank_confirmed_not_executed" is true.',
  mark_returned:
    `The bank confirmed that the money came back: ${OPERATOR}}. ` +
    'An "amount" in minor units credits what really came.',
  mark_completed: `The bank confirmed that the recipient has the money: ${OPERATOR}}.`,
  release_unverified:
    'The payout is to be sent, although the bank could not confirm its recipient: the next file ' +
    `takes it: ${OPERATOR}}.`,
  snooze: SNOOZE,
  resolve_movement: RESOLVE_MOVEMENT,
  acknowledge: ACKNOWLEDGE,
  state: 'The state of the payout.',
  submitted: 'From the bank: taken, and queued there.',
  sent: 'From the bank: handed to the scheme.',
  completed: 'From the bank: the money reached the recipient.',
  failed: 'From the bank: rejected, the money never left.',
  returned: 'From the bank: the money left and came back.',
  called_duplicate: 'From the bank: it had arrived before, and may be executed.',
  debit_reversed: 'From the bank: it reversed its debit, and may book it again.',
  return_reversed: 'From the bank: it reversed a return.',
  payee_verified: 'From the bank: it has checked the name of the recipient; "result" says how.',
});

export function getState({ id, status, version }: Payout): PayoutState {
  return { payout_id: id, status, version };
}

export function getResult(mail: Pick<PayoutMailbox, 'opening'>, payout_id: string): PayoutResult {
  return readResult(mail, { payout_id, status: 'created', version: 0 }, getState);
}

const UNSENT = '`resubmit`, `mark_completed`, `mark_failed`, `snooze`';
const QUEUED = '`resubmit`, `release_unverified`, `mark_completed`, `mark_failed`, `snooze`';

const COMPLETED: Waiting = {
  what: 'nothing: it reached the recipient; where the rail allows it, it may still come back',
  updates: 'none here; on the command line `payout act ID mark_returned`, which starts it again',
};

const WAITING_FOR: Record<PayoutStatus, Waiting> = {
  created: { what: 'the bank to take it', updates: UNSENT },
  submitted: { what: 'the bank to hand it to the scheme', updates: QUEUED },
  sent: {
    what: 'the bank to say that it reached the recipient',
    updates: '`mark_completed`, `mark_failed`, `mark_returned`, `snooze`',
  },
  completed: COMPLETED,
  failed: FINAL,
  returned: FINAL,
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

export const record = new ResourceRecord<PayoutKind, Payout>({
  noun: 'payout',
  waitingFor: WAITING_FOR,
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
  lastingReasons: ['called_duplicate'],
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

const IN_FLIGHT = ['created', 'submitted', 'sent'] as const;

const only = (rest: string) => (status: PayoutStatus) => `The payout is ${status}; only ${rest}.`;

const ACTS: ActRules<PayoutAct, PayoutStatus> = {
  resubmit: {
    from: ['created', 'submitted'],
    refusal: only('one that the bank has not sent can be given to it again'),
  },
  mark_failed: {
    from: IN_FLIGHT,
    refusal: only('one that is under way can be marked as failed'),
  },
  mark_completed: {
    from: IN_FLIGHT,
    refusal: only('one that is under way can be marked as completed'),
  },
  mark_returned: {
    from: ['sent', 'completed'],
    refusal: only('one that was sent, and did not fail or return, can come back'),
  },
  release_unverified: {
    from: ['submitted'],
    refusal: only('one that the bank has not sent can be released'),
  },
  resolve_movement: { from: PAYOUT_STATUSES, refusal: only('what is in suspense') },
  snooze: { from: IN_FLIGHT, refusal: only('one that is under way can be snoozed') },
};

export function actFault(payout: Payout, what: PayoutAct): string | undefined {
  const fault = stateFault(ACTS, payout.status, what);
  if (fault !== undefined) return fault;
  const { facts, payee } = payout;
  if (what === 'release_unverified') {
    if (payee === undefined || payee.result === 'match') {
      return 'The bank has reported no recipient of it as not verified.';
    }
    return payee.released ? 'It was released already: its next file takes it.' : undefined;
  }
  if (what !== 'mark_returned') return undefined;
  // A bank's report against the rail's rules may be true: an operator decides.
  const isContradicted =
    isReported(payout, 'return_not_possible') || isReported(payout, 'failed_after_completed');
  return facts.can_be_returned || isContradicted
    ? undefined
    : `Nothing comes back on the rail ${facts.method}.`;
}

/** Additional time until the opening is known. */
const GRACE_MS = 1_000;

/** Longer than the slowest acceptance, and far within the time of a task. @see workflows/shared/persist.ts */
const ATTEMPT_MS_MAX = 2_000;
const PAUSE_MS = 200;
/** Jittered pause of a debit without the lock. */
const NO_LOCK_PAUSE_MS = 300;

export function openPayoutMailbox(start: PayoutStart): PayoutMailbox {
  const acceptBy = workflowInfo().startTime.getTime() + ACCEPT_WITHIN_MS;
  // A resumed payout was accepted before. An input that is no object is refused after this.
  return { ...openMailbox(start), acceptBy, attempted: 'resume' in Object(start) };
}

/** @param callerWaits the caller itself ends the wait */
export async function untilSent(mail: PayoutMailbox, callerWaits: boolean): Promise<Payout> {
  const isKnown = () => mail.opening !== undefined;
  const isSent = () => {
    const payout = getResource(mail);
    return isKnown() && (payout === undefined || !isUnsent(payout.status));
  };
  if (callerWaits) {
    // A waiting handler would keep a long history from continuing in a new run.
    await condition(() => isSent() || workflowInfo().continueAsNewSuggested);
    return requireAccepted(mail.opening);
  }
  // A timer would only start after the local activity that accepts the payout.
  await condition(() => mail.attempted);
  const left = Math.max(1, mail.acceptBy - Date.now());
  await condition(isSent, left, { summary: 'The API answers' });
  if (!isKnown()) await condition(isKnown, GRACE_MS, { summary: 'The API answers' });
  if (isKnown()) return requireAccepted(mail.opening);
  return refuse('temporarily_unavailable', 'It is not known yet whether the payout was accepted.');
}

/**
 * Reserves in time, or releases the key: an attempt that was given up may still succeed. Scheduled,
 * since a repeated task must find the idempotency record.
 */
export async function reserve(mail: PayoutMailbox, input: OpenPayout): Promise<PayoutOpening> {
  const opening = await reserveInTime(input);
  mail.attempted = true;
  if (opening?.outcome === 'accepted') return opening;
  const lateOpening = await writeScheduled((activities) => activities.abandonPayout(input));
  return lateOpening.outcome === 'accepted' ? lateOpening : (opening ?? lateOpening);
}

/**
 * Makes each attempt an activity, since the workflow's clock stands still while the SDK repeats a
 * local one.
 */
async function reserveInTime(input: OpenPayout): Promise<PayoutOpening | undefined> {
  const timeLeft = () => input.accept_by_ms - Date.now();
  for (let left = timeLeft(); left > 0; left = timeLeft()) {
    const { openPayout } = proxyLocalActivities<LifecycleActivities>({
      scheduleToCloseTimeout: Math.min(left, ATTEMPT_MS_MAX),
      retry: { maximumAttempts: 1 },
    });
    try {
      return await openPayout(input);
    } catch (error) {
      // A local time-out is an `ActivityFailure` at first, and a bare `TimeoutFailure` in a replay.
      if (!(error instanceof TemporalFailure)) throw error;
      const { cause } = error;
      const hasNoLock = cause instanceof ApplicationFailure && cause.type === NO_LOCK;
      const pause = hasNoLock ? NO_LOCK_PAUSE_MS * (1 + Math.random()) : PAUSE_MS;
      await sleep(pause, { summary: 'Accept the payout again' });
    }
  }
  return undefined;
}

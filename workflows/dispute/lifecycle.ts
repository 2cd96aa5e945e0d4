import { condition, setHandler, Trigger } from '@temporalio/workflow';
import type {
  BookedReport,
  DisputeOpening,
  OpenDispute,
  ReportAnswer,
} from '../../activities/disputes';
import { type BankCallback, getVerificationMode } from '../../src/domain/banks/callback';
import { omitUndefined } from '../../src/domain/defined';
import {
  DISPUTE_ANSWERS,
  DISPUTE_ID,
  DISPUTE_IN_FLIGHT,
  DISPUTE_STATUSES,
  type DisputeAct,
  type DisputeAnswer,
  type DisputeStatus,
  disputeWorkflowId,
  isDisputeClosed,
  REMINDER_MS,
} from '../../src/domain/dispute/dispute';
import { type DisputeCallbackName, OPENING_CALLBACKS } from '../../src/domain/dispute/report';
import type {
  DisputeInput,
  DisputeResponse,
  DisputeResume,
  DisputeStart,
} from '../../src/domain/dispute/workflow';
import { BOOKS_REFUSED } from '../../src/domain/lifecycle';
import { now, timestamp } from '../shared/clock';
import {
  getResource,
  listen,
  type Opening,
  openMailbox,
  receiveMissed,
  uncancelled,
} from '../shared/inbox';
import { cancelUnstartedSends, getEarlierArrival } from '../shared/instruction';
import { type Acts, handleCommon, type Lifecycle, runLifecycle } from '../shared/lifecycle';
import type { Due } from '../shared/loop';
import { type ActRules, datedAudit, stateFault } from '../shared/operator-acts';
import { writeScheduled } from '../shared/persist';
import { findSenderFault } from '../shared/record';
import { findRefusal, refuse, rejectUpdate } from '../shared/refusal';
import { isReported, note, showRefusal } from '../shared/state';
import { applyAnswer, beginAnswer, endWaits, instructBank, isTooLate } from './bank';
import {
  type Dispute,
  type DisputeCallback,
  type DisputeItem,
  type DisputeKind,
  type DisputeMailbox,
  type DisputeResult,
  getResult,
  getState,
  messages,
  newDispute,
  record,
  respond,
} from './state';

/** @see docs/api.md#disputes */
export async function dispute(start: DisputeStart): Promise<DisputeResult> {
  const mail: DisputeMailbox = openMailbox(start);
  listen(rules, mail, start);
  const enqueue = async (by: DisputeAnswer): Promise<DisputeResponse> => {
    const answer = new Trigger<DisputeResponse>();
    mail.inbox.push({ kind: 'respond', with: by, answer });
    return await answer;
  };
  setHandler(
    respond,
    uncancelled((input) => enqueue(input.with)),
    {
      description:
        'Sends what the merchant has stored: {"with": "evidence"}, or gives in: {"with": "acceptance"}.',
      validator: (input) => {
        const by: unknown = Object(input).with;
        if (!DISPUTE_ANSWERS.some((each) => each === by)) {
          refuse('invalid_request', `with: must be ${DISPUTE_ANSWERS.join(' or ')}`);
        }
        const dispute = getResource(mail);
        const isDone = by === 'acceptance' && dispute?.status === 'accepted';
        if (dispute !== undefined && isDisputeClosed(dispute.status) && !isDone) {
          refuse('dispute_closed', `The dispute is ${dispute.status}.`);
        }
      },
    },
  );
  await runLifecycle(rules, mail, () =>
    'resume' in start ? load(mail, start) : open(mail, start),
  );
  return getResult(mail, start.dispute_id);
}

const rules: Lifecycle<DisputeKind, Dispute, DisputeItem> = {
  kind: 'dispute',
  noun: 'dispute',
  isId: (id) => (DISPUTE_ID.test(String(id)) ? undefined : 'must be `dp_` and a UUID'),
  workflowId: disputeWorkflowId,
  messages,
  record,
  handle: async (dispute, item) => {
    switch (item.kind) {
      case 'respond':
        return await answerMerchant(dispute, item);
      case 'answer':
        return await applyAnswer(dispute, item.answer);
      default:
        return await handleCommon(rules, dispute, item);
    }
  },
  applyCallback: async (dispute, item) => {
    const { name, callback } = item;
    const about = { dispute_id: dispute.id, at: timestamp(dispute) };
    const input = { ...about, report: buildReport(name, callback) };
    const answer = await record.book(dispute, 'recordDisputeReport', input);
    record.applyBooked(dispute, answer);
    note(dispute, `callback ${name} (${callback.callback_id}): ${answer.outcome}`);
    await noteOutcome(dispute, item, answer);
  },
  actFault: ({ status }, what) => stateFault(ACTS, status, what),
  acts: {
    accept: async (dispute, audit) => {
      await record.recordAct(dispute, audit, dispute.attention);
      await beginAnswer(dispute, 'acceptance');
      return undefined;
    },
    /** Books what came back, as an operator knows. */
    dispute_won: async (dispute, act, { fee }) => {
      const { id, at: acted_at, ...audit } = datedAudit(act);
      const at = timestamp(dispute);
      const report = { name: 'dispute_won', callback_id: id, occurred_at: at } as const;
      const named = { ...report, ...omitUndefined({ fee }) };
      const input = { dispute_id: dispute.id, at, acted_at, report: named, audit };
      const answer = await record.book(dispute, 'recordDisputeReport', input);
      record.applyBooked(dispute, answer);
      if (answer.outcome === 'repeated') return 'The dispute is won already.';
      if (answer.outcome !== 'posted') return answer.why;
      record.enterReason(dispute, null);
      stopAnswering(dispute);
      record.show(dispute);
      return undefined;
    },
  } satisfies Acts<DisputeKind, Dispute>,
  isFinal: (dispute) => isDisputeClosed(dispute.status) && isIdle(dispute),
  isIdle,
  nextDue,
  getState,
  getResult,
};

function isIdle({ pendingSends, waiting, early }: Dispute): boolean {
  return pendingSends.size === 0 && waiting.length === 0 && early.length === 0;
}

/** Stores the dispute with the first report whose sender is verified. */
async function open(
  mail: DisputeMailbox,
  { clock, ...input }: DisputeInput,
): Promise<Opening<Dispute>> {
  const item = await takeOpening(mail, input);
  const { callback, name } = item;
  const report = buildReport(name, callback);
  const first = { ...input, created_at: timestamp(mail), report };
  const { opening, fault } = await store(first);
  if (opening.outcome === 'refused') {
    showRefusal({ status: 'needs_response', attention: null }, opening);
    return opening;
  }
  const { answer, ...state } = opening;
  const isApplied = answer !== undefined && fault === undefined;
  const applied = isApplied ? [callback.callback_id] : [];
  const snapshot = { ...state, attention: null, applied };
  const dispute = newDispute(mail, input.dispute_id, snapshot, false);
  note(dispute, `callback ${name} (${callback.callback_id}): ${answer?.outcome ?? 'known before'}`);
  // Another run has stored it.
  if (answer === undefined) mail.inbox.unshift(item);
  else if (fault !== undefined) {
    await record.flagGivenUp(dispute, `callback ${name} (${callback.callback_id})`, fault);
  } else await noteOutcome(dispute, item, answer);
  record.show(dispute);
  return { outcome: 'accepted', resource: dispute };
}

/** Stores the dispute without its money where MongoDB refuses the entry. */
async function store(input: OpenDispute): Promise<{ opening: DisputeOpening; fault?: string }> {
  try {
    return { opening: await writeScheduled((activities) => activities.openDispute(input)) };
  } catch (error) {
    const fault = findRefusal(error, BOOKS_REFUSED);
    if (fault === undefined) throw error;
    const without = { ...input, isRefused: true } as const;
    return {
      opening: await writeScheduled((activities) => activities.openDispute(without)),
      fault,
    };
  }
}

async function takeOpening(
  mail: DisputeMailbox,
  { payment_id: resource_id, connector, livemode }: Omit<DisputeInput, 'clock'>,
): Promise<DisputeCallback> {
  const verification = getVerificationMode(livemode);
  const others: DisputeItem[] = [];
  for (;;) {
    await condition(() => mail.inbox.length > 0);
    const item = mail.inbox.shift();
    if (item === undefined) continue;
    if (item.kind !== 'callback' || !OPENING_CALLBACKS.includes(item.name)) {
      others.push(item);
      continue;
    }
    const { name, callback, signature } = item;
    const about = { connector, resource: 'payment', resource_id, name, callback } as const;
    if ((await findSenderFault({ verification }, about, signature)) !== undefined) continue;
    mail.inbox.unshift(...others);
    return item;
  }
}

function buildReport(name: DisputeCallbackName, callback: BankCallback): BookedReport {
  const { callback_id, occurred_at, amount, currency, fee, code, value_date } = callback;
  const { bank_reference, dispute_status, evidence_due_at } = callback;
  return {
    ...{ name, callback_id, occurred_at },
    ...omitUndefined({ amount, currency, fee, code, value_date, dispute_status, evidence_due_at }),
    ...omitUndefined({ bank_reference: bank_reference || undefined }),
  };
}

async function load(mail: DisputeMailbox, start: DisputeResume): Promise<Opening<Dispute>> {
  const { dispute_id: resource_id, request_id } = start;
  const snapshot = await writeScheduled((activities) =>
    activities.loadDispute({ resource_id, request_id }),
  );
  const dispute = newDispute(mail, resource_id, snapshot, true);
  dispute.isOverdueReported = isReported(dispute, 'answer_overdue');
  receiveMissed(mail, messages, snapshot.missed);
  const ended = isDisputeClosed(dispute.status);
  record.logActivity(dispute, ended ? 'Started again after the end.' : 'Started again in flight.');
  if (dispute.answering !== null && !ended) instructBank(dispute, getEarlierArrival());
  return { outcome: 'accepted', resource: dispute };
}

async function noteOutcome(
  dispute: Dispute,
  report: DisputeCallback,
  answer: ReportAnswer,
): Promise<void> {
  const { name, callback } = report;
  switch (answer.outcome) {
    case 'posted':
      dispute.dueAt = answer.evidence_due_at ?? dispute.dueAt;
      // Nothing is sent after the end.
      if (isDisputeClosed(dispute.status)) stopAnswering(dispute);
      // It may have been taken now.
      dispute.inbox.unshift(...dispute.early.splice(0).map((early) => early.report));
      if (answer.isFeeRefused) await record.setAttention(dispute, 'dispute_differs');
      return record.show(dispute);
    case 'repeated':
      return await record.recordUnapplied(dispute, name, callback, 'the dispute is posted already');
    default:
      if (answer.isEarly) {
        dispute.early.push({ report, at: now(dispute) });
        return record.show(dispute);
      }
      await record.recordUnapplied(dispute, name, callback, answer.why);
      if (answer.outcome === 'refused') await record.setAttention(dispute, 'dispute_differs');
  }
}

function stopAnswering(dispute: Dispute): void {
  dispute.instruction += 1;
  endWaits(dispute);
}

/** Sends evidence once and in time, or an acceptance. */
async function answerMerchant(
  dispute: Dispute,
  { with: by, answer }: Extract<DisputeItem, { kind: 'respond' }>,
): Promise<void> {
  const { status, answering, isSubmitted, dueAt } = dispute;
  const isDone = by === 'evidence' ? isSubmitted : status === 'accepted';
  if (isDone) return answer.resolve({ ...getState(dispute), outcome: 'accepted' });
  const close = (why: string) => rejectUpdate(answer, 'dispute_closed', why);
  if (isDisputeClosed(status)) return close(`The dispute is ${status}.`);
  if (by === 'evidence') {
    if (answering === 'acceptance') return close('The dispute is being accepted.');
    if (isTooLate(dispute)) return close(`Evidence was taken until ${dueAt}.`);
  }
  // Only the first caller waits: the server bounds the updates that are under way, also an operator's.
  if (answering === by && dispute.waiting.length > 0) return answer.resolve(getState(dispute));
  await beginAnswer(dispute, by);
  dispute.waiting.push(answer);
}

function nextDue(dispute: Dispute): Due | undefined {
  const [early] = dispute.early;
  const due = findOwnDue(dispute);
  const at = early && early.at + EARLY_MS;
  if (at === undefined || (due !== undefined && due.at < at)) return due;
  const act = async () => {
    const why = 'more came back than the dispute took';
    for (const { report } of dispute.early.splice(0)) {
      await record.recordUnapplied(dispute, report.name, report.callback, why);
    }
    await record.setAttention(dispute, 'dispute_differs');
  };
  return { at, summary: 'What came back should have been taken', act };
}

/** A bank's movements of one dispute are reported together, in any order. */
const EARLY_MS = 3_600_000;

function findOwnDue(dispute: Dispute): Due | undefined {
  const { status, dueAt, answering, isOverdueReported, isReminded, isSubmitted } = dispute;
  if (isDisputeClosed(status)) return cancelUnstartedSends(dispute);
  if (answering !== null) {
    if (isOverdueReported) return undefined;
    const act = () => record.flagOverdue(dispute, 'answer_overdue');
    const at = dispute.snoozedUntil ?? dispute.answeringSince + ANSWER_MS;
    return { at, summary: "The bank's confirmation is due", act };
  }
  if (status !== 'needs_response' || dueAt === null || isReminded || isSubmitted) return undefined;
  if (isTooLate(dispute)) return undefined;
  const act = async () => {
    const { id: dispute_id } = dispute;
    const step = { dispute_id, at: timestamp(dispute), step: { kind: 'reminded' } } as const;
    await record.book(dispute, 'recordDisputeStep', step);
    dispute.isReminded = true;
    record.logActivity(dispute, 'The team was reminded of the deadline.');
  };
  return { at: Date.parse(dueAt) - REMINDER_MS, summary: 'The team gets a reminder', act };
}

/** A bank confirms in a moment that it has an answer. */
const ANSWER_MS = 3_600_000;

const ACTS: ActRules<DisputeAct, DisputeStatus> = {
  accept: {
    from: DISPUTE_IN_FLIGHT,
    refusal: (status) => `The dispute is ${status}; only an open one can be accepted.`,
  },
  dispute_won: {
    from: DISPUTE_STATUSES.filter((status) => status !== 'won'),
    refusal: () => 'The dispute is won already.',
  },
  snooze: {
    from: DISPUTE_IN_FLIGHT,
    refusal: (status) => `The dispute is ${status}; nothing of it is overdue.`,
  },
};

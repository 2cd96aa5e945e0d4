import { ApplicationFailure } from '@temporalio/activity';
import type { ClientSession } from 'mongodb';
import { getVerificationMode } from '../src/domain/banks/callback';
import { omitUndefined } from '../src/domain/defined';
import {
  DISPUTE_TRANSITIONS,
  type DisputeAnswer,
  type DisputeAttention,
  type DisputeStatus,
  getDisputeEvent,
  isDisputeClosed,
} from '../src/domain/dispute/dispute';
import {
  type ChargedFee,
  computeBorneFee,
  type DisputeDecision,
  type DisputeReport,
  type DisputeTransfer,
  decideReport,
  shareReturnedFee,
  sumTaken,
} from '../src/domain/dispute/report';
import type { DisputeInput } from '../src/domain/dispute/workflow';
import type { ErrorCode } from '../src/domain/errors';
import type { EventType } from '../src/domain/events/event';
import type { FeeBearer } from '../src/domain/merchants/acquirer-fee';
import { bookId } from '../src/ledger/entries';
import { buildDisputeTransfer } from '../src/ledger/resource-entries';
import { nameDisputed, recordDisputed, withFreeNames } from '../src/movements/register';
import { type RecordedEvents, startDeliveries } from '../src/service/events/deliveries';
import { notifyTeam } from '../src/service/merchants/mail/outbox';
import type { DisputeDocument } from '../src/store/disputes';
import type { PaymentDocument } from '../src/store/payments';
import { buildEvents, insertEvents, positionAt, readSubscribers } from './shared/events';
import {
  buildLockRequest,
  findFeeBearer,
  openWithRetry,
  splitDebit,
  withDebitLock,
} from './shared/opening';
import { auditAct, buildAuditEntry } from './shared/operator-acts';
import { bookInBook, bookOnce, createRecord, type Work } from './shared/record';
import { startPendingDeliveries } from './shared/record-move';
import {
  type Act,
  buildCommonChange,
  type Known,
  type OpenedState,
  type RecordAttention,
  type RecordDeps,
  type RecordTable,
  type WriteAnswer,
} from './shared/record-table';

export type DisputeFacts = ReturnType<typeof readFacts>;

/** Report, or act, with what the ledger needs. */
export interface BookedReport extends DisputeReport {
  value_date?: string;
  /** Bearer of the fee when a history was written. */
  fee_bearer?: FeeBearer;
}

export type OpenDispute = Omit<DisputeInput, 'clock'> & {
  created_at: string;
  report: BookedReport;
  /** MongoDB has refused the entry: the dispute is stored, and its report not applied. */
  isRefused?: true;
  /** Posted before: later refunds may have left less. */
  rebuilding?: true;
};

export type ReportAnswer =
  | {
      outcome: 'posted';
      status: DisputeStatus;
      transition: number;
      evidence_due_at: string | null;
      /** Version that a lost task has reached. */
      reached?: number;
      /** Without a reason, which the report may have ended. */
      attention?: null;
      isFeeRefused?: true;
      /** Bearer of the fee that it charged. */
      fee_bearer?: FeeBearer;
    }
  | { outcome: 'repeated' }
  | { outcome: 'late' | 'refused'; why: string; isEarly?: true };

export type DisputeOpening =
  | ({
      outcome: 'accepted';
      facts: DisputeFacts;
      evidence_due_at: string | null;
      /** Undefined where an earlier run has opened it: the report is decided on as any other. */
      answer?: ReportAnswer;
    } & OpenedState<DisputeStatus>)
  | { outcome: 'refused'; code: ErrorCode; message: string };

export interface DisputeChange {
  evidence_submitted_at: string;
  answering: null;
}

export interface BookDispute extends Known {
  dispute_id: string;
  at: string;
  report: BookedReport;
  /** Act of an operator, of which the report is made. */
  audit?: Act;
  acted_at?: string;
  rebuilding?: true;
}

/** Step that the workflow has begun or done, apart from transitions. */
type DisputeStep =
  | { kind: 'answering'; answer: DisputeAnswer }
  | { kind: 'refused'; answer: DisputeAnswer }
  | { kind: 'reminded' };

interface RecordStep extends Known {
  dispute_id: string;
  at: string;
  step: DisputeStep;
}

/** @see docs/api.md#disputes */
export function createDisputeActivities(deps: RecordDeps) {
  const { stores } = deps;
  const table: RecordTable<DisputeDocument, DisputeChange> = {
    resource: 'dispute',
    store: stores.disputes,
    transitions: DISPUTE_TRANSITIONS,
    events: NO_EVENTS,
    getEvent: getDisputeEvent,
    eventData,
    buildChange: (transition) => {
      const { from, at, to, change } = transition;
      const isClosing = !isDisputeClosed(from.status) && to.some(isDisputeClosed);
      return {
        ...buildCommonChange(transition),
        ...(isClosing ? { closed_at: at } : {}),
        ...change,
      };
    },
    posted: [],
    post: async ({ _id, payment_id, status }, { from, at }, session) => {
      await stores.disputes.dropEvidence(_id, session);
      if (!isDisputeClosed(from.status) && isDisputeClosed(status)) {
        await stores.payments.countDisputed(payment_id, { open: -1, at }, session);
      }
      return [];
    },
  };
  const record = createRecord(deps, table, (dispute, request_id) => ({
    facts: readFacts(dispute, request_id),
    evidence_due_at: dispute.evidence_due_at,
    isSubmitted: dispute.evidence_submitted_at !== null,
    isReminded: dispute.reminded_at !== undefined,
    answering: dispute.answering ?? null,
    answering_since: dispute.answering_since ?? null,
  }));
  return {
    openDispute: (input: OpenDispute): Promise<DisputeOpening> =>
      openWithRetry(() => openDispute(deps, input)),
    recordDisputeReport: (
      input: BookDispute,
    ): Promise<WriteAnswer<DisputeDocument, ReportAnswer>> => recordReport(deps, input),
    recordDisputeStep: (input: RecordStep): Promise<WriteAnswer<DisputeDocument>> =>
      recordStep(deps, input),
    recordDisputeMove: record.transition,
    /** @throws ApplicationFailure not retryable, `evidence_not_supported` */
    recordDisputeAttention: async (input: RecordAttention<DisputeAttention>) => {
      const isAccepted = input.audit?.what === 'accept' && !deps.isRebuild;
      const dispute = isAccepted ? await stores.disputes.get(input.resource_id) : null;
      const report = dispute && (await stores.capabilities.get(dispute.connector));
      if (!report || report.functions.includes('acceptDispute')) {
        return await record.setAttention(input);
      }
      // It would never arrive.
      throw ApplicationFailure.nonRetryable(
        'The bank takes no answers to disputes over this service: accept it at the bank.',
        'evidence_not_supported',
      );
    },
    loadDispute: record.load,
  };
}

const NO_EVENTS = {
  needs_response: undefined,
  under_review: undefined,
  won: undefined,
  lost: undefined,
  accepted: undefined,
} as const;

function eventData({ _id, payment_id }: Pick<DisputeDocument, '_id' | 'payment_id'>) {
  return { dispute_id: _id, payment_id };
}

function readFacts(dispute: DisputeDocument, request_id: string) {
  const { _id, payment_id, name, account_id, livemode, amount, currency } = dispute;
  const { method, connector } = dispute;
  const ids = { dispute_id: _id, payment_id, name };
  return { ...ids, account_id, livemode, amount, currency, method, connector, request_id };
}

/** Stores a dispute with its first report. Where its money does not fit, it has taken none. */
async function openDispute(deps: RecordDeps, input: OpenDispute): Promise<DisputeOpening> {
  const { stores, log } = deps;
  const { dispute_id, payment_id, account_id, livemode, created_at: at, request_id } = input;
  const report = await limitFee(deps, input.connector, input);
  const isFeeRefused = report !== input.report;
  const existing = await stores.disputes.get(dispute_id);
  if (existing !== null) {
    await startPendingDeliveries(deps, existing);
    const isOwn = existing.applied_callbacks?.[0] === report.callback_id;
    return accept(existing, input, isOwn ? toPosted(existing, report, isFeeRefused) : undefined);
  }
  const subscribers = await readSubscribers(stores, account_id, livemode);
  const subject = { resource: 'dispute', resource_id: dispute_id, account_id, livemode } as const;
  const data = eventData({ _id: dispute_id, payment_id });
  const transitions = [{ type: 'dispute.opened', transition: 1 }] as const;
  const events = buildEvents({ ...subject, data, at, request_id, transitions }, subscribers);
  const open = async (session: ClientSession, clashes: number) => {
    const payment = await stores.payments.get(payment_id, session);
    const isOwn = payment?.account_id === account_id && payment.livemode === livemode;
    if (!isOwn || payment.status !== 'settled') return null;
    const { name } = input;
    const about = { _id: dispute_id, name, kind: 'dispute_opened', request_id } as const;
    const fresh = newDispute(payment, { ...about, bank_reference: name }, at);
    const { currency: _currency, ...told } = report;
    const moneyless = { ...told, amount: 0, fee: 0 };
    const disputed = toDisputed(payment, input);
    const decision = decideReport(disputed, null, input.isRefused ? moneyless : report);
    const isPosted = decision.kind === 'applied' && !input.isRefused;
    // Its deadline counts, also where its money does not fit.
    const applicable =
      decision.kind === 'refused' ? decideReport(disputed, null, moneyless) : decision;
    const booked = { at, clashes, report };
    const change = await applyDecision(deps, payment, fresh, applicable, booked, session);
    const applied_callbacks = isPosted ? [report.callback_id] : [];
    const dispute = { ...fresh, ...change, applied_callbacks };
    await stores.disputes.insert(dispute, session);
    const { status, amount } = dispute;
    const counted = { amount, open: isDisputeClosed(status) ? 0 : 1, at };
    await stores.payments.countDisputed(payment_id, counted, session);
    if (isPosted) await stores.payments.noteApplied(payment_id, report.callback_id, session);
    await insertEvents(stores, events, session);
    return { dispute, answer: toAnswer(decision, dispute, report, isFeeRefused) };
  };
  const lock = buildLockRequest(bookId(input), at);
  const opened = await withFreeNames((clashes) =>
    withDebitLock(deps, lock, (session) => open(session, clashes)),
  );
  if (opened === null) {
    const message = 'Only a settled payment can be disputed.';
    return { outcome: 'refused', code: 'payment_not_settled', message };
  }
  await startDeliveries(deps, events);
  log.info({ dispute_id, request_id }, 'dispute opened');
  return accept(opened.dispute, input, opened.answer);
}

function accept(
  dispute: DisputeDocument,
  { request_id }: OpenDispute,
  answer: ReportAnswer | undefined,
): DisputeOpening {
  const { status, version, transition, livemode, evidence_due_at } = dispute;
  const verification = getVerificationMode(livemode);
  const state = { status, version, transition, verification };
  const facts = readFacts(dispute, request_id);
  return { outcome: 'accepted', facts, evidence_due_at, ...state, ...omitUndefined({ answer }) };
}

/** Builds a dispute that has taken no money yet. */
export function newDispute(
  payment: PaymentDocument,
  about: Pick<DisputeDocument, '_id' | 'name' | 'kind' | 'request_id' | 'bank_reference'>,
  at: string,
): DisputeDocument {
  const { _id: payment_id, account_id, livemode, currency, method, connector } = payment;
  return {
    ...about,
    ...{ account_id, livemode, payment_id, currency, method, connector },
    version: 1,
    transition: 1,
    position: positionAt(at),
    status: 'needs_response',
    amount: 0,
    fee: 0,
    reason: null,
    failure: null,
    evidence_due_at: null,
    evidence_submitted_at: null,
    closed_at: null,
    created_at: at,
    updated_at: at,
    attention: null,
    audit: [],
    transfers: [],
  };
}

/** Lets fit what was posted once, whatever was refunded since. */
function toDisputed(payment: PaymentDocument, { rebuilding }: { rebuilding?: true }) {
  return rebuilding ? { ...payment, refunded: 0, refunded_over: 0 } : payment;
}

/**
 * Leaves out a fee above what the connector has declared. An operator gives back no more than was
 * charged. @returns the same report within it
 */
async function limitFee(
  { stores }: RecordDeps,
  connector: string,
  { report, audit, rebuilding }: Pick<BookDispute, 'report' | 'audit' | 'rebuilding'>,
): Promise<BookedReport> {
  const { fee = 0 } = report;
  if (fee === 0 || audit !== undefined || rebuilding) return report;
  const { dispute_fee_max } = (await stores.capabilities.get(connector)) ?? {};
  if (dispute_fee_max == null || fee <= dispute_fee_max) return report;
  return { ...report, fee: 0 };
}

function toAnswer(
  decision: DisputeDecision,
  dispute: DisputeDocument,
  report: BookedReport,
  isFeeRefused: boolean,
): ReportAnswer {
  switch (decision.kind) {
    case 'applied':
    case 'named':
      return toPosted(dispute, report, isFeeRefused);
    case 'repeated':
      return decision.isOwn ? toPosted(dispute, report, isFeeRefused) : { outcome: 'repeated' };
    default: {
      const { kind: outcome, ...reason } = decision;
      return { outcome, ...reason };
    }
  }
}

/** Answers a repeat, too, what was posted of a report: a rebuild reads it there. */
function toPosted(
  { status, transition, evidence_due_at, transfers, attention }: DisputeDocument,
  { callback_id }: BookedReport,
  isFeeRefused: boolean,
): Extract<ReportAnswer, { outcome: 'posted' }> {
  const { fee = 0, fee_bearer = 'merchant' } = transfers.find(({ by }) => by === callback_id) ?? {};
  const borne: { fee_bearer?: FeeBearer } = fee === 0 ? {} : { fee_bearer };
  const refused = isFeeRefused ? { isFeeRefused } : {};
  const reason = attention === null ? { attention } : {};
  const state = { status, transition, evidence_due_at };
  return { outcome: 'posted', ...state, ...reason, ...borne, ...refused };
}

interface Booked {
  at: string;
  report: BookedReport;
  /** Tries that found a name taken. */
  clashes: number;
  isAct?: boolean;
}

/** Posts what a report transfers. @returns what changes of the document */
async function applyDecision(
  deps: RecordDeps,
  payment: PaymentDocument,
  dispute: DisputeDocument,
  decision: DisputeDecision,
  booked: Booked,
  session: ClientSession,
): Promise<Partial<DisputeDocument>> {
  const { at } = booked;
  if (decision.kind === 'named') {
    const { by, bank_reference } = decision;
    await nameDisputed(deps.stores, dispute.payment_id, decision, booked, session);
    const transfers = dispute.transfers.map((transfer) =>
      transfer.by === by ? { ...transfer, bank_reference } : transfer,
    );
    return { transfers, updated_at: at };
  }
  if (decision.kind !== 'applied') return {};
  const { to, transfer, change } = decision;
  const isClosing = isDisputeClosed(to) && to !== dispute.status;
  const earlier = dispute.transfers.filter(({ direction }) => direction === transfer?.direction);
  // The first transfer of each direction has the name of the dispute.
  const step = earlier.length === 0 ? dispute.name : `${dispute._id}#${earlier.length + 1}`;
  const money =
    transfer &&
    (await postTransfer(deps, payment, dispute, { ...transfer, step }, booked, session));
  return {
    ...change,
    ...money,
    status: to,
    updated_at: at,
    ...(isClosing ? { closed_at: at } : {}),
  };
}

/** Posts what a dispute takes or gives back. @returns the sums after it */
export async function postTransfer(
  { stores }: RecordDeps,
  payment: PaymentDocument,
  dispute: DisputeDocument,
  { step, direction, amount, fee }: Pick<DisputeTransfer, 'step' | 'direction' | 'amount' | 'fee'>,
  { at, report, clashes, isAct = false }: Booked,
  session: ClientSession,
): Promise<Pick<DisputeDocument, 'transfers' | 'amount' | 'fee'>> {
  const { callback_id: by, bank_reference, value_date } = report;
  const charge = { fee, fee_bearer: report.fee_bearer };
  let charged: ChargedFee = { fee };
  if (direction === 'in') charged = shareReturnedFee(dispute.transfers, fee);
  else if (fee > 0 && (await findFeeBearer(stores, dispute, charge, session)) === 'service') {
    charged = { fee, fee_bearer: 'service' };
  }
  const moved = amount + computeBorneFee(charged);
  const parts =
    direction === 'out' && moved > 0
      ? await splitDebit(stores.ledger, payment, moved, session)
      : { held: 0, owed: 0 };
  const transfer: DisputeTransfer = {
    ...omitUndefined({ step }),
    ...{ direction, amount, ...charged, ...parts, at, by },
    ...omitUndefined({ bank_reference: bank_reference || undefined }),
  };
  const transfers = [...dispute.transfers, transfer];
  const sums = { transfers, ...sumTaken(transfers) };
  if (moved === 0) return sums;
  const time = { at, value_date, bank_reference };
  const entry = buildDisputeTransfer(payment, dispute.kind, transfer, time);
  await stores.ledger.post(entry, session);
  // A fee alone is on the bank's statement as its charge.
  if (amount === 0) return sums;
  const source = { kind: isAct ? 'act' : 'callback', id: by } as const;
  const borne = { fee, fee_bearer: charged.fee_bearer ?? ('merchant' as const), amount };
  const movement = { direction, ...borne, dispute: dispute._id, source, entry, clashes };
  await recordDisputed(stores, payment, movement, session);
  return sums;
}

/** Decides on a report, and writes all that it changes in one transaction. */
async function recordReport(
  deps: RecordDeps,
  input: BookDispute,
): Promise<WriteAnswer<DisputeDocument, ReportAnswer>> {
  const { stores } = deps;
  const { dispute_id, at, audit: act, acted_at = at, version, transition } = input;
  const { callback_id } = input.report;
  let events: RecordedEvents = { events: [], deliveries: [] };
  const booking = { resource_id: dispute_id, at, version, transition };
  const answer = await bookInBook(
    deps,
    stores.disputes,
    booking,
    async (dispute, session, clashes): Promise<Work<ReportAnswer>> => {
      const { payment_id, connector } = dispute;
      const report = await limitFee(deps, connector, input);
      const isFeeRefused = report !== input.report;
      const isOwn =
        dispute.applied_callbacks?.includes(callback_id) ||
        dispute.audit.some(({ id }) => id === callback_id);
      if (isOwn) {
        await startPendingDeliveries(deps, dispute);
        const posted = toPosted(dispute, report, isFeeRefused);
        return { answer: { ...posted, reached: dispute.version }, isNew: false };
      }
      const payment = await stores.payments.get(payment_id, session);
      if (payment === null) throw new Error(`The record of ${payment_id} is not there.`);
      const decision = decideReport(toDisputed(payment, input), dispute, report);
      const isWritten = decision.kind === 'applied' || decision.kind === 'named';
      if (!isWritten) {
        return { answer: toAnswer(decision, dispute, report, isFeeRefused), isNew: false };
      }
      const booked = { at, report, clashes, isAct: act !== undefined };
      const change = await applyDecision(deps, payment, dispute, decision, booked, session);
      const moved = decision.kind === 'applied' ? 1 : 0;
      const { amount = dispute.amount, status: to = dispute.status } = change;
      const isOver = moved > 0 && endsReason(dispute.attention, to);
      const reason = isOver ? { attention: null } : {};
      const counted = { ...change, ...reason, transition: dispute.transition + moved };
      await stores.disputes.change(dispute_id, counted, session);
      const open = !isDisputeClosed(dispute.status) && isDisputeClosed(to) ? -1 : 0;
      const sums = { amount: amount - dispute.amount, open, at };
      await stores.payments.countDisputed(payment_id, sums, session);
      if (isDisputeClosed(to)) await stores.disputes.dropEvidence(dispute_id, session);
      if (act === undefined) {
        await stores.disputes.noteApplied(dispute_id, callback_id, session);
        await stores.payments.noteApplied(payment_id, callback_id, session);
      } else {
        const { _id: resource_id, account_id, livemode, status: before, audit } = dispute;
        const acted = { act, id: callback_id, at: acted_at, before, after: 'won' };
        const subject = { resource: 'dispute', resource_id, account_id, livemode } as const;
        await auditAct(deps, subject, acted, session);
        const entries = [...audit, buildAuditEntry(acted)];
        await stores.disputes.change(resource_id, { audit: entries, attention: null }, session);
      }
      if (moved > 0) events = await writeEvent(deps, dispute, to, at, session);
      return {
        answer: toAnswer(decision, { ...dispute, ...counted }, report, isFeeRefused),
        isNew: true,
      };
    },
  );
  await startDeliveries(deps, events);
  return answer;
}

/** @see docs/operators.md#attention-reasons */
function endsReason(reason: DisputeAttention | null, to: DisputeStatus): boolean {
  if (reason === 'answer_overdue') return isDisputeClosed(to);
  return reason === 'sender_not_known' || reason === 'record_behind';
}

async function writeEvent(
  { stores }: RecordDeps,
  dispute: DisputeDocument,
  to: DisputeStatus,
  at: string,
  session: ClientSession,
): Promise<RecordedEvents> {
  const { _id, account_id, livemode, transition, request_id } = dispute;
  const subscribers = await readSubscribers(stores, account_id, livemode);
  const type: EventType = getDisputeEvent(dispute.status, to);
  const subject = { resource: 'dispute', resource_id: _id, account_id, livemode } as const;
  const transitions = [{ type, transition: transition + 1 }];
  const about = { ...subject, data: eventData(dispute), at, request_id, transitions };
  const events = buildEvents(about, subscribers);
  await insertEvents(stores, events, session);
  return events;
}

function recordStep(deps: RecordDeps, input: RecordStep): Promise<WriteAnswer<DisputeDocument>> {
  const { stores } = deps;
  const { dispute_id: resource_id, at, step } = input;
  return bookOnce<DisputeDocument, object>(
    deps,
    stores.disputes,
    { ...input, resource_id },
    async (dispute, session) => {
      const change = buildStepChange(dispute, step, at);
      if (change === undefined) return { answer: {}, isNew: false };
      await stores.disputes.change(resource_id, change, session);
      const isEvidenceRefused = step.kind === 'refused' && step.answer === 'evidence';
      if (isEvidenceRefused) await stores.disputes.dropEvidence(resource_id, session);
      const { account_id, livemode, evidence_due_at: due_at } = dispute;
      if (step.kind === 'reminded' && !deps.isRebuild && due_at !== null) {
        const subject = { kind: 'dispute_due', dispute_id: resource_id, due_at, livemode } as const;
        const now = () => new Date();
        const ends_at = new Date(now().getTime() + MAIL_MS);
        await notifyTeam({ stores, now }, account_id, subject, ends_at, session);
      }
      return { answer: {}, isNew: true };
    },
  );
}

/** @returns undefined for a repeat */
function buildStepChange(
  { answering, answers_refused = [], reminded_at }: DisputeDocument,
  step: DisputeStep,
  at: string,
): Partial<DisputeDocument> | undefined {
  switch (step.kind) {
    case 'answering':
      if (answering === step.answer) return undefined;
      return { answering: step.answer, answering_since: at };
    case 'refused':
      if (answering !== step.answer) return undefined;
      return { answering: null, answers_refused: [...new Set([...answers_refused, step.answer])] };
    default:
      return reminded_at === undefined ? { reminded_at: at } : undefined;
  }
}

/** A sandbox's deadline is by its own clock, and a mail server may be down for a while. */
const MAIL_MS = 72 * 3_600_000;

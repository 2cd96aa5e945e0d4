import { Context } from '@temporalio/activity';
import {
  WithStartWorkflowOperation,
  WorkflowNotFoundError,
  WorkflowUpdateFailedError,
} from '@temporalio/client';
import { ApplicationFailure, type Workflow } from '@temporalio/common';
import type { ClientSession } from 'mongodb';
import type { BankCallback, CallbackSignature } from '../src/domain/banks/callback';
import { isDisputeClosed } from '../src/domain/dispute/dispute';
import {
  type DisputeCallbackName,
  OPENING_CALLBACKS,
  sumTaken,
  undisputedAmount,
} from '../src/domain/dispute/report';
import type { DisputeInput } from '../src/domain/dispute/workflow';
import { readAccountTime } from '../src/domain/merchants/clock';
import { type ApprovalRequired, isApprovalRequired } from '../src/domain/operators/approval';
import type { ActPayload } from '../src/domain/operators/operator-act';
import type { PaymentAttention } from '../src/domain/payment/payment';
import { settledAmount } from '../src/ledger/resource-entries';
import { LIFECYCLES } from '../src/lifecycles';
import { type DisputeDocument, disputeId } from '../src/store/disputes';
import type { PaymentDocument } from '../src/store/payments';
import { isTimeout } from '../src/temporal/deadline';
import { assertNotBehind, firstRun, nextRun } from '../src/temporal/start';
import { newDispute, postTransfer } from './disputes';
import { auditAct, buildAuditEntry } from './shared/operator-acts';
import { bookInBook, bookOnce, type Work } from './shared/record';
import type { Act, Known, RecordDeps, WriteAnswer } from './shared/record-table';

/**
 * Passes the bank's reports about disputes of a payment on to their workflows, and posts the
 * chargebacks of operators.
 * @see docs/ledger.md#money-that-goes-wrong
 */
export function createPaymentDisputes(deps: RecordDeps) {
  const { payments } = deps.stores;
  return {
    recordDispute: (input: Booking): Promise<WriteAnswer<PaymentDocument>> =>
      bookOnce<PaymentDocument, object>(
        deps,
        payments,
        toBooking(input),
        async ({ _id }, session) => {
          const { matchedCount } = await payments.dispute(_id, input.at, session);
          return { answer: {}, isNew: matchedCount === 1 };
        },
      ),
    forwardDispute: (input: Forwarding): Promise<Forwarded> => forwardReport(deps, input),
    forwardDisputeAct: (input: ForwardedAct): Promise<ActAnswer> => forwardAct(deps, input),
    /** Merchant owes what the balance lacks. */
    clawBack: (input: Chargeback): Promise<ChargebackResult> => postChargeback(deps, input),
    liftDispute: (input: DisputeLift): Promise<LiftResult> => liftDispute(deps, input),
  };
}

interface Forwarding {
  payment_id: string;
  name: DisputeCallbackName;
  callback: BankCallback;
  signature?: CallbackSignature;
  request_id: string;
}

type Forwarded = { outcome: 'forwarded' } | { outcome: 'refused'; why: string };

/**
 * Signals the workflow of a dispute with the bank's report, and starts it with the first one. A
 * repeat changes nothing: the dispute applies a callback once.
 */
async function forwardReport(deps: RecordDeps, input: Forwarding): Promise<Forwarded> {
  const { stores, temporal } = deps;
  const { payment_id, name, callback, signature, request_id } = input;
  const payment = await stores.payments.get(payment_id);
  if (payment === null) throw new Error(`The record of ${payment_id} is not there.`);
  const disputes = await stores.disputes.forPayment(payment_id);
  const isOpening = OPENING_CALLBACKS.includes(name);
  const own = callback.dispute_id ?? findUnnamed(disputes, name, callback);
  if (own === undefined) return { outcome: 'refused', why: UNKNOWN };
  const id = disputeId(payment_id, own);
  const payload = signature === undefined ? callback : { ...callback, mac: signature };
  const { workflowId, workflowType } = LIFECYCLES.dispute;
  try {
    await temporal.workflow.getHandle(workflowId(id)).signal(name, payload);
    return { outcome: 'forwarded' };
  } catch (error) {
    // It does not run.
    if (!(error instanceof WorkflowNotFoundError)) throw error;
  }
  const dispute = await stores.disputes.get(id);
  if (dispute?.kind === 'clawed_back') return { outcome: 'refused', why: OF_OPERATOR };
  if (dispute === null && !isOpening) return { outcome: 'refused', why: UNKNOWN };
  const queue = getLifecycleQueue();
  const signal = { signal: name, signalArgs: [payload] };
  if (dispute !== null) {
    await assertNotBehind(deps, 'dispute', dispute);
    const start = nextRun('dispute', dispute, queue, callback.callback_id);
    await temporal.workflow.signalWithStart(workflowType, { ...start, ...signal });
    return { outcome: 'forwarded' };
  }
  const { account_id, livemode, currency, method, connector } = payment;
  const account = livemode ? null : await stores.accounts.get(account_id);
  const clock = readAccountTime(livemode, account?.clock);
  const start: DisputeInput = {
    ...{ dispute_id: id, payment_id, name: own, account_id, livemode, currency, method, connector },
    amount: callback.amount ?? 0,
    request_id,
    ...(clock.offset_ms === 0 ? {} : { clock }),
  };
  await temporal.workflow.signalWithStart(workflowType, {
    ...firstRun('dispute', id, start, queue, undefined),
    ...signal,
  });
  if (callback.dispute_id !== undefined) return { outcome: 'forwarded' };
  try {
    // The next report finds a dispute that its bank does not name as the only one.
    const handle = temporal.workflow.getHandle(workflowId(id));
    await temporal.withDeadline(Date.now() + STORED_MS_MAX, () => handle.executeUpdate('open'));
  } catch (error) {
    if (!(error instanceof WorkflowUpdateFailedError || isTimeout(error))) throw error;
  }
  return { outcome: 'forwarded' };
}

const STORED_MS_MAX = 5_000;

const UNKNOWN = 'the payment has no such dispute';
const OF_OPERATOR = 'an operator has posted a chargeback under this name';

/**
 * Finds which dispute a bank means that names none: the only one. Money that it takes may also be
 * the first report of a further one.
 */
function findUnnamed(
  disputes: readonly DisputeDocument[],
  name: DisputeCallbackName,
  { callback_id, bank_reference }: BankCallback,
): string | undefined {
  if (name === 'dispute_opened') return callback_id;
  const isTaking = name === 'dispute_withdrawn';
  const opened = disputes.filter(({ kind }) => kind === 'dispute_opened');
  // A repeat is of the dispute that has the money, also after its end.
  const taken = opened.find(({ transfers }) =>
    transfers.some(
      ({ direction, by, bank_reference: own }) =>
        direction === 'out' && (by === callback_id || (bank_reference && own === bank_reference)),
    ),
  );
  if (isTaking && taken !== undefined) return taken.name;
  const [only, another] = opened.filter(({ status, transfers }) => {
    if (!isTaking) return true;
    // A bank may also take the money of an inquiry after the merchant has accepted it.
    const isOpen = !isDisputeClosed(status) || status === 'accepted';
    return isOpen && sumTaken(transfers).amount === 0;
  });
  const known = another === undefined ? only?.name : undefined;
  return known ?? (isTaking ? callback_id : undefined);
}

/** Queue of this very worker, without its environment. */
function getLifecycleQueue(): string {
  return Context.current().info.taskQueue.replace(/-live$/, '');
}

interface ForwardedAct {
  payment_id: string;
  /** Name of the dispute; null: the only one. */
  dispute_id: string | null;
  act: ActPayload;
  /** Update's id, so that a repeat does it once. */
  id: string;
}

type ActAnswer =
  /** The payment's workflow decides: no dispute of a bank is meant. */
  | { outcome: 'own' }
  | { outcome: 'done' }
  | { outcome: 'approval_required'; approval_id: string }
  | { outcome: 'refused'; code: string; message: string };

/** Sends an operator's `dispute_won` to the dispute that is meant, if it is a bank's. */
async function forwardAct(deps: RecordDeps, input: ForwardedAct): Promise<ActAnswer> {
  const { stores, temporal } = deps;
  const { payment_id, dispute_id, act, id } = input;
  const disputes = await stores.disputes.forPayment(payment_id);
  const found = findLiftable(disputes, dispute_id, act.fee ?? 0);
  if (typeof found === 'string') return { outcome: 'refused', code: 'wrong_state', message: found };
  if (found === null || found.kind === 'clawed_back') return { outcome: 'own' };
  await assertNotBehind(deps, 'dispute', found);
  const start = new WithStartWorkflowOperation(LIFECYCLES.dispute.workflowType, {
    ...nextRun('dispute', found, getLifecycleQueue(), id),
    workflowIdConflictPolicy: 'USE_EXISTING',
  });
  const { dispute_id: _name, ...payload } = act;
  try {
    const answer = await temporal.workflow.executeUpdateWithStart<
      Workflow,
      object | ApprovalRequired,
      [ActPayload]
    >('dispute_won', { updateId: id, args: [payload], startWorkflowOperation: start });
    if (!isApprovalRequired(answer)) return { outcome: 'done' };
    return { outcome: 'approval_required', approval_id: answer.approval_id };
  } catch (error) {
    const { cause } = error instanceof WorkflowUpdateFailedError ? error : { cause: undefined };
    if (!(cause instanceof ApplicationFailure)) throw error;
    return { outcome: 'refused', code: cause.type ?? 'wrong_state', message: cause.message };
  }
}

interface Booking extends Known {
  payment_id: string;
  at: string;
}

interface OperatorInput extends Booking {
  /** Makes a repeat post nothing. */
  id: string;
  /** Real time; absent: `at`, the account's. */
  acted_at?: string;
  audit: Act;
  attention: PaymentAttention | null;
}

interface Chargeback extends OperatorInput {
  /** Minor units; null: all that is left. */
  amount: number | null;
  operation_id?: string;
}

interface DisputeLift extends OperatorInput {
  dispute_id: string | null;
}

type ChargebackAnswer =
  | { outcome: 'posted'; held: number; owed: number }
  | { outcome: 'already_posted' }
  /** Names what the bank's disputes took, in minor units: a report of a chargeback may be of it. */
  | { outcome: 'amount_needed'; taken: number; left: number }
  /** Minor units. */
  | { outcome: 'amount_too_large'; settled: number; left?: number };

type ChargebackResult = WriteAnswer<PaymentDocument, ChargebackAnswer>;

function postChargeback(deps: RecordDeps, input: Chargeback): Promise<ChargebackResult> {
  const { id: act_id, at, attention, operation_id } = input;
  const name = operation_id ?? act_id;
  return bookInBook(
    deps,
    deps.stores.payments,
    toBooking(input),
    async (payment, session, clashes): Promise<Work<ChargebackAnswer>> => {
      const disputes = await deps.stores.disputes.forPayment(payment._id, session);
      const known = disputes.find((dispute) => dispute.name === name);
      const settled = settledAmount(payment);
      const left = undisputedAmount(payment);
      const [first] = known?.transfers ?? [];
      const amount = input.amount ?? first?.amount ?? left;
      if (known !== undefined) {
        const isRepeat = known.kind === 'clawed_back' && first?.amount === amount;
        if (!isRepeat) return keep({ outcome: 'already_posted' });
        return keep({ outcome: 'posted', held: first.held, owed: first.owed });
      }
      if (left <= 0 || payment.status !== 'settled') return keep({ outcome: 'already_posted' });
      const taken = disputes
        .filter(({ kind }) => kind === 'dispute_opened')
        .reduce((sum, dispute) => sum + dispute.amount, 0);
      if (input.amount === null && taken > 0)
        return keep({ outcome: 'amount_needed', taken, left });
      if (amount > left) return keep({ outcome: 'amount_too_large', settled, left });
      const about = { _id: disputeId(payment._id, name), name, kind: 'clawed_back' } as const;
      const named = { ...about, request_id: payment.request_id, bank_reference: null };
      // An operator knows of it, and no report comes: it is over.
      const over = { status: 'lost', closed_at: at } as const;
      const fresh = { ...newDispute(payment, named, at), ...over };
      const report = { name: 'dispute_opened', callback_id: act_id, occurred_at: at } as const;
      const booked = { at, report, clashes, isAct: true };
      const isFirst = disputes.every(({ kind }) => kind !== 'clawed_back');
      const step = isFirst ? {} : { step: name };
      const transfer = { direction: 'out', amount, fee: 0, ...step } as const;
      const money = await postTransfer(deps, payment, fresh, transfer, booked, session);
      await deps.stores.disputes.insert({ ...fresh, ...money }, session);
      await deps.stores.payments.countDisputed(payment._id, { amount, at }, session);
      const entry = await auditDispute(deps, payment, input, 'clawed back', session);
      const act = { entry, attention };
      await deps.stores.payments.endDisputeReport(payment._id, act, { at, isWon: false }, session);
      const [{ held, owed } = { held: 0, owed: 0 }] = money.transfers;
      return { answer: { outcome: 'posted', held, owed }, isNew: true };
    },
  );
}

type LiftAnswer = { outcome: 'posted' } | { outcome: 'refused'; why: string };
type LiftResult = WriteAnswer<PaymentDocument, LiftAnswer>;

function liftDispute(deps: RecordDeps, input: DisputeLift): Promise<LiftResult> {
  const { stores } = deps;
  const { id: act_id, at, attention } = input;
  return bookInBook(
    deps,
    stores.payments,
    toBooking(input),
    async (payment, session, clashes): Promise<Work<LiftAnswer>> => {
      if (payment.audit.some(({ id }) => id === act_id)) return keep({ outcome: 'posted' });
      const disputes = await stores.disputes.forPayment(payment._id, session);
      const found = findLiftable(disputes, input.dispute_id, 0);
      if (typeof found === 'string') return keep({ outcome: 'refused', why: found });
      if (found === null && !payment.disputed_at) {
        return keep({ outcome: 'refused', why: 'The payment is not disputed.' });
      }
      if (found?.kind === 'dispute_opened') {
        const why = `Send it to the workflow ${LIFECYCLES.dispute.workflowId(found._id)}.`;
        return keep({ outcome: 'refused', why });
      }
      if (found !== null) {
        const report = { name: 'dispute_won', callback_id: act_id, occurred_at: at } as const;
        const booked = { at, report, clashes, isAct: true };
        const { name: step, amount } = found;
        const transfer = { step, direction: 'in', amount, fee: 0 } as const;
        const money = await postTransfer(deps, payment, found, transfer, booked, session);
        const change = { ...money, status: 'won', closed_at: at, updated_at: at } as const;
        await stores.disputes.change(found._id, change, session);
        await stores.payments.countDisputed(payment._id, { amount: -found.amount, at }, session);
      }
      const entry = await auditDispute(deps, payment, input, 'dispute won', session);
      const ended = { at, isWon: true };
      await stores.payments.endDisputeReport(payment._id, { entry, attention }, ended, session);
      return { answer: { outcome: 'posted' }, isNew: true };
    },
  );
}

/** Writes nothing. */
function keep<Answer>(answer: Answer): Work<Answer> {
  return { answer, isNew: false };
}

/** @returns null without one that can be won; a text: the reason for none */
function findLiftable(
  disputes: readonly DisputeDocument[],
  dispute_id: string | null,
  fee: number,
): DisputeDocument | string | null {
  const open = disputes.filter(({ status }) => status !== 'won');
  const isOther = ({ _id, name }: DisputeDocument) => dispute_id !== name && dispute_id !== _id;
  const [dispute, another] = open.filter((each) => dispute_id === null || !isOther(each));
  if (another !== undefined) {
    const names = open.map(({ name }) => name).join(', ');
    return `The payment has several disputes; say which by dispute_id: ${names}.`;
  }
  if (dispute === undefined) {
    if (dispute_id !== null) return `The payment has no dispute ${dispute_id} that can be won.`;
    return fee === 0 ? null : 'No fee was charged, since no dispute is posted.';
  }
  if (fee <= dispute.fee) return dispute;
  return `The fee of the dispute is ${dispute.fee}; no more can come back (minor units).`;
}

async function auditDispute(
  deps: RecordDeps,
  { _id: resource_id, account_id, livemode }: PaymentDocument,
  { audit: act, id, at: account_at, acted_at: at = account_at }: OperatorInput,
  after: string,
  session: ClientSession,
) {
  const actChange = { act, id, at, before: 'settled', after };
  const subject = { resource: 'payment', resource_id, account_id, livemode } as const;
  await auditAct(deps, subject, actChange, session);
  return buildAuditEntry(actChange);
}

const toBooking = ({ payment_id, at, version, transition }: Booking) => ({
  resource_id: payment_id,
  at,
  version,
  transition,
});

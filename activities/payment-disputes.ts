import type { ClientSession } from 'mongodb';
import {
  DISPUTE_STATES,
  type Dispute,
  type DisputeReport,
  decideDispute,
  undisputedAmount,
} from '../src/domain/payment/dispute';
import type { PaymentAttention } from '../src/domain/payment/payment';
import { bookId } from '../src/ledger/entries';
import { buildDispute, buildDisputeWon, settledAmount } from '../src/ledger/resource-entries';
import type { DisputeAct, PaymentDocument } from '../src/store/payments';
import { type Booking, readPayment } from './payment-money';
import { buildLockRequest, splitDebit, withDebitLock } from './shared/debit';
import { auditAct, buildAuditEntry } from './shared/operator-acts';
import type { Act } from './shared/record-inputs';
import type { RecordDeps } from './shared/record-table';

interface BankBooking extends Booking {
  /** The bank's name for the movement. */
  bank_reference?: string;
}

/** Report of a bank about a dispute. */
export type DisputeReportInput = BankBooking &
  DisputeReport & {
    /** Posted before: refunds that came later may have left less. */
    rebuilding?: true;
  };

interface OperatorInput extends Booking {
  /** Id made once, so that a repeat posts nothing. */
  id: string;
  audit: Act;
  /** Reason that stays. */
  attention: PaymentAttention | null;
}

export interface Chargeback extends OperatorInput {
  /** Minor units; null: all that is left. */
  amount: number | null;
  /** Operator's own id of this part. */
  operation_id?: string;
}

export interface DisputeLift extends OperatorInput {
  /** Null: the only one. */
  dispute_id: string | null;
  /** Minor units of the fee that came back. */
  fee: number;
}

/** Disputes of a payment after a booking. */
interface Booked {
  disputes?: Pick<Dispute, 'id' | 'state'>[];
}

export type DisputeResult = Booked &
  ({ outcome: 'posted' | 'repeated' } | { outcome: 'refused'; why: string });

export type ChargebackResult = Booked &
  (
    | { outcome: 'posted'; held: number; owed: number }
    | { outcome: 'already_posted' }
    /** Exceeds what the payment has brought, in minor units. */
    | { outcome: 'amount_too_large'; settled: number; left?: number }
  );

/** Journal entries of disputes; no status changes. @see docs/ledger.md#money-that-goes-wrong */
export function createPaymentDisputes(deps: RecordDeps) {
  const { payments } = deps.stores;
  return {
    /** Notes that the bank reports a chargeback, which an operator posts. */
    recordDispute: async ({ payment_id, at }: Booking): Promise<void> => {
      await payments.dispute(payment_id, at);
    },
    /** Posts what a bank reports about a dispute, once. */
    recordDisputeReport: async (input: DisputeReportInput): Promise<DisputeResult> => {
      const result = await recordDisputeReport(deps, input);
      if (result.outcome === 'posted') {
        await payments.noteApplied(input.payment_id, input.callback_id);
      }
      return result;
    },
    /** Posts a chargeback, or a part; the merchant owes what the balance lacks. */
    clawBack: (input: Chargeback): Promise<ChargebackResult> => postChargeback(deps, input),
    /** Credits what a dispute took, which the bank gave back. */
    liftDispute: (input: DisputeLift): Promise<DisputeResult> => liftDispute(deps, input),
  };
}

/** Runs a transaction with the payment as it is then; it commits also where it changes nothing. */
async function inBook<T extends object>(
  deps: RecordDeps,
  { payment_id, at }: Booking,
  work: (payment: PaymentDocument, session: ClientSession) => Promise<T>,
): Promise<T & Booked> {
  const { payments } = deps.stores;
  const payment = await readPayment(deps, payment_id);
  const lockRequest = buildLockRequest(bookId(payment), at);
  const result = await withDebitLock(deps, lockRequest, async (session) =>
    work((await payments.get(payment_id, session)) ?? payment, session),
  );
  const { disputes = [] } = await readPayment(deps, payment_id);
  return { ...result, disputes: disputes.map(({ id, state }) => ({ id, state })) };
}

function recordDisputeReport(deps: RecordDeps, input: DisputeReportInput): Promise<DisputeResult> {
  return inBook(deps, input, async (payment, session): Promise<DisputeResult> => {
    const { callback_id, at, rebuilding } = input;
    const decision = decideDispute(rebuilding ? { ...payment, refunded: 0 } : payment, input);
    switch (decision.kind) {
      case 'open': {
        const { id, amount, fee } = decision;
        const dispute = { id, kind: 'dispute_opened', step: id, amount, fee } as const;
        const opening = { ...dispute, state: 'opened', opened_by: callback_id } as const;
        await openDispute(deps, payment, opening, input, session);
        return { outcome: 'posted' };
      }
      case 'close': {
        const { dispute, won, fee_returned } = decision;
        const closing = { state: DISPUTE_STATES[input.name], won, fee_returned };
        const change = { ...closing, closed_at: at, closed_by: callback_id };
        await closeDispute(deps, payment, { dispute, change }, input, session);
        return { outcome: 'posted' };
      }
      case 'repeated':
        return { outcome: decision.isOwn ? 'posted' : 'repeated' };
      default:
        return { outcome: 'refused', why: decision.why };
    }
  });
}

type Opening = Omit<Dispute, 'held' | 'owed' | 'currency' | 'opened_at'>;

async function openDispute(
  { stores: { payments, ledger } }: RecordDeps,
  payment: PaymentDocument,
  opening: Opening,
  { at, value_date, bank_reference }: BankBooking,
  session: ClientSession,
  act?: DisputeAct,
): Promise<Dispute> {
  const { currency } = payment;
  const parts = await splitDebit(ledger, payment, opening.amount + opening.fee, session);
  const dispute = { ...opening, ...parts, currency, opened_at: at };
  if (!(await payments.openDispute(payment._id, dispute, act, session))) {
    throw new Error(`The payment ${payment._id} can't be disputed by ${dispute.id}.`);
  }
  await ledger.post(buildDispute(payment, dispute, { at, value_date, bank_reference }), session);
  return dispute;
}

interface Closing {
  dispute: Dispute;
  change: Pick<Dispute, 'won' | 'fee_returned' | 'state'> & Partial<Dispute>;
  act?: DisputeAct;
}

async function closeDispute(
  { stores: { payments, ledger } }: RecordDeps,
  payment: PaymentDocument,
  { dispute, change, act }: Closing,
  { at, value_date, bank_reference }: BankBooking,
  session: ClientSession,
): Promise<void> {
  const from = { id: dispute.id, states: [dispute.state] };
  const write = { at, change, ...(act === undefined ? {} : { act }) };
  if (!(await payments.closeDispute(payment._id, from, write, session))) {
    throw new Error(`The dispute ${dispute.id} of ${payment._id} is not ${dispute.state}.`);
  }
  const { won = 0, fee_returned = 0 } = change;
  if (won + fee_returned === 0) return;
  const entry = { id: dispute.id, won, fee_returned };
  await ledger.post(buildDisputeWon(payment, entry, { at, value_date, bank_reference }), session);
}

function postChargeback(deps: RecordDeps, input: Chargeback): Promise<ChargebackResult> {
  const { id: act_id, at, attention, operation_id } = input;
  const id = operation_id ?? act_id;
  return inBook(deps, input, async (payment, session): Promise<ChargebackResult> => {
    const { disputes = [] } = payment;
    const known = disputes.find((dispute) => dispute.id === id);
    const settled = settledAmount(payment);
    const left = undisputedAmount(payment);
    const amount = input.amount ?? known?.amount ?? left;
    if (known !== undefined) {
      const isRepeat = known.kind === 'clawed_back' && known.amount === amount;
      if (!isRepeat) return { outcome: 'already_posted' };
      return { outcome: 'posted', held: known.held, owed: known.owed };
    }
    if (left <= 0 || payment.status !== 'settled') return { outcome: 'already_posted' };
    if (amount > left) return { outcome: 'amount_too_large', settled, left };
    const isFirst = disputes.every(({ kind }) => kind !== 'clawed_back');
    const step = isFirst ? {} : { step: id };
    const closing = { state: 'lost', closed_at: at, closed_by: act_id } as const;
    const opening = {
      id,
      kind: 'clawed_back',
      ...step,
      amount,
      fee: 0,
      opened_by: act_id,
    } as const;
    const entry = await auditDispute(deps, payment, input, 'clawed back', session);
    const act = { entry, attention };
    const all = { ...opening, ...closing };
    const { held, owed } = await openDispute(deps, payment, all, input, session, act);
    return { outcome: 'posted', held, owed };
  });
}

function liftDispute(deps: RecordDeps, input: DisputeLift): Promise<DisputeResult> {
  const { id: act_id, at, attention, fee } = input;
  return inBook(deps, input, async (payment, session): Promise<DisputeResult> => {
    if (payment.audit.some(({ id }) => id === act_id)) return { outcome: 'posted' };
    const found = findLiftable(payment, input);
    if (typeof found === 'string') return { outcome: 'refused', why: found };
    const entry = await auditDispute(deps, payment, input, 'dispute won', session);
    const act = { entry, attention };
    if (found === null) {
      await deps.stores.payments.closeDispute(payment._id, undefined, { at, act }, session);
      return { outcome: 'posted' };
    }
    const closing = { state: 'won', won: found.amount, fee_returned: fee } as const;
    const change = { ...closing, closed_at: at, closed_by: act_id };
    await closeDispute(deps, payment, { dispute: found, change, act }, input, session);
    return { outcome: 'posted' };
  });
}

/** @returns null where only the bank's report is to be ended; why none is found, in words */
function findLiftable(
  { disputes = [], disputed_at }: PaymentDocument,
  { dispute_id, fee }: DisputeLift,
): Dispute | string | null {
  const isOther = ({ id }: Dispute) => dispute_id !== null && id !== dispute_id;
  const [dispute, another] = disputes.filter((each) => each.state !== 'won' && !isOther(each));
  if (another !== undefined) {
    const ids = disputes.filter(({ state }) => state !== 'won').map(({ id }) => id);
    return `The payment has several disputes; say which by dispute_id: ${ids.join(', ')}.`;
  }
  if (dispute === undefined) {
    if (dispute_id !== null) return `The payment has no dispute ${dispute_id} that can be won.`;
    if (!disputed_at) return 'The payment is not disputed.';
    return fee === 0 ? null : 'No fee was charged, since no dispute is posted.';
  }
  if (fee <= dispute.fee) return dispute;
  return `The fee of the dispute is ${dispute.fee}; no more can come back (minor units).`;
}

async function auditDispute(
  deps: RecordDeps,
  { _id: resource_id, account_id, livemode }: PaymentDocument,
  { audit: act, id, at }: OperatorInput,
  after: string,
  session: ClientSession,
) {
  const actChange = { act, id, at, before: 'settled', after };
  const subject = { resource: 'payment', resource_id, account_id, livemode } as const;
  await auditAct(deps, subject, actChange, session);
  return buildAuditEntry(actChange);
}

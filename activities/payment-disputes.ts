import type { ClientSession } from 'mongodb';
import { inTransaction } from '../src/base/mongo';
import {
  DISPUTE_STATES,
  type Dispute,
  type DisputeReport,
  decideDispute,
  sumDisputed,
  undisputedAmount,
} from '../src/domain/payment/dispute';
import type { PaymentAttention } from '../src/domain/payment/payment';
import { buildDispute, buildDisputeWon, settledAmount } from '../src/ledger/resource-entries';
import { recordDisputed } from '../src/movements/register';
import type { DisputeAct, PaymentDocument } from '../src/store/payments';
import { splitDebit } from './shared/debit';
import { auditAct, buildAuditEntry } from './shared/operator-acts';
import type { Act, Known, RecordDeps, WriteAnswer } from './shared/record-table';
import { bookInBook, bookOnce, type Work } from './shared/written';

type DisputeReportInput = BankBooking &
  DisputeReport & {
    /** Posted before: later refunds may have left less. */
    rebuilding?: true;
  };

/** @see docs/ledger.md#money-that-goes-wrong */
export function createPaymentDisputes(deps: RecordDeps) {
  const { payments } = deps.stores;
  return {
    recordDispute: (input: Booking): Promise<WriteAnswer<PaymentDocument>> =>
      bookOnce<PaymentDocument, object>(
        deps,
        (work) => inTransaction(deps.mongo, work),
        payments,
        { resource_id: input.payment_id, known: input },
        async ({ _id }, session) => {
          const { matchedCount } = await payments.dispute(_id, input.at, session);
          return { answer: {}, isNew: matchedCount === 1 };
        },
      ),
    recordDisputeReport: (input: DisputeReportInput): Promise<DisputeResult> =>
      bookInBook(
        deps,
        deps.stores.payments,
        toBooking(input),
        async (payment, session, clashes) => {
          const work = await bookReport(deps, payment, { ...input, clashes }, session);
          if (work.isNew) await payments.noteApplied(payment._id, input.callback_id, session);
          return work;
        },
      ),
    /** Merchant owes what the balance lacks. */
    clawBack: (input: Chargeback): Promise<ChargebackResult> => postChargeback(deps, input),
    liftDispute: (input: DisputeLift): Promise<DisputeResult> => liftDispute(deps, input),
  };
}

async function bookReport(
  deps: RecordDeps,
  payment: PaymentDocument,
  input: DisputeReportInput & { clashes: number },
  session: ClientSession,
): Promise<Work<DisputeAnswer>> {
  const { callback_id, at, rebuilding } = input;
  const decision = decideDispute(rebuilding ? { ...payment, refunded: 0 } : payment, input);
  switch (decision.kind) {
    case 'open': {
      const { id, amount, fee } = decision;
      const dispute = { id, kind: 'dispute_opened', step: id, amount, fee } as const;
      const opening = { ...dispute, state: 'opened', opened_by: callback_id } as const;
      await openDispute(deps, payment, opening, input, session);
      return POSTED;
    }
    case 'close': {
      const { dispute, won, fee_returned } = decision;
      const closing = { state: DISPUTE_STATES[input.name], won, fee_returned };
      const change = { ...closing, closed_at: at, closed_by: callback_id };
      await closeDispute(deps, payment, { dispute, change }, input, session);
      return POSTED;
    }
    case 'repeated':
      return keep({ outcome: decision.isOwn ? 'posted' : 'repeated' });
    default:
      return keep({ outcome: 'refused', why: decision.why });
  }
}

const POSTED = { answer: { outcome: 'posted' }, isNew: true } as const;

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
  /** Minor units. */
  fee: number;
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
  const id = operation_id ?? act_id;
  return bookInBook(
    deps,
    deps.stores.payments,
    toBooking(input),
    async (payment, session, clashes): Promise<Work<ChargebackAnswer>> => {
      const { disputes = [] } = payment;
      const known = disputes.find((dispute) => dispute.id === id);
      const settled = settledAmount(payment);
      const left = undisputedAmount(payment);
      const amount = input.amount ?? known?.amount ?? left;
      if (known !== undefined) {
        const isRepeat = known.kind === 'clawed_back' && known.amount === amount;
        if (!isRepeat) return keep({ outcome: 'already_posted' });
        return keep({ outcome: 'posted', held: known.held, owed: known.owed });
      }
      if (left <= 0 || payment.status !== 'settled') return keep({ outcome: 'already_posted' });
      const taken = sumDisputed(disputes.filter(({ kind }) => kind === 'dispute_opened'));
      if (input.amount === null && taken > 0)
        return keep({ outcome: 'amount_needed', taken, left });
      if (amount > left) return keep({ outcome: 'amount_too_large', settled, left });
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
      const reported = { ...input, clashes };
      const { held, owed } = await openDispute(deps, payment, all, reported, session, act);
      return { answer: { outcome: 'posted', held, owed }, isNew: true };
    },
  );
}

function liftDispute(deps: RecordDeps, input: DisputeLift): Promise<DisputeResult> {
  const { id: act_id, at, attention, fee } = input;
  return bookInBook(
    deps,
    deps.stores.payments,
    toBooking(input),
    async (payment, session, clashes): Promise<Work<DisputeAnswer>> => {
      if (payment.audit.some(({ id }) => id === act_id)) return keep({ outcome: 'posted' });
      const found = findLiftable(payment, input);
      if (typeof found === 'string') return keep({ outcome: 'refused', why: found });
      const entry = await auditDispute(deps, payment, input, 'dispute won', session);
      const act = { entry, attention };
      const answer = { answer: { outcome: 'posted' }, isNew: true } as const;
      if (found === null) {
        await deps.stores.payments.closeDispute(payment._id, undefined, { at, act }, session);
        return answer;
      }
      const closing = { state: 'won', won: found.amount, fee_returned: fee } as const;
      const change = { ...closing, closed_at: at, closed_by: act_id };
      const reported = { ...input, clashes };
      await closeDispute(deps, payment, { dispute: found, change, act }, reported, session);
      return answer;
    },
  );
}

/** Writes nothing. */
function keep<Answer>(answer: Answer): Work<Answer> {
  return { answer, isNew: false };
}

/** @returns null where only the bank's report ends; a text: the reason for none */
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
  { audit: act, id, at: account_at, acted_at: at = account_at }: OperatorInput,
  after: string,
  session: ClientSession,
) {
  const actChange = { act, id, at, before: 'settled', after };
  const subject = { resource: 'payment', resource_id, account_id, livemode } as const;
  await auditAct(deps, subject, actChange, session);
  return buildAuditEntry(actChange);
}

interface Booking extends Known {
  payment_id: string;
  at: string;
}

interface BankBooking extends Booking {
  value_date?: string;
  bank_reference?: string;
}

type DisputeAnswer = { outcome: 'posted' | 'repeated' } | { outcome: 'refused'; why: string };

type DisputeResult = WriteAnswer<PaymentDocument, DisputeAnswer>;

const toBooking = ({ payment_id, at, version, transition }: Booking) => ({
  resource_id: payment_id,
  at,
  version,
  transition,
});

/** @param clashes number of tries that found a name taken */
type Reported = BankBooking & { clashes: number };

type Opening = Omit<Dispute, 'held' | 'owed' | 'currency' | 'opened_at'>;

async function openDispute(
  deps: RecordDeps,
  payment: PaymentDocument,
  opening: Opening,
  { at, value_date, bank_reference, clashes }: Reported,
  session: ClientSession,
  act?: DisputeAct,
): Promise<Dispute> {
  const { payments, ledger } = deps.stores;
  const { currency } = payment;
  const parts = await splitDebit(ledger, payment, opening.amount + opening.fee, session);
  const dispute = { ...opening, ...parts, currency, opened_at: at };
  if (!(await payments.openDispute(payment._id, dispute, act, session))) {
    throw new Error(`The payment ${payment._id} can't be disputed by ${dispute.id}.`);
  }
  const entry = buildDispute(payment, dispute, { at, value_date, bank_reference });
  await ledger.post(entry, session);
  const amount = opening.amount + opening.fee;
  const source = buildSource(dispute.opened_by, act);
  const moved = { direction: 'out', amount, dispute: dispute.id, source, entry, clashes } as const;
  await recordDisputed(deps.stores, payment, moved, session);
  return dispute;
}

interface Closing {
  dispute: Dispute;
  change: Pick<Dispute, 'state' | 'won' | 'fee_returned' | 'closed_at'> & { closed_by: string };
  act?: DisputeAct;
}

async function closeDispute(
  deps: RecordDeps,
  payment: PaymentDocument,
  { dispute, change, act }: Closing,
  { at, value_date, bank_reference, clashes }: Reported,
  session: ClientSession,
): Promise<void> {
  const { payments, ledger } = deps.stores;
  const from = { id: dispute.id, states: [dispute.state] };
  const write = { at, change, ...(act === undefined ? {} : { act }) };
  if (!(await payments.closeDispute(payment._id, from, write, session))) {
    throw new Error(`The dispute ${dispute.id} of ${payment._id} is not ${dispute.state}.`);
  }
  const { won = 0, fee_returned = 0 } = change;
  if (won + fee_returned === 0) return;
  const { id } = dispute;
  const time = { at, value_date, bank_reference };
  const entry = buildDisputeWon(payment, { id, won, fee_returned }, time);
  await ledger.post(entry, session);
  const amount = won + fee_returned;
  const source = buildSource(change.closed_by, act);
  const moved = { direction: 'in', amount, dispute: id, source, entry, clashes } as const;
  await recordDisputed(deps.stores, payment, moved, session);
}

const buildSource = (id: string, act: DisputeAct | undefined) =>
  ({ kind: act === undefined ? 'callback' : 'act', id }) as const;

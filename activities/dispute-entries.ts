import type { ClientSession } from 'mongodb';
import type { Dispute } from '../src/domain/payment/dispute';
import { bookId } from '../src/ledger/entries';
import { buildDispute, buildDisputeWon } from '../src/ledger/resource-entries';
import type { DisputeAct, PaymentDocument } from '../src/store/payments';
import { type Booking, readPayment } from './payment-money';
import { buildLockRequest, splitDebit, withDebitLock } from './shared/debit';
import type { RecordDeps } from './shared/record-table';

export interface BankBooking extends Booking {
  bank_reference?: string;
}

export interface Booked {
  disputes?: Pick<Dispute, 'id' | 'state'>[];
}

export type DisputeResult = Booked &
  ({ outcome: 'posted' | 'repeated' } | { outcome: 'refused'; why: string });

/** Commits also where it changes nothing. */
export async function inBook<T extends object>(
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

type Opening = Omit<Dispute, 'held' | 'owed' | 'currency' | 'opened_at'>;

export async function openDispute(
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

export async function closeDispute(
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

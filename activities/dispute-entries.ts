import type { ClientSession } from 'mongodb';
import type { Dispute } from '../src/domain/payment/dispute';
import { bookId } from '../src/ledger/entries';
import { buildDispute, buildDisputeWon } from '../src/ledger/resource-entries';
import { recordDisputed, withFreeNames } from '../src/movements/register';
import type { DisputeAct, PaymentDocument } from '../src/store/payments';
import { buildLockRequest, splitDebit, withDebitLock } from './shared/debit';
import type { Known } from './shared/record-inputs';
import type { RecordDeps, WriteAnswer } from './shared/record-table';
import { bookOnce, type Work } from './shared/written';

export interface Booking extends Known {
  payment_id: string;
  at: string;
}

export interface BankBooking extends Booking {
  value_date?: string;
  bank_reference?: string;
}

export type DisputeAnswer =
  | { outcome: 'posted' | 'repeated' }
  | { outcome: 'refused'; why: string };

export type DisputeResult = WriteAnswer<PaymentDocument, DisputeAnswer>;

/** Commits also where it changes nothing. */
export async function inBook<Answer extends object>(
  deps: RecordDeps,
  input: Booking,
  work: (
    payment: PaymentDocument,
    session: ClientSession,
    clashes: number,
  ) => Promise<Work<Answer>>,
): Promise<WriteAnswer<PaymentDocument, Answer>> {
  const { payment_id: resource_id, at } = input;
  const found = await deps.stores.payments.get(resource_id);
  if (found === null) throw new Error(`The record of ${resource_id} is not there.`);
  const lockRequest = buildLockRequest(bookId(found), at);
  return await withFreeNames((clashes) =>
    bookOnce<PaymentDocument, Answer>(
      deps,
      (within) => withDebitLock(deps, lockRequest, within),
      deps.stores.payments,
      { resource_id, known: input },
      (payment, session) => work(payment, session, clashes),
    ),
  );
}

/** @param clashes number of tries that found a name taken */
type Reported = BankBooking & { clashes: number };

type Opening = Omit<Dispute, 'held' | 'owed' | 'currency' | 'opened_at'>;

export async function openDispute(
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

export async function closeDispute(
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

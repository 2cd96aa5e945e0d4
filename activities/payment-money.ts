import type { ClientSession } from 'mongodb';
import { omitUndefined } from '../src/domain/defined';
import {
  findOfAmount,
  findReported,
  type Receipt,
  type ReceiptReason,
  reportId,
  sumAmounts,
} from '../src/domain/payment/receipt';
import { bookId } from '../src/ledger/entries';
import { buildReceiptEntry } from '../src/ledger/resource-entries';
import type { PaymentDocument } from '../src/store/payments';
import { buildLockRequest, withDebitLock } from './shared/debit';
import type { RecordDeps } from './shared/record-table';

export interface Booking {
  payment_id: string;
  at: string;
  value_date?: string;
}

/** Reported money that is not the settlement of the payment. */
export interface ReceiptInput extends Booking {
  reason: ReceiptReason;
  /** Null where the bank said so in an answer. */
  callback_id: string | null;
  bank_reference?: string;
  /** Minor units. */
  amount: number;
  currency: string;
}

export type ReversalInput = Booking & (BankReversal | { ids: string[] });

interface BankReversal {
  /** Bank reference, or callback id. */
  by: string;
  callback_id?: string;
  /** Minor units; absent: all that came. */
  amount?: number;
  currency?: string;
}

export interface ReceiptResult {
  receipts: Receipt[];
  /** Null where the report is the settlement of the payment. */
  id: string | null;
}

export interface ReversalResult {
  receipts: Receipt[];
  /** Null where nothing in suspense has this amount and currency. */
  id: string | null;
}

/** @see docs/ledger.md#money-that-goes-wrong */
export function createPaymentMoney(deps: RecordDeps) {
  return {
    /** Posts to suspense, once for each receipt. */
    recordReceipt: (input: ReceiptInput): Promise<ReceiptResult> => recordReceipt(deps, input),
    /** Posts out of suspense, once. */
    recordReversal: async (input: ReversalInput): Promise<ReversalResult> => {
      const result = await recordReversal(deps, input);
      if (result.id !== null && 'by' in input && input.callback_id !== undefined) {
        await deps.stores.payments.noteApplied(input.payment_id, input.callback_id);
      }
      return result;
    },
  };
}

async function recordReceipt(deps: RecordDeps, input: ReceiptInput): Promise<ReceiptResult> {
  const { payment_id, at, currency } = input;
  const payment = await readPayment(deps, payment_id);
  const lockRequest = buildLockRequest(bookId({ ...payment, currency }), at);
  // Commits also where it changes nothing: only then a majority has what it read.
  const id = await withDebitLock(deps, lockRequest, async (session) => {
    const current = await deps.stores.payments.get(payment_id, session);
    return current === null ? null : await addReceipt(deps, current, input, session);
  });
  return { receipts: await readReceipts(deps, payment_id), id };
}

/** @returns null where it repeats the report of the settlement */
async function addReceipt(
  { stores }: RecordDeps,
  payment: PaymentDocument,
  input: ReceiptInput,
  session: ClientSession,
): Promise<string | null> {
  const { callback_id, bank_reference = null, reason, at, value_date = null } = input;
  if (isSettlement(payment, input)) return null;
  const known = findReported(payment.receipts ?? [], input);
  if (known !== undefined) {
    if (known.callback_id === null && callback_id !== null) {
      const change = { callback_id, bank_reference: known.bank_reference ?? bank_reference };
      await stores.payments.changeReceipt(payment._id, known, change, session);
    }
    return known.id;
  }
  const id = reportId({ bank_reference, callback_id: callback_id ?? `answer:${payment._id}` });
  const { amount, currency } = input;
  const money = { amount, currency, value_date, received_at: at };
  const receipt = { id, bank_reference, callback_id, ...money, reason, state: 'suspense' } as const;
  if (await stores.payments.addReceipt(payment._id, receipt, session)) {
    await stores.ledger.post(buildReceiptEntry('held', payment, receipt, input), session);
  }
  return id;
}

function isSettlement(
  { status, bank_reference: settled, applied_callbacks = [] }: PaymentDocument,
  { callback_id, bank_reference }: ReceiptInput,
): boolean {
  if (status !== 'settled') return false;
  if (callback_id !== null && applied_callbacks.includes(callback_id)) return true;
  return bank_reference !== undefined && bank_reference === settled;
}

async function recordReversal(deps: RecordDeps, input: ReversalInput): Promise<ReversalResult> {
  const { payment_id } = input;
  const receipts = await readReceipts(deps, payment_id);
  if ('ids' in input) {
    for (const id of input.ids) await returnReceipt(deps, input, id);
    return { receipts: await readReceipts(deps, payment_id), id: input.ids.at(0) ?? null };
  }
  const reported = receipts.length > 0 ? receipts : await recordUnreported(deps, input);
  const repeated = reported.find(({ returned_by }) => returned_by === input.by);
  if (repeated !== undefined) return { receipts: reported, id: repeated.id };
  const receipt = findOfAmount(reported, 'suspense', input);
  if (receipt === undefined) return { receipts: reported, id: null };
  // Another report took it meanwhile: decide again.
  const isReturned = await returnReceipt(deps, input, receipt.id, input.by);
  if (!isReturned) return await recordReversal(deps, input);
  return { receipts: await readReceipts(deps, payment_id), id: receipt.id };
}

/** Records late funds that are back before their arrival was reported. */
async function recordUnreported(
  deps: RecordDeps,
  { payment_id, at, amount, currency }: Booking & BankReversal,
): Promise<Receipt[]> {
  const payment = await readPayment(deps, payment_id);
  const money = { amount: amount ?? payment.amount, currency: currency ?? payment.currency };
  if (payment.status === 'settled' || money.currency !== payment.currency) return [];
  const report = { payment_id, at, reason: 'late', callback_id: null, ...money } as const;
  return (await recordReceipt(deps, report)).receipts;
}

async function returnReceipt(
  deps: RecordDeps,
  { payment_id, at, value_date }: Booking,
  id: string,
  returned_by?: string,
): Promise<boolean> {
  const payment = await readPayment(deps, payment_id);
  const receipt = payment.receipts?.find((each) => each.id === id);
  if (receipt === undefined) return false;
  const { ledger, payments } = deps.stores;
  const book = bookId({ ...payment, currency: receipt.currency });
  return await withDebitLock(deps, buildLockRequest(book, at), async (session) => {
    const from = { id, state: 'suspense' } as const;
    const change = omitUndefined({ state: 'returned' as const, returned_at: at, returned_by });
    if (!(await payments.changeReceipt(payment_id, from, change, session))) return false;
    await ledger.post(buildReceiptEntry('returned', payment, receipt, { at, value_date }), session);
    return true;
  });
}

/**
 * Releases receipts from suspense, in the transaction of the settlement.
 * @returns minor units
 */
export async function creditReceipts(
  { payments }: Pick<RecordDeps['stores'], 'payments'>,
  { _id, receipts = [] }: PaymentDocument,
  credited: readonly string[],
  session: ClientSession,
): Promise<number> {
  for (const id of credited) {
    const from = { id, state: 'suspense' } as const;
    if (!(await payments.changeReceipt(_id, from, { state: 'credited' }, session))) {
      throw new Error(`The receipt ${id} of ${_id} is not in suspense.`);
    }
  }
  return sumAmounts(receipts.filter(({ id }) => credited.includes(id)));
}

async function readReceipts(deps: RecordDeps, payment_id: string): Promise<Receipt[]> {
  return (await readPayment(deps, payment_id)).receipts ?? [];
}

export async function readPayment(
  { stores }: RecordDeps,
  payment_id: string,
): Promise<PaymentDocument> {
  const payment = await stores.payments.get(payment_id);
  if (payment === null) throw new Error(`The record of ${payment_id} is not there.`);
  return payment;
}

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
import type { Known } from './shared/record-inputs';
import type { RecordDeps, WriteAnswer } from './shared/record-table';
import { bookOnce, type Work } from './shared/written';

export interface Booking extends Known {
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

interface Receipts {
  receipts: Receipt[];
  /** Null where the report is the settlement, or nothing in suspense has its amount and currency. */
  id: string | null;
}

export type ReceiptResult = WriteAnswer<PaymentDocument, Receipts>;

/** @see docs/ledger.md#money-that-goes-wrong */
export function createPaymentMoney(deps: RecordDeps) {
  return {
    /** Posts to suspense, once for each receipt. */
    recordReceipt: (input: ReceiptInput): Promise<ReceiptResult> =>
      changeReceipts(deps, input, (payment, session) => addReceipt(deps, payment, input, session)),
    /** Posts out of suspense, once. */
    recordReversal: (input: ReversalInput): Promise<ReceiptResult> =>
      changeReceipts(deps, input, (payment, session) => reverse(deps, payment, input, session)),
  };
}

type Change = Work<string | null>;

/** Commits also where it changes nothing: only then a majority has what it read. */
async function changeReceipts(
  deps: RecordDeps,
  input: ReceiptInput | ReversalInput,
  change: (payment: PaymentDocument, session: ClientSession) => Promise<Change>,
): Promise<ReceiptResult> {
  const { payment_id: resource_id, at } = input;
  const { payments } = deps.stores;
  const payment = await readPayment(deps, resource_id);
  const currency = ('currency' in input && input.currency) || payment.currency;
  const lockRequest = buildLockRequest(bookId({ ...payment, currency }), at);
  return await bookOnce<PaymentDocument, Receipts>(
    (work) => withDebitLock(deps, lockRequest, work),
    payments,
    { resource_id, known: input },
    async (current, session) => {
      const { answer: id, isNew } = await change(current, session);
      const { receipts = [] } = (await payments.get(resource_id, session)) ?? current;
      return { answer: { receipts, id }, isNew };
    },
  );
}

/** Answers null where it repeats the report of the settlement. */
async function addReceipt(
  { stores }: RecordDeps,
  payment: PaymentDocument,
  input: ReceiptInput,
  session: ClientSession,
): Promise<Change> {
  const { callback_id, bank_reference = null, reason, at, value_date = null } = input;
  if (isSettlement(payment, input)) return { answer: null, isNew: false };
  const known = findReported(payment.receipts ?? [], input);
  if (known !== undefined) {
    const isNew = known.callback_id === null && callback_id !== null;
    if (isNew) {
      const change = { callback_id, bank_reference: known.bank_reference ?? bank_reference };
      await stores.payments.changeReceipt(payment._id, known, change, session);
    }
    return { answer: known.id, isNew };
  }
  const id = reportId({ bank_reference, callback_id: callback_id ?? `answer:${payment._id}` });
  const { amount, currency } = input;
  const money = { amount, currency, value_date, received_at: at };
  const receipt = { id, bank_reference, callback_id, ...money, reason, state: 'suspense' } as const;
  const isNew = await stores.payments.addReceipt(payment._id, receipt, session);
  if (isNew) {
    await stores.ledger.post(buildReceiptEntry('held', payment, receipt, input), session);
  }
  return { answer: id, isNew };
}

function isSettlement(
  { status, bank_reference: settled, applied_callbacks = [] }: PaymentDocument,
  { callback_id, bank_reference }: ReceiptInput,
): boolean {
  if (status !== 'settled') return false;
  if (callback_id !== null && applied_callbacks.includes(callback_id)) return true;
  return bank_reference !== undefined && bank_reference === settled;
}

async function reverse(
  deps: RecordDeps,
  payment: PaymentDocument,
  input: ReversalInput,
  session: ClientSession,
): Promise<Change> {
  const { payments } = deps.stores;
  if ('ids' in input) {
    let isNew = false;
    for (const id of input.ids) {
      isNew = (await returnReceipt(deps, payment, { input, id }, session)) || isNew;
    }
    return { answer: input.ids.at(0) ?? null, isNew };
  }
  const isUnreported = !payment.receipts?.length;
  if (isUnreported) await addUnreported(deps, payment, input, session);
  const current = (isUnreported && (await payments.get(payment._id, session))) || payment;
  const { receipts = [] } = current;
  const repeated = receipts.find(({ returned_by }) => returned_by === input.by);
  if (repeated !== undefined) return { answer: repeated.id, isNew: false };
  const receipt = findOfAmount(receipts, 'suspense', input);
  if (receipt === undefined) return { answer: null, isNew: false };
  const returned = { input, id: receipt.id, returned_by: input.by };
  const isNew = await returnReceipt(deps, current, returned, session);
  if (isNew && input.callback_id !== undefined) {
    await payments.noteApplied(payment._id, input.callback_id, session);
  }
  return { answer: receipt.id, isNew };
}

/** Records late funds that are back before their arrival was reported. */
async function addUnreported(
  deps: RecordDeps,
  payment: PaymentDocument,
  { amount = payment.amount, currency = payment.currency, ...booking }: Booking & BankReversal,
  session: ClientSession,
): Promise<void> {
  if (payment.status === 'settled' || currency !== payment.currency) return;
  const report = { ...booking, reason: 'late', callback_id: null, amount, currency } as const;
  await addReceipt(deps, payment, report, session);
}

async function returnReceipt(
  { stores }: RecordDeps,
  payment: PaymentDocument,
  { input, id, returned_by }: { input: Booking; id: string; returned_by?: string },
  session: ClientSession,
): Promise<boolean> {
  const { at, value_date } = input;
  const receipt = payment.receipts?.find((each) => each.id === id);
  if (receipt === undefined) return false;
  const from = { id, state: 'suspense' } as const;
  const change = omitUndefined({ state: 'returned' as const, returned_at: at, returned_by });
  if (!(await stores.payments.changeReceipt(payment._id, from, change, session))) return false;
  const entry = buildReceiptEntry('returned', payment, receipt, { at, value_date });
  await stores.ledger.post(entry, session);
  return true;
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

export async function readPayment(
  { stores }: RecordDeps,
  payment_id: string,
): Promise<PaymentDocument> {
  const payment = await stores.payments.get(payment_id);
  if (payment === null) throw new Error(`The record of ${payment_id} is not there.`);
  return payment;
}

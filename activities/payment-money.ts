import type { ClientSession } from 'mongodb';
import { MAIN_BALANCE } from '../src/domain/account/balance-account';
import { omitUndefined } from '../src/domain/defined';
import type { PaymentAttention } from '../src/domain/payment/payment';
import {
  findOfAmount,
  findReported,
  type Receipt,
  type ReceiptReason,
  reportId,
  sumAmounts,
} from '../src/domain/payment/receipt';
import { bookId } from '../src/ledger/entries';
import { buildChargeback, buildReceiptEntry, settledAmount } from '../src/ledger/resource-entries';
import type { PaymentDocument } from '../src/store/payments';
import { buildLockRequest, withDebitLock } from './shared/debit';
import { auditAct, buildAuditEntry } from './shared/operator-acts';
import type { Act } from './shared/record-inputs';
import type { RecordDeps } from './shared/record-table';

interface Booking {
  payment_id: string;
  /** ISO 8601, ms. */
  at: string;
  /** Value date of the bank. */
  value_date?: string;
}

/** Money that the bank reports, and that is not the settlement of the payment. */
export interface ReceiptInput extends Booking {
  reason: ReceiptReason;
  /** Null where the bank said so in an answer. */
  callback_id: string | null;
  bank_reference?: string;
  /** Minor units. */
  amount: number;
  currency: string;
}

/** Report that money in question is back: of the bank, or of an operator. */
export type ReversalInput = Booking & (BankReversal | { ids: string[] });

interface BankReversal {
  /** Bank reference, or callback id. */
  by: string;
  /** Minor units; absent: all that came. */
  amount?: number;
  currency?: string;
}

export interface Chargeback extends Booking {
  /** Minor units; null: all that settled. */
  amount: number | null;
  /** Id made once, so that a repeat posts nothing. */
  id: string;
  audit: Act;
  /** Reason that stays. */
  attention: PaymentAttention | null;
}

export interface ReceiptResult {
  receipts: Receipt[];
  /** The money of the report; null where it is the settlement of the payment. */
  id: string | null;
}

export interface ReversalResult {
  receipts: Receipt[];
  /** The money that is back; null where none in suspense is of this amount and currency. */
  id: string | null;
}

export type ChargebackResult =
  | { outcome: 'posted'; held: number; owed: number }
  | { outcome: 'already_posted' }
  /** Exceeds what the payment has brought, in minor units. */
  | { outcome: 'amount_too_large'; settled: number };

/**
 * Journal entries for a payment's funds after it is final; no status changes.
 * @see docs/ledger.md#money-that-goes-wrong
 */
export function createPaymentMoney(deps: RecordDeps) {
  const { payments } = deps.stores;
  return {
    /** Posts money in question to suspense, once for each receipt. */
    recordReceipt: (input: ReceiptInput): Promise<ReceiptResult> => recordReceipt(deps, input),
    /** Posts money out of suspense, once, since the customer has it back. */
    recordReversal: (input: ReversalInput): Promise<ReversalResult> => recordReversal(deps, input),
    recordDispute: async ({ payment_id, at }: Booking): Promise<void> => {
      await payments.dispute(payment_id, at);
    },
    /** Posts a chargeback; the merchant owes what the balance lacks. */
    clawBack: (input: Chargeback): Promise<ChargebackResult> => postChargeback(deps, input),
  };
}

async function recordReceipt(deps: RecordDeps, input: ReceiptInput): Promise<ReceiptResult> {
  const { payment_id, at, currency } = input;
  const payment = await read(deps, payment_id);
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
  // Another report took it meanwhile: this one decides again, among what is left.
  const isReturned = await returnReceipt(deps, input, receipt.id, input.by);
  if (!isReturned) return await recordReversal(deps, input);
  return { receipts: await readReceipts(deps, payment_id), id: receipt.id };
}

/** Records late funds that are back before the bank has reported that they came. */
async function recordUnreported(
  deps: RecordDeps,
  { payment_id, at, amount, currency }: Booking & BankReversal,
): Promise<Receipt[]> {
  const payment = await read(deps, payment_id);
  const money = { amount: amount ?? payment.amount, currency: currency ?? payment.currency };
  if (payment.status === 'settled' || money.currency !== payment.currency) return [];
  const report = { payment_id, at, reason: 'late', callback_id: null, ...money } as const;
  return (await recordReceipt(deps, report)).receipts;
}

/** @returns false when it is not in suspense */
async function returnReceipt(
  deps: RecordDeps,
  { payment_id, at, value_date }: Booking,
  id: string,
  returned_by?: string,
): Promise<boolean> {
  const payment = await read(deps, payment_id);
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
 * Takes the receipts that an operator accepts out of suspense, in the transaction of the settlement.
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
  return (await read(deps, payment_id)).receipts ?? [];
}

async function read({ stores }: RecordDeps, payment_id: string): Promise<PaymentDocument> {
  const payment = await stores.payments.get(payment_id);
  if (payment === null) throw new Error(`The record of ${payment_id} is not there.`);
  return payment;
}

async function postChargeback(deps: RecordDeps, input: Chargeback): Promise<ChargebackResult> {
  const { payment_id, at, value_date, id, audit, attention } = input;
  const { ledger, payments } = deps.stores;
  const payment = await read(deps, payment_id);
  const { account_id, livemode } = payment;
  const settledTotal = settledAmount(payment);
  const amount = input.amount ?? settledTotal;
  if (amount > settledTotal) return { outcome: 'amount_too_large', settled: settledTotal };
  const write = async (session: ClientSession) => {
    const emptyEntry = buildChargeback(payment, { held: 0, owed: amount }, { at });
    const balance = await ledger.balance(emptyEntry, MAIN_BALANCE, session);
    const available = balance?.available ?? 0;
    const heldAmount = available >= amount ? amount : Number(available);
    const owedAmount = amount - heldAmount;
    const actChange = { act: audit, id, at, before: 'settled', after: 'clawed back' };
    const act = buildAuditEntry(actChange);
    const parts = { held: heldAmount, owed: owedAmount };
    const chargeback = { ...parts, at, attention };
    // Committed, so that the next read sees the same.
    if (!(await payments.recordChargeback(payment_id, chargeback, act, session))) return null;
    const subject = { resource: 'payment', resource_id: payment_id, account_id, livemode } as const;
    await auditAct(deps.stores, subject, actChange, session);
    await ledger.post(buildChargeback(payment, parts, { at, value_date }), session);
    return parts;
  };
  const result = await withDebitLock(deps, buildLockRequest(bookId(payment), at), write);
  if (result !== null) return { outcome: 'posted', ...result };
  const { clawed_back, audit: acts } = await read(deps, payment_id);
  const isRepeat = acts.some((act) => act.id === id);
  if (!isRepeat || !clawed_back) return { outcome: 'already_posted' };
  return { outcome: 'posted', held: clawed_back.held, owed: clawed_back.owed };
}

import type { BankCallback, PaymentCallbackName } from '../../src/domain/callback/callback';
import { omitUndefined } from '../../src/domain/defined';
import type { DisputeCallbackName } from '../../src/domain/payment/dispute';
import type { PaymentAttention } from '../../src/domain/payment/payment';
import {
  findOfAmount,
  isInSuspense,
  listCreditable,
  type Receipt,
  type ReceiptReason,
  reportId,
  sumAmounts,
} from '../../src/domain/payment/receipt';
import { timestamp } from '../shared/clock';
import { type AuditedAct, datedAudit, type OperatorItem } from '../shared/operator-acts';
import { note } from '../shared/state';
import { keepsAttention, type Payment, record } from './state';

export function isForeign(
  { facts }: Payment,
  { currency }: Pick<BankCallback, 'currency'>,
): boolean {
  return currency !== undefined && currency !== facts.currency;
}

type Report = Pick<BankCallback, 'bank_reference' | 'amount' | 'currency' | 'value_date'> & {
  callback_id: string | null;
};

/** @returns undefined where it is the settlement of the payment, reported again */
export async function holdReceipt(
  payment: Payment,
  reason: ReceiptReason,
  { callback_id, bank_reference, amount, currency, value_date }: Report,
): Promise<Receipt | undefined> {
  const { id: payment_id, facts } = payment;
  const report = {
    ...{ payment_id, at: timestamp(payment), reason, callback_id },
    ...{ amount: amount ?? facts.amount, currency: currency ?? facts.currency },
    ...omitUndefined({ bank_reference: bank_reference || undefined, value_date }),
  };
  const result = await record.book(
    payment,
    (known) => (activities) => activities.recordReceipt({ ...report, ...known }),
  );
  payment.receipts = result.receipts;
  return result.receipts.find(({ id }) => id === result.id);
}

export async function applyReversal(
  payment: Payment,
  name: PaymentCallbackName,
  callback: BankCallback,
): Promise<void> {
  const { amount, currency, value_date } = callback;
  const report = {
    ...{ payment_id: payment.id, at: timestamp(payment), by: reportId(callback) },
    callback_id: callback.callback_id,
    ...omitUndefined({ amount, currency, value_date }),
  };
  const result = await record.book(
    payment,
    (known) => (activities) => activities.recordReversal({ ...report, ...known }),
  );
  payment.receipts = result.receipts;
  const receipt = result.receipts.find(({ id }) => id === result.id);
  if (receipt !== undefined) {
    const isLate = result.receipts.some(({ reason }) => reason === 'late');
    return await record.setAttention(payment, isLate ? 'late_settlement_reversed' : null);
  }
  const held = result.receipts.filter(isInSuspense).map(formatReceipt).join(', ') || NONE;
  const back = `${amount ?? payment.facts.amount} ${currency ?? payment.facts.currency}`;
  const why = `the bank sent ${back} back, and ${held} is in suspense (minor units)`;
  await record.recordUnapplied(payment, name, callback, why);
  // Without a name of the bank, a repeat looks like this.
  if (held === NONE && findOfAmount(result.receipts, 'returned', callback)) return;
  await record.setAttention(payment, 'amount_differs');
}

const NONE = 'nothing';

function formatReceipt({ amount, currency }: Receipt): string {
  return `${amount} ${currency}`;
}

export async function dispute(payment: Payment, attention: PaymentAttention): Promise<void> {
  const { id: payment_id } = payment;
  const at = timestamp(payment);
  await record.book(
    payment,
    (known) => (activities) => activities.recordDispute({ payment_id, at, ...known }),
  );
  await record.setAttention(payment, attention);
}

export async function bookChargeback(
  payment: Payment,
  audit: AuditedAct,
  { amount, operation_id }: Pick<OperatorItem<string, unknown>, 'amount' | 'operation_id'>,
): Promise<string | undefined> {
  const { id: payment_id } = payment;
  const attention = keepsAttention(payment) ? payment.attention : null;
  const act = { ...buildAct(payment, audit), attention };
  const chargeback = {
    payment_id,
    amount: amount ?? null,
    ...act,
    ...omitUndefined({ operation_id }),
  };
  const answer = await record.book(
    payment,
    (known) => (activities) => activities.clawBack({ ...chargeback, ...known }),
  );
  if (answer.outcome === 'already_posted')
    return 'The chargeback of the payment is posted already.';
  if (answer.outcome === 'amount_too_large') {
    const { settled, left = settled } = answer;
    const before = settled === left ? '' : `, and ${settled - left} is taken back`;
    return `The payment has brought ${settled}${before}; no more can be taken back (minor units).`;
  }
  payment.attention = attention;
  note(payment, `chargeback: ${answer.held} from the balance, ${answer.owed} owed (minor units)`);
  record.show(payment);
  return undefined;
}

/** Entry by the account's time, audit line by the real one. */
function buildAct(payment: Payment, audit: AuditedAct) {
  const { id, at: acted_at, ...act } = datedAudit(audit);
  return { id, at: timestamp(payment), acted_at, audit: act };
}

export async function liftDispute(
  payment: Payment,
  audit: AuditedAct,
  { dispute_id, fee = 0 }: Pick<OperatorItem<string, unknown>, 'dispute_id' | 'fee'>,
): Promise<string | undefined> {
  const { id: payment_id } = payment;
  const attention = keepsAttention(payment) ? payment.attention : null;
  const act = { ...buildAct(payment, audit), attention };
  const lift = { payment_id, ...act, dispute_id: dispute_id ?? null, fee };
  const answer = await record.book(
    payment,
    (known) => (activities) => activities.liftDispute({ ...lift, ...known }),
  );
  if (answer.outcome === 'refused') return answer.why;
  payment.attention = attention;
  record.logActivity(payment, 'dispute won');
  return undefined;
}

/** A report that does not fit is left to operators. */
export async function bookDispute(
  payment: Payment,
  name: DisputeCallbackName,
  callback: BankCallback,
): Promise<void> {
  const { callback_id, dispute_id, amount, currency, fee, value_date, bank_reference } = callback;
  const report = {
    ...{ payment_id: payment.id, at: timestamp(payment), name, callback_id },
    ...omitUndefined({ dispute_id, amount, currency, fee, value_date }),
    ...omitUndefined({ bank_reference: bank_reference || undefined }),
  };
  const answer = await record.book(
    payment,
    (known) => (activities) => activities.recordDisputeReport({ ...report, ...known }),
  );
  if (answer.outcome === 'posted') return;
  const why = answer.outcome === 'refused' ? answer.why : 'the dispute is posted already';
  await record.recordUnapplied(payment, name, callback, why);
  if (answer.outcome === 'refused') await record.setAttention(payment, 'dispute_differs');
}

export async function bookReversal(
  payment: Payment,
  audit: AuditedAct,
): Promise<string | undefined> {
  const { id: payment_id, receipts, instructing } = payment;
  const at = timestamp(payment);
  if (instructing.size > 0) {
    return 'The bank is instructed to send the money back. Wait for its answer.';
  }
  if (receipts.length === 0) return 'No money of the payment is in suspense.';
  const ids = receipts.filter(isInSuspense).map(({ id }) => id);
  const result = await record.book(
    payment,
    (known) => (activities) => activities.recordReversal({ payment_id, at, ids, ...known }),
  );
  payment.receipts = result.receipts;
  await record.recordAct(payment, audit, null);
  record.show(payment);
  return undefined;
}

/** @param amount minor units */
export function pickCredited(
  { receipts, facts }: Payment,
  amount: number | undefined,
): { settled_amount?: number; credited?: string[] } {
  const creditable = listCreditable(receipts, facts.currency);
  if (creditable.length === 0) return omitUndefined({ settled_amount: amount });
  const settled_amount = amount ?? sumAmounts(creditable);
  return { settled_amount, credited: creditable.map(({ id }) => id) };
}

import { createHash } from 'node:crypto';
import { isDuplicateKey } from '../../src/base/mongo';
import {
  buildCreditorReference,
  REFERENCE_DIGITS,
} from '../../src/domain/payment/creditor-reference';
import type { SepaBook, SepaPayment } from '../../src/service/sepa/book';
import type { CloseAnswer, SessionInstruction, VoidAnswer } from '../contract/activities';

type Payments = Pick<SepaBook, 'payments'>;

/** Two payments have the same reference once in 10^16. */
const TRIES = 5;

/** Repeats have the same reference. */
export async function addPayment(
  { payments }: Payments,
  { payment_id: _id, amount, currency }: SessionInstruction,
  now: Date,
): Promise<string> {
  for (let attempt = 0; attempt < TRIES; attempt += 1) {
    const reference = makeReference(_id, attempt);
    const state = { credits: [], unreported: false, report_batch: null };
    try {
      await payments.insertOne({ _id, reference, amount, currency, opened_at: now, ...state });
      return reference;
    } catch (error) {
      if (!isDuplicateKey(error)) throw error;
    }
    const stored = await payments.findOne({ _id });
    if (stored !== null) return stored.reference;
  }
  throw new Error('No creditor reference is free.');
}

/** Derives a reference that says nothing of the payment. */
export function makeReference(payment_id: string, attempt: number): string {
  const hash = createHash('sha256').update(`${payment_id}:${attempt}`).digest('hex');
  const digits = String(BigInt(`0x${hash}`) % 10n ** BigInt(REFERENCE_DIGITS));
  return buildCreditorReference(digits.padStart(REFERENCE_DIGITS, '0'));
}

/**
 * Closes a payment. A transfer can't be stopped: one that comes later is late funds. Credits that
 * are being reported, and the whole amount, came before.
 */
export async function closePayment({ payments }: Payments, _id: string): Promise<CloseAnswer> {
  const payment = await payments.findOne({ _id });
  if (payment === null || payment.credits.length === 0) return { outcome: 'closed' };
  const isPaid = payment.unreported || payment.credits.some((credit) => isWhole(payment, credit));
  return { outcome: isPaid ? 'already_authorized' : 'closed' };
}

/** The report, not the answer, says how much came, so that it counts once. */
export async function voidTransfer({ payments }: Payments, _id: string): Promise<VoidAnswer> {
  const payment = await payments.findOne({ _id });
  const hasMoney = payment !== null && payment.credits.length > 0;
  return { outcome: hasMoney ? 'already_settled' : 'voided' };
}

function isWhole(
  { amount, currency }: Pick<SepaPayment, 'amount' | 'currency'>,
  credit: SepaPayment['credits'][number],
): boolean {
  return credit.amount === amount && credit.currency === currency;
}

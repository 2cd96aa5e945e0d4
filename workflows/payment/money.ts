import type { BankCallback, PaymentCallbackName } from '../../src/domain/callback/callback';
import type { PaymentAttention } from '../../src/domain/payment/payment';
import { type AuditedAct, datedAudit } from '../shared/operator-acts';
import { writeScheduled } from '../shared/persist';
import { note } from '../shared/state';
import { type Payment, record } from './state';

function pickValueDate({ value_date }: Pick<BankCallback, 'value_date'>) {
  return value_date === undefined ? {} : { value_date };
}

/** Whether the bank reports another currency than the requested one. */
export function isForeign(
  { facts }: Payment,
  { currency }: Pick<BankCallback, 'currency'>,
): boolean {
  return currency !== undefined && currency !== facts.currency;
}

const now = () => new Date().toISOString();

/** @returns minor units to be sent back; undefined once they were */
export async function holdLateFunds(
  payment: Payment,
  amount: number,
  callback: Pick<BankCallback, 'value_date'> = {},
): Promise<number | undefined> {
  const { id: payment_id } = payment;
  const at = now();
  payment.late = true;
  const late = await writeScheduled((activities) =>
    activities.recordLateMoney({ payment_id, at, amount, ...pickValueDate(callback) }),
  );
  return late.reversed ? undefined : late.amount;
}

export async function applyReversal(
  payment: Payment,
  name: PaymentCallbackName,
  callback: BankCallback,
): Promise<void> {
  const { amount, currency } = callback;
  if (isForeign(payment, callback)) {
    await record.recordUnapplied(payment, name, callback, `sent back in ${currency}`);
    return await record.setAttention(payment, 'amount_differs');
  }
  const reportedAmount = amount === undefined ? {} : { amount };
  const at = now();
  const { id: payment_id } = payment;
  payment.late = true;
  const late = await writeScheduled((activities) =>
    activities.recordLateReversed({
      payment_id,
      at,
      ...reportedAmount,
      ...pickValueDate(callback),
    }),
  );
  if (late.reversed) return await record.setAttention(payment, 'late_settlement_reversed');
  const why = `the bank sent ${amount} of ${late.amount} back (minor units)`;
  await record.recordUnapplied(payment, name, callback, why);
  await record.setAttention(payment, 'amount_differs');
}

export async function dispute(payment: Payment, attention: PaymentAttention): Promise<void> {
  const { id: payment_id } = payment;
  const at = now();
  await writeScheduled((activities) => activities.recordDispute({ payment_id, at }));
  await record.setAttention(payment, attention);
}

/** @returns why the chargeback can't be posted, in words */
export async function bookChargeback(
  payment: Payment,
  audit: AuditedAct,
  amount: number | undefined,
): Promise<string | undefined> {
  const { id, at, ...act } = datedAudit(audit);
  const { id: payment_id } = payment;
  const answer = await writeScheduled((activities) =>
    activities.clawBack({ payment_id, at, amount: amount ?? null, id, audit: act }),
  );
  if (answer.outcome === 'already_posted')
    return 'The chargeback of the payment is posted already.';
  if (answer.outcome === 'amount_too_large') {
    return `The payment has brought ${answer.settled}; no more can be taken back (minor units).`;
  }
  payment.attention = null;
  note(payment, `chargeback: ${answer.held} from the balance, ${answer.owed} owed (minor units)`);
  record.show(payment);
  return undefined;
}

/** @returns why it can't be posted, in words */
export async function bookReversal(
  payment: Payment,
  audit: AuditedAct,
): Promise<string | undefined> {
  const { id: payment_id } = payment;
  const at = now();
  if (!payment.late) return 'No money came late.';
  await writeScheduled((activities) => activities.recordLateReversed({ payment_id, at }));
  await record.recordAct(payment, audit, null);
  record.show(payment);
  return undefined;
}

import { assertNever } from '../../src/domain/assert';
import {
  type BankCallback,
  describeDifference,
  describeFailure,
  type PaymentCallbackName,
} from '../../src/domain/callback/callback';
import { decidePayment, PAYMENT_FAILURES } from '../../src/domain/payment/payment';
import { findReported, holdsMoney, isInSuspense } from '../../src/domain/payment/receipt';
import { note } from '../shared/state';
import * as bank from './bank';
import * as money from './money';
import { type Payment, record } from './state';

export async function applyCallback(
  payment: Payment,
  name: PaymentCallbackName,
  callback: BankCallback,
): Promise<void> {
  const { callback_id, bank_reference, value_date } = callback;
  const decision = decidePayment(payment.status, name, holdsMoney(payment));
  note(payment, `callback \`${name}\` (${callback_id}): ${decision.kind}`);
  const unapplied = (why: string) => record.recordUnapplied(payment, name, callback, why);
  switch (decision.kind) {
    case 'move': {
      if ((name === 'authorized' || name === 'settled') && isQuestionable(payment, callback)) {
        return await hold(payment, name, callback);
      }
      const failure = describeFailure(callback, PAYMENT_FAILURES.bank);
      const change = {
        ...(name === 'failed' ? { failure } : {}),
        ...(bank_reference ? { bank_reference } : {}),
      };
      return await record.transition(payment, decision.to, { change, callback_id, value_date });
    }
    case 'void':
      await unapplied(`late: the payment is ${payment.status}; to be voided`);
      return await bank.voidLateAuthorization(payment);
    case 'reverse':
      return await reverseLatePayment(payment, name, callback);
    case 'settled_again':
      return await holdSecondSettlement(payment, name, callback);
    case 'reversed':
      return await money.applyReversal(payment, name, callback);
    case 'not_reversed':
      await unapplied('money in suspense could not be sent back');
      return await record.setAttention(payment, 'late_settlement_not_reversed');
    case 'dispute':
      await unapplied(decision.reason);
      return await money.dispute(payment, decision.attention);
    case 'dispute_report':
      return await money.bookDispute(payment, decision.name, callback);
    case 'unapplied':
      await unapplied(decision.reason);
      if (decision.attention !== undefined) await record.setAttention(payment, decision.attention);
      return;
    default:
      assertNever(decision);
  }
}

function isQuestionable(payment: Payment, callback: BankCallback): boolean {
  if (describeDifference(callback, payment.facts) !== undefined) return true;
  if (findReported(payment.receipts, callback) !== undefined) return true;
  return callback.amount === undefined && holdsMoney(payment);
}

/** Posts a different amount to suspense; a repeat without one settles nothing. */
async function hold(
  payment: Payment,
  name: PaymentCallbackName,
  callback: BankCallback,
): Promise<void> {
  const difference = describeDifference(callback, payment.facts);
  const receipt =
    difference !== undefined && name === 'settled'
      ? await money.holdReceipt(payment, 'amount_differs', callback)
      : findReported(payment.receipts, callback);
  const why = difference ?? 'money of the payment is in suspense';
  await record.recordUnapplied(payment, name, callback, why);
  if (receipt !== undefined && !isInSuspense(receipt)) return;
  await record.setAttention(payment, 'amount_differs');
}

async function holdSecondSettlement(
  payment: Payment,
  name: PaymentCallbackName,
  callback: BankCallback,
): Promise<void> {
  const receipt = await money.holdReceipt(payment, 'second_settlement', callback);
  const isSecond = receipt?.reason === 'second_settlement' && isInSuspense(receipt);
  const why = isSecond
    ? 'a second settlement; it is in suspense'
    : 'the payment is settled already';
  await record.recordUnapplied(payment, name, callback, why);
  if (isSecond) await record.setAttention(payment, 'second_settlement');
}

async function reverseLatePayment(
  payment: Payment,
  name: PaymentCallbackName,
  callback: BankCallback,
): Promise<void> {
  const isForeign = money.isForeign(payment, callback);
  const reason = isForeign ? 'amount_differs' : 'late';
  const receipt = await money.holdReceipt(payment, reason, callback);
  const about = isForeign ? `late, and in ${callback.currency}` : 'late; to be sent back';
  await record.recordUnapplied(
    payment,
    name,
    callback,
    `${about}: the payment is ${payment.status}`,
  );
  if (receipt === undefined || !isInSuspense(receipt)) return;
  if (receipt.reason === 'late') return await bank.reverseLateFunds(payment, receipt);
  await record.setAttention(payment, 'amount_differs');
}

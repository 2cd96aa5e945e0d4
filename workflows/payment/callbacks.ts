import { assertNever } from '../../src/domain/assert';
import {
  type BankCallback,
  type CallbackSignature,
  describeDifference,
  describeFailure,
  type PaymentCallbackName,
} from '../../src/domain/banks/callback';
import {
  computeRest,
  findMovement,
  fits,
  holdsMoney,
  isInSuspense,
  toUnits,
} from '../../src/domain/banks/movement';
import {
  decidePayment,
  METHOD_DIFFERS,
  PAYMENT_FAILURES,
  type PaymentDecision,
} from '../../src/domain/payment/payment';
import { note } from '../shared/state';
import * as bank from './bank';
import * as money from './money';
import { type Payment, record } from './state';

export async function applyCallback(
  payment: Payment,
  name: PaymentCallbackName,
  callback: BankCallback,
  signature: CallbackSignature | undefined,
): Promise<void> {
  const { callback_id, bank_reference, value_date, available_on, fee } = callback;
  const decision: PaymentDecision = isOfSuspense(payment, name, callback)
    ? { kind: 'reversed' }
    : decidePayment(payment.status, name, holdsMoney(payment));
  note(payment, `callback ${name} (${callback_id}): ${decision.kind}`);
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
        ...(name === 'settled' && available_on !== undefined ? { available_on } : {}),
      };
      const told = { callback_id, value_date, fee, reference: bank_reference || undefined };
      await record.transition(payment, decision.to, { change, ...told });
      const isOther = name === 'settled' && callback.code === METHOD_DIFFERS;
      if (isOther) await record.setAttention(payment, METHOD_DIFFERS);
      return;
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
      return await money.forwardReport(payment, decision.name, callback, signature);
    case 'unapplied':
      await unapplied(decision.reason);
      if (decision.attention !== undefined) await record.setAttention(payment, decision.attention);
      return;
    default:
      assertNever(decision);
  }
}

/** Finds whether a chargeback is about money in suspense, which goes first. */
function isOfSuspense(
  { movements }: Payment,
  name: PaymentCallbackName,
  { amount, currency }: BankCallback,
): boolean {
  if (name !== 'clawed_back' || amount === undefined) return false;
  return movements.some(
    (movement) =>
      movement.direction === 'in' &&
      isInSuspense(movement) &&
      fits({ ...movement, amount: toUnits(movement, computeRest(movement)) }, { amount, currency }),
  );
}

function isQuestionable(payment: Payment, callback: BankCallback): boolean {
  if (describeDifference(callback, payment.facts) !== undefined) return true;
  if (findReported(payment, callback) !== undefined) return true;
  return callback.amount === undefined && holdsMoney(payment);
}

/** Finds a movement of the report, whose money is as requested where it does not say. */
function findReported({ movements, facts }: Payment, callback: BankCallback) {
  const { amount, currency } = facts;
  return findMovement(movements, { amount, currency, ...money.buildReceipt(callback) });
}

/** Holds a different amount in suspense; a repeat without one settles nothing. */
async function hold(
  payment: Payment,
  name: PaymentCallbackName,
  callback: BankCallback,
): Promise<void> {
  const difference = describeDifference(callback, payment.facts);
  const movement =
    name === 'settled' && (difference !== undefined || findReported(payment, callback))
      ? await money.holdReceipt(payment, 'amount_differs', callback)
      : findReported(payment, callback);
  const why = difference ?? 'money of the payment is in suspense';
  await record.recordUnapplied(payment, name, callback, why);
  if (movement !== undefined && !isInSuspense(movement)) return;
  await record.setAttention(payment, 'amount_differs');
}

async function holdSecondSettlement(
  payment: Payment,
  name: PaymentCallbackName,
  callback: BankCallback,
): Promise<void> {
  const movement = await money.holdReceipt(payment, 'second_settlement', callback);
  const isSecond = movement?.reason === 'second_settlement' && isInSuspense(movement);
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
  const { status, facts } = payment;
  const { currency = facts.currency } = callback;
  const isForeign = currency !== facts.currency;
  const reason = isForeign ? 'amount_differs' : 'late';
  const movement = await money.holdReceipt(payment, reason, callback);
  const about = isForeign ? `late, and in ${currency}` : 'late; to be sent back';
  const why = `${about}: the payment is ${status}`;
  await record.recordUnapplied(payment, name, callback, why);
  if (movement === undefined || !isInSuspense(movement)) return;
  if (movement.reason === 'late') return await bank.reverseLateFunds(payment, movement);
  await record.setAttention(payment, 'amount_differs');
}

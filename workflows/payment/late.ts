import { ActivityFailure } from '@temporalio/workflow';
import { factsOf, note } from '../shared/life';
import { insist } from './bank';
import type { PaymentLife } from './life';
import { attend } from './record';

/** It has ended here; the bank must still stop taking the customer's money. */
export async function closeLater(life: PaymentLife): Promise<void> {
  const bank = insist(life, 'Close the session at the bank');
  const answer = await unlessRefused(bank.closeSession({ payment_id: life.paymentId }));
  note(life, `session at the bank: ${answer?.outcome ?? 'not closed'}`);
  if (answer?.outcome === 'already_authorized') await voidLate(life);
}

/** The customer authorised after the end. */
export async function voidLate(life: PaymentLife): Promise<void> {
  const { payment_id } = factsOf(life);
  await attend(life, 'late_money_pending');
  const bank = insist(life, 'Void the late authorisation');
  const instruction_id = `void:${payment_id}`;
  const answer = await unlessRefused(bank.voidPayment({ payment_id, instruction_id }));
  note(life, `void at the bank: ${answer?.outcome ?? 'refused'}`);
  if (answer?.outcome === 'already_settled') return await reverseLate(life);
  await attend(life, answer ? 'late_authorization_voided' : 'late_settlement_not_reversed');
}

/** The money moved after the end. */
export async function reverseLate(life: PaymentLife): Promise<void> {
  const { payment_id, amount, currency } = factsOf(life);
  await attend(life, 'late_money_pending');
  const bank = insist(life, 'Send the late money back');
  const instruction_id = `reversal:${payment_id}`;
  const instruction = { payment_id, instruction_id, amount, currency };
  const answer = await unlessRefused(bank.reversePayment(instruction));
  note(life, `reversal at the bank: ${answer?.outcome ?? 'refused'}`);
  const accepted = answer?.outcome === 'accepted';
  await attend(life, accepted ? 'late_settlement_reversed' : 'late_settlement_not_reversed');
}

/** Undefined when the connector refuses for good, which it should say as a value. */
async function unlessRefused<T>(answer: Promise<T>): Promise<T | undefined> {
  try {
    return await answer;
  } catch (error) {
    if (error instanceof ActivityFailure) return undefined;
    throw error;
  }
}

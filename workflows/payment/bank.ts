import { ActivityFailure, proxyActivities } from '@temporalio/workflow';
import type {
  CloseAnswer,
  ConnectorActivities,
  SessionAnswer,
  SessionInstruction,
} from '../../connectors/contract/activities';
import type { PaymentInput } from '../../src/domain/payment/workflow';
import { bankQueue } from '../shared/bank-activities';
import { note } from '../shared/state';
import { holdLateFunds } from './money';
import { type Payment, type PaymentItem, record } from './state';

/** For a slower bank, the API answers `created`, within 5 s. @see docs/decisions.md#payments */
const SESSION_QUICK = '4s';

export type Opening = Omit<PaymentInput, 'expires_in_seconds'>;

function sessionInstruction(input: Opening, expires_at: string): SessionInstruction {
  const { payment_id, amount, currency, method, country, livemode, return_url } = input;
  return { payment_id, amount, currency, method, country, livemode, return_url, expires_at };
}

/** @returns undefined when the bank is slow or unavailable */
export async function quickSession(
  input: PaymentInput,
  expires_at: string,
): Promise<SessionAnswer | undefined> {
  const { openSession } = proxyActivities<ConnectorActivities>({
    taskQueue: bankQueue(input.connector),
    scheduleToCloseTimeout: SESSION_QUICK,
    retry: { initialInterval: '200ms', maximumAttempts: 3 },
    summary: 'Open a session at the bank',
  });
  return await unlessFailed(openSession(sessionInstruction(input, expires_at)));
}

/** Repeats until the bank answers, under the same instruction id. */
export function patientSession(input: Opening, expires_at: string): Promise<SessionAnswer> {
  const { openSession } = proxyActivities<ConnectorActivities>({
    taskQueue: bankQueue(input.connector),
    startToCloseTimeout: '60s',
    retry: { initialInterval: '1s', backoffCoefficient: 2, maximumInterval: '30s' },
    summary: 'Open a session at the bank (it was slow)',
  });
  return openSession(sessionInstruction(input, expires_at));
}

export async function closeAtBank(
  payment: Payment,
  within: '3s' | '5 minutes',
): Promise<CloseAnswer['outcome'] | 'unreachable'> {
  const { closeSession } = proxyActivities<ConnectorActivities>({
    taskQueue: bankQueue(payment.facts.connector),
    scheduleToCloseTimeout: within,
    retry: { initialInterval: '200ms', backoffCoefficient: 2, maximumInterval: '10s' },
    summary: 'Close the session at the bank',
  });
  const answer = await unlessFailed(closeSession({ payment_id: payment.id }));
  if (answer === undefined) note(payment, 'The bank could not be asked to close the session.');
  return answer?.outcome ?? 'unreachable';
}

/** Closes the session of an ended payment in the background; the answer comes by the inbox. */
export async function closeInBackground(payment: Payment): Promise<void> {
  payment.closing = true;
  await record.setAttention(payment, 'session_not_closed');
  const bank = getPatientActivities(payment, 'Close the session at the bank');
  void unlessFailed(bank.closeSession({ payment_id: payment.id })).then((answer) =>
    payment.inbox.push({ kind: 'closed', answer }),
  );
}

export async function applyClosing(
  payment: Payment,
  { answer }: Extract<PaymentItem, { kind: 'closed' }>,
): Promise<void> {
  payment.closing = false;
  note(payment, `session at the bank: ${answer?.outcome ?? 'not closed, refused for good'}`);
  // A final refusal keeps the attention reason: the customer may still be able to pay.
  if (answer === undefined) return record.show(payment);
  if (payment.attention === 'session_not_closed') await record.setAttention(payment, null);
  // Also after a callback has said so: the instruction to void has one id.
  if (answer.outcome === 'already_authorized') await voidLateAuthorization(payment);
}

/** Voids the authorization of a customer who paid after the end. */
export async function voidLateAuthorization(payment: Payment): Promise<void> {
  const { id: payment_id } = payment;
  await record.setAttention(payment, 'late_money_pending');
  const bank = getPatientActivities(payment, 'Void the late authorisation');
  const instruction_id = `void:${payment_id}`;
  const answer = await unlessFailed(bank.voidPayment({ payment_id, instruction_id }));
  note(payment, `void at the bank: ${answer?.outcome ?? 'refused'}`);
  if (answer?.outcome === 'already_settled') {
    return await reverseLateFunds(payment, await holdLateFunds(payment, payment.facts.amount));
  }
  const voided = answer !== undefined;
  await record.setAttention(
    payment,
    voided ? 'late_authorization_voided' : 'late_settlement_not_reversed',
  );
}

/** @param amount minor units; undefined where they are back already */
export async function reverseLateFunds(
  payment: Payment,
  amount: number | undefined,
): Promise<void> {
  if (amount === undefined) return;
  const { id: payment_id } = payment;
  const { currency } = payment.facts;
  await record.setAttention(payment, 'late_money_pending');
  const bank = getPatientActivities(payment, 'Send the late funds back');
  const instruction_id = `reversal:${payment_id}`;
  const answer = await unlessFailed(
    bank.reversePayment({ payment_id, instruction_id, amount, currency }),
  );
  note(payment, `reversal at the bank: ${answer?.outcome ?? 'refused'}`);
  const accepted = answer?.outcome === 'accepted';
  await record.setAttention(
    payment,
    accepted ? 'late_settlement_reversed' : 'late_settlement_not_reversed',
  );
}

/** Retries without end. */
function getPatientActivities(payment: Payment, summary: string) {
  return proxyActivities<ConnectorActivities>({
    taskQueue: bankQueue(payment.facts.connector),
    startToCloseTimeout: '60s',
    retry: { initialInterval: '1s', backoffCoefficient: 2, maximumInterval: '10 minutes' },
    summary,
  });
}

/** @returns undefined without an answer in time, or after a permanent refusal */
async function unlessFailed<T>(answer: Promise<T>): Promise<T | undefined> {
  try {
    return await answer;
  } catch (error) {
    if (error instanceof ActivityFailure) return undefined;
    throw error;
  }
}

import { ActivityCancellationType, CancellationScope, proxyActivities } from '@temporalio/workflow';
import type {
  CloseAnswer,
  ConnectorActivities,
  SessionAnswer,
  SessionInstruction,
} from '../../connectors/contract/activities';
import {
  computeRest,
  isGoingBack,
  isInSuspense,
  type Movement,
  reversalId,
} from '../../src/domain/banks/movement';
import type { PaymentInput } from '../../src/domain/payment/payment';
import { bankQueue, encodeReference } from '../shared/instruction';
import { holdMovement } from '../shared/movement';
import { writeScheduled } from '../shared/persist';
import { unlessFailed } from '../shared/refusal';
import { note } from '../shared/state';
import { type Payment, type PaymentItem, record } from './state';

/** For a slower bank, the API answers `created`, within 5 s. @see docs/decisions.md#payments */
const SESSION_QUICK = '4s';

export type Opening = Omit<PaymentInput, 'expires_in_seconds'>;

function sessionInstruction(input: Opening, expires_at: string): SessionInstruction {
  const { payment_id, amount, currency, method, country, livemode, return_url } = input;
  return { payment_id, amount, currency, method, country, livemode, return_url, expires_at };
}

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
  const opening = openSession(sessionInstruction(input, expires_at)).then(encodeReference);
  return await unlessFailed(opening);
}

/** Repeats under the same instruction id. */
export function patientSession(input: Opening, expires_at: string): Promise<SessionAnswer> {
  const { openSession } = proxyActivities<ConnectorActivities>({
    taskQueue: bankQueue(input.connector),
    startToCloseTimeout: '60s',
    retry: { initialInterval: '1s', backoffCoefficient: 2, maximumInterval: '30s' },
    summary: 'Open a session at the bank (it was slow)',
  });
  return openSession(sessionInstruction(input, expires_at)).then(encodeReference);
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

export async function closeInBackground(payment: Payment): Promise<void> {
  payment.closing = true;
  await record.setAttention(payment, 'session_not_closed');
  const bank = getPatientActivities(payment, 'Close the session at the bank');
  const scope = new CancellationScope();
  payment.giveUpClosing = () => scope.cancel();
  const closing = scope.run(() => bank.closeSession({ payment_id: payment.id }));
  void unlessFailed(closing).then((answer) => payment.inbox.push({ kind: 'closed', answer }));
}

export async function applyClosing(
  payment: Payment,
  { answer }: Extract<PaymentItem, { kind: 'closed' }>,
): Promise<void> {
  payment.closing = false;
  payment.giveUpClosing = () => undefined;
  note(payment, `session at the bank: ${answer?.outcome ?? 'not closed, refused for good'}`);
  // A final refusal keeps the attention reason: the customer may still be able to pay.
  if (answer === undefined) return record.show(payment);
  if (payment.attention === 'session_not_closed') await record.setAttention(payment, null);
  // Also after a callback has said so: the instruction to void has one id.
  if (answer.outcome === 'already_authorized') await voidLateAuthorization(payment);
}

/** Voids what a customer authorized after the end; the answer comes by the inbox. */
export async function voidLateAuthorization(payment: Payment): Promise<void> {
  const { id: payment_id } = payment;
  const instruction_id = `void:${payment_id}`;
  await record.setAttention(payment, 'late_money_pending');
  const bank = getPatientActivities(payment, 'Void the late authorisation');
  instruct(payment, instruction_id, {
    send: () => bank.voidPayment({ payment_id, instruction_id }),
    buildItem: (answer) => ({ kind: 'voided', instruction_id, answer }),
  });
}

interface Instruction<Answer> {
  send: () => Promise<Answer>;
  /** @param answer undefined: refused for good, or given up by an operator */
  buildItem: (answer: Answer | undefined) => PaymentItem;
}

/** Instructs the bank unless an answer to the same id is awaited. */
function instruct<Answer>(
  { inbox, instructing }: Payment,
  instruction_id: string,
  { send, buildItem }: Instruction<Answer>,
): void {
  if (instructing.has(instruction_id)) return;
  const scope = new CancellationScope();
  instructing.set(instruction_id, () => scope.cancel());
  void unlessFailed(scope.run(send)).then((answer) => inbox.push(buildItem(answer)));
}

export async function applyVoid(
  payment: Payment,
  { instruction_id, answer }: Extract<PaymentItem, { kind: 'voided' }>,
): Promise<void> {
  payment.instructing.delete(instruction_id);
  note(payment, `void at the bank: ${answer?.outcome ?? 'refused'}`);
  if (answer?.outcome === 'already_settled') {
    const { amount, currency } = answer;
    if (amount === undefined || currency !== payment.facts.currency) {
      return await record.setAttention(payment, 'late_settlement_not_reversed');
    }
    const source = { kind: 'answer', id: instruction_id } as const;
    const report = { source, direction: 'in', amount, currency } as const;
    const late = { direction: 'in', reason: 'late' } as const;
    const { movement } = await holdMovement(record, 'payment', payment, report, late);
    return await reverseLateFunds(payment, movement);
  }
  await record.setAttention(
    payment,
    answer === undefined ? 'late_settlement_not_reversed' : 'late_authorization_voided',
  );
}

export async function reverseLateFunds(
  payment: Payment,
  movement: Movement | undefined,
): Promise<void> {
  if (movement === undefined || !isInSuspense(movement)) return;
  const { id: payment_id, movements } = payment;
  const { currency } = movement;
  const amount = Number(computeRest(movement));
  const instruction_id = reversalId(payment_id, movements, movement.id);
  await record.setAttention(payment, 'late_money_pending');
  const bank = getPatientActivities(payment, 'Send the late funds back');
  instruct(payment, instruction_id, {
    send: () => bank.reversePayment({ payment_id, instruction_id, amount, currency }),
    buildItem: (answer) => ({
      ...{ kind: 'sent_back', instruction_id, movement_id: movement.id, answer },
    }),
  });
}

export async function applySentBack(
  payment: Payment,
  { instruction_id, movement_id, answer }: Extract<PaymentItem, { kind: 'sent_back' }>,
): Promise<void> {
  payment.instructing.delete(instruction_id);
  note(payment, `reversal at the bank: ${answer?.outcome ?? 'refused'}`);
  // A run that was reset does not know what the record has.
  if (answer?.outcome === 'outdated') {
    const ids = { resource_id: payment.id, request_id: payment.facts.request_id };
    const stored = await writeScheduled((activities) => activities.loadPayment(ids));
    payment.movements = stored.movements;
  }
  const movement = payment.movements.find(({ id }) => id === movement_id);
  const isBack = movement?.resolutions.some(({ as }) => as === 'customer');
  if (answer?.outcome === 'outdated' && movement && !isInSuspense(movement) && !isBack) {
    // A reason that is shown already is of another movement.
    if (payment.attention === 'late_settlement_reversed') return record.show(payment);
    return await record.setAttention(payment, null, true);
  }
  // The bank may have reported the return before it answered.
  const hasLeft = movement !== undefined && !isInSuspense(movement);
  if (hasLeft && movement.reason !== 'late') return record.show(payment);
  const isDone = answer?.outcome === 'accepted' || hasLeft;
  await record.setAttention(
    payment,
    isDone ? 'late_settlement_reversed' : 'late_settlement_not_reversed',
  );
}

/** Repeats an earlier run's instructions, which may not have reached the bank. */
export async function resumeInstructions(payment: Payment): Promise<void> {
  const { attention, movements } = payment;
  if (attention !== 'late_money_pending') return;
  const back = movements.filter(isGoingBack);
  for (const movement of back) await reverseLateFunds(payment, movement);
  if (back.length === 0) await voidLateAuthorization(payment);
}

function getPatientActivities(payment: Payment, summary: string) {
  return proxyActivities<ConnectorActivities>({
    taskQueue: bankQueue(payment.facts.connector),
    startToCloseTimeout: '60s',
    retry: { initialInterval: '1s', backoffCoefficient: 2, maximumInterval: '10 minutes' },
    // An attempt in progress may still move money: its answer counts.
    cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
    summary,
  });
}

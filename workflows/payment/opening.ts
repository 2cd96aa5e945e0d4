import { ActivityFailure } from '@temporalio/workflow';
import { omitUndefined } from '../../src/domain/defined';
import { isFinal } from '../../src/domain/payment/payment';
import type { PaymentInput, PaymentResume } from '../../src/domain/payment/workflow';
import { now } from '../shared/clock';
import { receiveMissed } from '../shared/inbox';
import { writeLocally, writeScheduled } from '../shared/persist';
import { isReported, note } from '../shared/state';
import * as bank from './bank';
import { messages } from './messages';
import { newPayment, type Payment, type PaymentItem, type PaymentMailbox, record } from './state';

export async function open(mail: PaymentMailbox, input: PaymentInput): Promise<Payment> {
  const startedAt = now(mail);
  const { expires_in_seconds, clock, ...opening } = input;
  const { return_url, ...money } = opening;
  const facts = { ...money, expires_at_ms: startedAt + expires_in_seconds * 1_000 };
  const created_at = new Date(startedAt).toISOString();
  const expires_at = new Date(facts.expires_at_ms).toISOString();
  const session = await bank.quickSession(input, expires_at);
  const { opening: first, ...state } = await writeLocally((activities) =>
    activities.openPayment({ ...opening, created_at, expires_at, session: session ?? null }),
  );
  const snapshot = { facts, ...state, attention: null };
  const payment = newPayment(mail, facts.payment_id, snapshot, false);
  payment.opening = first;
  payment.enteredAt = startedAt;
  record.show(payment);
  if (session === undefined) awaitSession(payment, input, expires_at);
  // Opened earlier, when the bank was slow.
  else if (payment.status === 'created') mail.inbox.push({ kind: 'session', answer: session });
  return payment;
}

export async function load(mail: PaymentMailbox, start: PaymentResume): Promise<Payment> {
  const { payment_id: resource_id, request_id } = start;
  const snapshot = await writeScheduled((activities) =>
    activities.loadPayment({ resource_id, request_id }),
  );
  const payment = newPayment(mail, resource_id, snapshot, true);
  payment.isOverdueReported = isReported(payment, 'settlement_overdue');
  receiveMissed(mail, messages, snapshot.missed);
  const { return_url, expires_at, authorized_at } = snapshot;
  if (payment.status === 'authorized' && authorized_at !== null) {
    payment.enteredAt = Date.parse(authorized_at);
  }
  if (payment.status === 'created' && return_url !== null) {
    awaitSession(payment, { ...payment.facts, return_url }, expires_at);
  }
  const ended = isFinal(payment.status);
  record.logActivity(payment, ended ? 'Started again after the end.' : 'Started again in flight.');
  await bank.resumeInstructions(payment);
  return payment;
}

function awaitSession(payment: Payment, input: bank.Opening, expires_at: string): void {
  note(payment, 'The bank is slow to open a session; the API has answered `created`.');
  void bank.patientSession(input, expires_at).then(
    (answer) => payment.inbox.push({ kind: 'session', answer }),
    (error) => {
      if (!(error instanceof ActivityFailure)) throw error;
      note(payment, 'The bank refused for good to open a session.');
    },
  );
}

export async function applySession(
  payment: Payment,
  { answer }: Extract<PaymentItem, { kind: 'session' }>,
): Promise<void> {
  if (payment.status !== 'created') {
    // A callback came first: refunds need the bank's own name.
    if (answer.outcome === 'opened') payment.bankReference = answer.bank_reference ?? undefined;
    return;
  }
  if (answer.outcome === 'declined') {
    const failure = { code: answer.code, message: answer.message };
    return await record.transition(payment, ['failed'], { change: { failure }, scheduled: true });
  }
  const { bank_reference, session_url, instructions } = answer;
  const change = omitUndefined({ bank_reference, session_url, instructions });
  await record.transition(payment, ['awaiting_customer'], { change, scheduled: true });
}

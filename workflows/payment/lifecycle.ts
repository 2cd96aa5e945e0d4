import { ActivityFailure, CancellationScope } from '@temporalio/workflow';
import { isFinal, paymentWorkflowId } from '../../src/domain/payment';
import type {
  PaymentInput,
  PaymentResume,
  PaymentStart,
  PaymentState,
} from '../../src/domain/payment-workflow';
import { note } from '../shared/life';
import { persist } from '../shared/persist';
import { assertIdentity } from '../shared/refusal';
import { type Due, live } from '../shared/run-loop';
import { patientSession, quickSession } from './bank';
import { listen } from './handlers';
import { beginLife, type PaymentLife, stateOf } from './life';
import { expire, handle, markOverdue } from './steps';
import { show } from './view';

/**
 * The life of one payment: opened at the bank and stored, then moved by callbacks, a cancellation or
 * the expiry timer until it is final. @see spec §3.1
 */
export async function payment(start: PaymentStart): Promise<PaymentState> {
  assertIdentity('payment_id', Object(start).payment_id, paymentWorkflowId);
  const life = beginLife(start);
  listen(life);
  // A cancel request from the Temporal UI must not leave money half moved: it is not heeded.
  return await CancellationScope.nonCancellable(async () => {
    if ('resume' in start) await resume(life, start);
    else await open(life, start);
    await live({
      inbox: life.inbox,
      handle: (item) => handle(life, item),
      isFinal: () => isFinal(life.status),
      nextDue: () => nextDue(life),
    });
    return stateOf(life);
  });
}

async function open(life: PaymentLife, input: PaymentInput): Promise<void> {
  const { return_url, expires_in_seconds, ...facts } = input;
  const created_at = new Date(life.since).toISOString();
  life.facts = { ...facts, expires_at_ms: life.since + expires_in_seconds * 1_000 };
  const expires_at = new Date(life.facts.expires_at_ms).toISOString();
  const answer = await quickSession(input, expires_at);
  const opened = await persist((activities) =>
    activities.openPayment({ ...facts, created_at, expires_at, session: answer ?? null }),
  );
  life.status = opened.status;
  life.version = opened.version;
  life.stored = true;
  show(life);
  if (answer === undefined) {
    note(life, 'The bank is slow to open a session; the API has answered `created`.');
    void patientSession(input, expires_at).then(
      (late) => life.inbox.push({ kind: 'session', answer: late }),
      (error) => {
        if (!(error instanceof ActivityFailure)) throw error;
        note(life, 'The bank refused for good to open a session.');
      },
    );
  }
}

async function resume(life: PaymentLife, start: PaymentResume): Promise<void> {
  const stored = await persist((activities) =>
    activities.loadPayment({ payment_id: start.payment_id, request_id: start.request_id }),
  );
  life.facts = stored.facts;
  life.status = stored.status;
  life.version = stored.version;
  life.attention = stored.attention;
  life.stored = true;
  note(life, 'Started again by a callback after the payment had ended.');
  show(life);
}

function nextDue(life: PaymentLife): Due | undefined {
  const facts = life.facts;
  if (facts === undefined || isFinal(life.status)) return undefined;
  if (life.status !== 'authorized') {
    return { at: facts.expires_at_ms, summary: 'Payment expires', act: () => expire(life) };
  }
  if (life.attention === 'settlement_overdue') return undefined;
  const at = life.snoozedUntil ?? life.since + facts.settlement_due_seconds * 1_000;
  return { at, summary: 'Settlement is due', act: () => markOverdue(life) };
}

import { ApplicationFailure, type Trigger, workflowInfo } from '@temporalio/workflow';
import type { BankCallback, PaymentCallbackName } from '../src/domain/callback';
import {
  CANCELLATIONS,
  decidePayment,
  type Failure,
  isCancellable,
  isFinal,
  type PaymentAttention,
  type PaymentStatus,
} from '../src/domain/payment';
import type { PaymentState } from '../src/domain/payment-workflow';
import { show } from './operator-view';
import { closeAtBank, insist } from './payment-bank';
import { factsOf, type InboxItem, note, type PaymentLife, stateOf } from './payment-life';
import { persist, persistRecorded } from './persist';

type Item<Kind extends InboxItem['kind']> = Extract<InboxItem, { kind: Kind }>;

/** One thing from the inbox, whole: whatever it changes is written when this returns. */
export async function handle(life: PaymentLife, item: InboxItem): Promise<void> {
  switch (item.kind) {
    case 'callback':
      return await applyCallback(life, item.name, item.callback);
    case 'malformed':
      note(life, `unreadable callback \`${item.name}\`: ${item.fault}`);
      return await attend(life, 'malformed_callback');
    case 'cancel':
      return await cancel(life, item);
    case 'session':
      return await applySession(life, item);
    case 'operator':
      return await applyOperator(life, item);
  }
}

async function applyCallback(
  life: PaymentLife,
  name: PaymentCallbackName,
  callback: BankCallback,
): Promise<void> {
  const decision = decidePayment(life.status, name);
  note(life, `callback \`${name}\` (${callback.callback_id}): ${decision.kind}`);
  switch (decision.kind) {
    case 'move':
      return await move(life, decision.to, {
        ...(name === 'failed' ? { failure: bankFailure(callback) } : {}),
        ...(callback.bank_reference ? { bank_reference: callback.bank_reference } : {}),
      });
    case 'void':
      await unapply(life, name, callback, `late: the payment is ${life.status}; voided`);
      return await voidLate(life);
    case 'reverse':
      await unapply(life, name, callback, `late: the payment is ${life.status}; reversed`);
      return await reverseLate(life);
    case 'unapplied':
      await unapply(life, name, callback, decision.reason);
      if (decision.attention !== undefined) await attend(life, decision.attention);
  }
}

function bankFailure(callback: BankCallback): Failure {
  return {
    code: callback.code ?? 'declined',
    message: callback.reason ?? 'The bank declined the payment.',
  };
}

interface MoveExtras {
  failure?: Failure;
  bank_reference?: string;
  session_url?: string;
  audit?: { who: string; what: string; why: string };
}

/** The one place where a status changes: document, events and memory together. */
async function move(
  life: PaymentLife,
  to: readonly PaymentStatus[],
  extras: MoveExtras = {},
): Promise<void> {
  const { payment_id, account_id, livemode, request_id } = factsOf(life);
  const last = to.at(-1);
  if (last === undefined) return;
  const at = new Date().toISOString();
  const from = { status: life.status, version: life.version };
  // An overdue mark ends with the state that it spoke of.
  const attention = life.attention === 'settlement_overdue' ? null : life.attention;
  const write = extras.audit === undefined ? persist : persistRecorded;
  await write((activities) =>
    activities.recordMove({
      ...{ payment_id, account_id, livemode, request_id },
      ...{ from, to: [...to], at, attention },
      ...extras,
    }),
  );
  life.status = last;
  life.version += to.length;
  life.since = Date.now();
  life.attention = attention;
  life.snoozedUntil = undefined;
  show(life);
}

async function unapply(
  life: PaymentLife,
  name: PaymentCallbackName,
  callback: BankCallback,
  reason: string,
): Promise<void> {
  const { connector, payment_id, request_id } = factsOf(life);
  await persist((activities) =>
    activities.recordUnapplied({ payment_id, connector, name, callback, reason, request_id }),
  );
}

async function attend(life: PaymentLife, attention: PaymentAttention | null): Promise<void> {
  const { payment_id, request_id } = factsOf(life);
  await persist((activities) =>
    activities.recordAttention({ payment_id, attention, request_id, audit: null }),
  );
  life.attention = attention;
  show(life);
}

/** Decided: the bank is asked to close first; where the customer was faster, it is not cancelled. */
async function cancel(life: PaymentLife, { by, answer }: Item<'cancel'>): Promise<void> {
  if (isCancellable(life.status) && (await closeAtBank(life)) === 'closed') {
    await move(life, ['cancelled'], { failure: CANCELLATIONS[by] });
  } else if (isCancellable(life.status)) {
    await move(life, authorizing(life));
  }
  if (life.status === 'cancelled') return answer.resolve(stateOf(life));
  reject(answer, 'cannot_cancel', `The payment is ${life.status}.`);
}

/** By the timer, from `created` and `awaiting_customer`. */
export async function expire(life: PaymentLife): Promise<void> {
  const closed = await closeAtBank(life);
  await move(life, closed === 'closed' ? ['expired'] : authorizing(life));
}

function authorizing(life: PaymentLife): PaymentStatus[] {
  return life.status === 'created' ? ['awaiting_customer', 'authorized'] : ['authorized'];
}

async function applySession(life: PaymentLife, { answer }: Item<'session'>): Promise<void> {
  if (life.status !== 'created') return;
  if (answer.outcome === 'declined') {
    const { code, message } = answer;
    return await move(life, ['failed'], { failure: { code, message } });
  }
  const { bank_reference, session_url } = answer;
  await move(life, ['awaiting_customer'], { bank_reference, session_url });
}

async function voidLate(life: PaymentLife): Promise<void> {
  const { payment_id } = factsOf(life);
  const { outcome } = await insist(life, 'Void the late authorisation').voidPayment({
    payment_id,
    instruction_id: `void:${payment_id}`,
  });
  note(life, `void at the bank: ${outcome}`);
  if (outcome === 'already_settled') return await reverseLate(life);
  await attend(life, 'late_authorization_voided');
}

async function reverseLate(life: PaymentLife): Promise<void> {
  const { payment_id, amount, currency } = factsOf(life);
  const answer = await insist(life, 'Send the late money back').reversePayment({
    payment_id,
    instruction_id: `reversal:${payment_id}`,
    amount,
    currency,
  });
  note(life, `reversal at the bank: ${answer.outcome}`);
  const refused = answer.outcome === 'refused';
  await attend(life, refused ? 'late_settlement_not_reversed' : 'late_settlement_reversed');
}

/** An authorised payment whose settlement does not come. It goes on waiting. */
export async function markOverdue(life: PaymentLife): Promise<void> {
  note(life, 'settlement is overdue');
  life.snoozedUntil = undefined;
  await attend(life, 'settlement_overdue');
}

async function applyOperator(life: PaymentLife, item: Item<'operator'>): Promise<void> {
  const { what, act, answer } = item;
  if (isFinal(life.status) || (what === 'snooze' && life.status !== 'authorized')) {
    return reject(answer, 'wrong_state', `The payment is ${life.status} by now.`);
  }
  note(life, `operator ${act.operator}: ${what} (${act.reason})`);
  const audit = { who: act.operator, what, why: act.reason };
  if (what === 'snooze') await snooze(life, item.hours ?? 0, audit);
  else if (what === 'mark_settled') await move(life, settling(life), { audit });
  else await move(life, ['failed'], { audit, failure: FAILED_BY_OPERATOR });
  answer.resolve(stateOf(life));
}

const FAILED_BY_OPERATOR: Failure = {
  code: 'failed_at_bank',
  message: 'The bank reported that the payment failed.',
};

function settling(life: PaymentLife): PaymentStatus[] {
  return life.status === 'authorized' ? ['settled'] : [...authorizing(life), 'settled'];
}

async function snooze(
  life: PaymentLife,
  hours: number,
  audit: { who: string; what: string; why: string },
): Promise<void> {
  const { payment_id, request_id } = factsOf(life);
  const at = new Date().toISOString();
  await persistRecorded((activities) =>
    activities.recordAttention({
      payment_id,
      attention: null,
      request_id,
      audit: { ...audit, at, id: `${workflowInfo().runId}:${at}` },
    }),
  );
  life.snoozedUntil = Date.now() + hours * 3_600_000;
  life.attention = null;
  show(life);
}

/** Fails the update that waits, not the workflow. */
function reject(answer: Trigger<PaymentState>, code: string, message: string): void {
  answer.reject(ApplicationFailure.nonRetryable(message, code));
}

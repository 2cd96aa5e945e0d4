import { assertNever } from '../../src/domain/assert';
import type { BankCallback, PaymentCallbackName } from '../../src/domain/callback';
import {
  CANCELLATIONS,
  decidePayment,
  type Failure,
  isCancellable,
  isFinal,
  type PaymentStatus,
} from '../../src/domain/payment';
import { factsOf, note } from '../shared/life';
import { auditOf, datedAudit } from '../shared/operator-acts';
import { persistRecorded } from '../shared/persist';
import { reject } from '../shared/refusal';
import { closeAtBank } from './bank';
import { closeLater, reverseLate, voidLate } from './late';
import { type InboxItem, type PaymentLife, stateOf } from './life';
import { attend, move, unapply } from './record';
import { show } from './view';

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
    default:
      assertNever(item);
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
      await unapply(life, name, callback, `late: the payment is ${life.status}; to be voided`);
      return await voidLate(life);
    case 'reverse':
      await unapply(life, name, callback, `late: the payment is ${life.status}; to be sent back`);
      return await reverseLate(life);
    case 'unapplied':
      await unapply(life, name, callback, decision.reason);
      if (decision.attention !== undefined) await attend(life, decision.attention);
      return;
    default:
      assertNever(decision);
  }
}

function bankFailure(callback: BankCallback): Failure {
  return {
    code: callback.code ?? 'declined',
    message: callback.reason ?? 'The bank declined the payment.',
  };
}

/** Decided: the bank is asked to close first; where the customer was faster, it is not cancelled. */
async function cancel(life: PaymentLife, { by, answer }: Item<'cancel'>): Promise<void> {
  const closed = isCancellable(life.status) ? await closeAtBank(life, '3s') : undefined;
  if (closed === 'already_authorized') await move(life, authorizing(life));
  else if (closed) await move(life, ['cancelled'], { failure: CANCELLATIONS[by] });
  if (life.status === 'cancelled') answer.resolve(stateOf(life));
  else reject(answer, 'cannot_cancel', `The payment is ${life.status}.`);
  if (closed === 'unreachable') await closeLater(life);
}

/** By the timer, from `created` and `awaiting_customer`. */
export async function expire(life: PaymentLife): Promise<void> {
  const closed = await closeAtBank(life, '5 minutes');
  await move(life, closed === 'already_authorized' ? authorizing(life) : ['expired']);
  if (closed === 'unreachable') await closeLater(life);
}

function authorizing(life: PaymentLife): PaymentStatus[] {
  return life.status === 'created' ? ['awaiting_customer', 'authorized'] : ['authorized'];
}

/** When its task is repeated, signals overtake the bank's answer: so its writes are recorded first. */
async function applySession(life: PaymentLife, { answer }: Item<'session'>): Promise<void> {
  if (life.status !== 'created') return;
  if (answer.outcome === 'declined') {
    const { code, message } = answer;
    return await move(life, ['failed'], { failure: { code, message }, recorded: true });
  }
  const { bank_reference, session_url } = answer;
  await move(life, ['awaiting_customer'], { bank_reference, session_url, recorded: true });
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
  const audit = auditOf(item);
  if (what === 'snooze') await snooze(life, item.hours ?? 0, audit);
  else if (what === 'mark_settled') await move(life, settling(life), { audit, recorded: true });
  else await move(life, ['failed'], { audit, failure: FAILED_BY_OPERATOR, recorded: true });
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
  act: ReturnType<typeof auditOf>,
): Promise<void> {
  const { payment_id, request_id } = factsOf(life);
  const audit = datedAudit(act);
  await persistRecorded((activities) =>
    activities.recordAttention({ payment_id, attention: null, request_id, audit }),
  );
  life.snoozedUntil = Date.now() + hours * 3_600_000;
  life.attention = null;
  show(life);
}

import { assertNever } from '../../src/domain/assert';
import type { BankCallback, RefundCallbackName } from '../../src/domain/callback';
import type { Failure } from '../../src/domain/payment';
import { decideRefund, isFinalRefund, REFUND_FAILURES } from '../../src/domain/refund';
import { stopInstructing } from '../shared/bank-instruction';
import { factsOf, note } from '../shared/life';
import { auditOf, datedAudit } from '../shared/operator-acts';
import { persistRecorded } from '../shared/persist';
import { reject } from '../shared/refusal';
import { type InboxItem, type RefundLife, stateOf } from './life';
import { attend, move, unapply } from './record';
import { show, tell } from './view';

type Item<Kind extends InboxItem['kind']> = Extract<InboxItem, { kind: Kind }>;

/** One thing from the inbox, whole: whatever it changes is written when this returns. */
export async function handle(life: RefundLife, item: InboxItem): Promise<void> {
  switch (item.kind) {
    case 'callback':
      return await applyCallback(life, item.name, item.callback);
    case 'malformed':
      note(life, `unreadable callback \`${item.name}\`: ${item.fault}`);
      return await attend(life, 'malformed_callback');
    case 'answer':
      return await applyAnswer(life, item);
    case 'operator':
      return await applyOperator(life, item);
    default:
      assertNever(item);
  }
}

async function applyCallback(
  life: RefundLife,
  name: RefundCallbackName,
  callback: BankCallback,
): Promise<void> {
  const decision = decideRefund(life.status, name);
  note(life, `callback \`${name}\` (${callback.callback_id}): ${decision.kind}`);
  if (decision.kind === 'move') {
    // Nothing is sent behind the bank's own word, also while that is being written.
    life.instruction += 1;
    return await move(life, decision.to, {
      ...(decision.to === 'failed' ? { failure: bankFailure(callback) } : {}),
      ...(callback.bank_reference ? { bank_reference: callback.bank_reference } : {}),
    });
  }
  await unapply(life, name, callback, decision.reason);
  if (decision.attention !== undefined) await attend(life, decision.attention);
}

function bankFailure({ code, reason }: BankCallback): Failure {
  const { bank } = REFUND_FAILURES;
  return { code: code ?? bank.code, message: reason ?? bank.message };
}

/** When its task is repeated, signals overtake the bank's answer: so its writes are recorded first. */
async function applyAnswer(life: RefundLife, { answer }: Item<'answer'>): Promise<void> {
  tell(life, `instruction at the bank: ${answer.outcome}`);
  if (isFinalRefund(life.status)) return;
  if (answer.outcome === 'refused') {
    const { code, message } = answer;
    return await move(life, 'failed', { failure: { code, message }, recorded: true });
  }
  life.bankReference = answer.bank_reference;
}

/** The bank has not said what became of it. It goes on waiting. */
export async function markOverdue(life: RefundLife): Promise<void> {
  note(life, 'the refund is overdue');
  life.snoozedUntil = undefined;
  life.overdueTold = true;
  await attend(life, 'refund_overdue');
}

async function applyOperator(life: RefundLife, item: Item<'operator'>): Promise<void> {
  const { what, act, answer } = item;
  if (isFinalRefund(life.status)) {
    return reject(answer, 'wrong_state', `The refund is ${life.status} by now.`);
  }
  tell(life, `operator ${act.operator}: ${what} (${act.reason})`);
  const audit = auditOf(item);
  if (what === 'mark_failed' && (await stopInstructing(life))) {
    return reject(answer, 'wrong_state', 'The bank has just taken the refund; look again.');
  }
  if (what === 'snooze') await snooze(life, item.hours ?? 0, audit);
  else if (what === 'mark_settled') await move(life, 'settled', { audit, recorded: true });
  else await move(life, 'failed', { audit, failure: REFUND_FAILURES.operator, recorded: true });
  answer.resolve(stateOf(life));
}

async function snooze(
  life: RefundLife,
  hours: number,
  act: ReturnType<typeof auditOf>,
): Promise<void> {
  const { refund_id, request_id } = factsOf(life);
  const { version } = life;
  const audit = datedAudit(act);
  await persistRecorded((activities) =>
    activities.recordRefundAttention({ refund_id, version, attention: null, request_id, audit }),
  );
  life.snoozedUntil = Date.now() + hours * 3_600_000;
  life.overdueTold = false;
  life.attention = null;
  show(life);
}

import { assertNever } from '../../src/domain/assert';
import type { BankCallback, PayoutCallbackName } from '../../src/domain/callback';
import type { Failure } from '../../src/domain/payment';
import {
  decidePayout,
  OVERDUE,
  PAYOUT_FAILURES,
  type PayoutStatus,
  RETURNS,
  type Return,
  wayTo,
} from '../../src/domain/payout';
import { factsOf, note } from '../shared/life';
import { applyOperator } from './acts';
import { type InboxItem, isUnsent, type PayoutLife, stateOf } from './life';
import { attend, type MoveExtras, move, unapply } from './record';
import { show, tell } from './view';

/** One thing from the inbox, whole: whatever it changes is written when this returns. */
export async function handle(life: PayoutLife, item: InboxItem): Promise<void> {
  await apply(life, item);
  // Whoever waits for the bank's answer need not wait for one that no longer matters.
  if (!isUnsent(life)) answerResubmits(life, {});
}

async function apply(life: PayoutLife, item: InboxItem): Promise<void> {
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
  life: PayoutLife,
  name: PayoutCallbackName,
  callback: BankCallback,
): Promise<void> {
  const { can_be_returned } = factsOf(life);
  const { sentAt: sent_at, completedAt: completed_at } = life;
  const returnable = { can_be_returned, sent_at, completed_at };
  const decision = decidePayout(life.status, name, returnable, Date.now());
  note(life, `callback \`${name}\` (${callback.callback_id}): ${decision.kind}`);
  if (decision.kind === 'move') {
    // Nothing is sent behind the bank's own word, also while that is being written.
    if (decision.to.includes('failed')) life.instruction += 1;
    return await move(life, decision.to, {
      ...reasonOf(decision.to.at(-1), callback),
      ...(callback.bank_reference ? { bank_reference: callback.bank_reference } : {}),
    });
  }
  await unapply(life, name, callback, decision.reason);
  if (decision.attention !== undefined) await attend(life, decision.attention);
}

/** Why it failed or came back: the bank's words, else ours. */
function reasonOf(
  status: PayoutStatus | undefined,
  { code, reason }: BankCallback,
): Pick<MoveExtras, 'failure' | 'returned'> {
  if (status === 'failed') {
    const { bank } = PAYOUT_FAILURES;
    const failure: Failure = { code: code ?? bank.code, message: reason ?? bank.message };
    return { failure };
  }
  if (status !== 'returned') return {};
  const { bank } = RETURNS;
  const returned: Return = { code: code ?? bank.code, reason: reason ?? bank.reason };
  return { returned };
}

/** When its task is repeated, signals overtake the bank's answer: so its writes are recorded first. */
async function applyAnswer(
  life: PayoutLife,
  { answer }: Extract<InboxItem, { kind: 'answer' }>,
): Promise<void> {
  tell(life, `instruction at the bank: ${answer.outcome}`);
  if (life.status === 'failed' && answer.outcome !== 'refused') {
    return await attend(life, 'moved_after_failed');
  }
  if (!isUnsent(life)) return;
  if (answer.outcome === 'refused') {
    const { code, message } = answer;
    await move(life, ['failed'], { failure: { code, message }, recorded: true });
  } else await move(life, wayTo(life.status, answer.outcome), { recorded: true });
  answerResubmits(life, { bank: answer.outcome });
}

function answerResubmits(life: PayoutLife, said: { bank?: 'submitted' | 'sent' | 'refused' }) {
  for (const answer of life.resubmits.splice(0)) answer.resolve({ ...stateOf(life), ...said });
}

/** The bank has not done its part in time. It goes on waiting. */
export async function markOverdue(life: PayoutLife): Promise<void> {
  const { status } = life;
  if (status === 'completed' || status === 'failed' || status === 'returned') return;
  note(life, `the payout is overdue: still ${status}`);
  life.snoozedUntil = undefined;
  life.overdueTold = true;
  // A mark that speaks of more than lateness stays.
  const { attention } = life;
  if (attention === null || attention === 'restarted_in_flight')
    await attend(life, OVERDUE[status]);
  else show(life);
}

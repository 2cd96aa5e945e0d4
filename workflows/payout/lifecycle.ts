import {
  allHandlersFinished,
  CancellationScope,
  condition,
  continueAsNew,
  workflowInfo,
} from '@temporalio/workflow';
import { assertNever } from '../../src/domain/assert';
import {
  type BankCallback,
  differenceOf,
  type PayoutCallbackName,
} from '../../src/domain/callback';
import {
  decidePayout,
  isEnded,
  isUnsent,
  OVERDUE,
  PAYOUT_FAILURES,
  payoutWorkflowId,
  RETURNS,
  wayTo,
} from '../../src/domain/payout';
import type {
  PayoutInput,
  PayoutResult,
  PayoutResume,
  PayoutStart,
} from '../../src/domain/payout-workflow';
import type { Due } from '../shared/alarm';
import { givenBefore, takingBack } from '../shared/bank-instruction';
import { listen } from '../shared/handlers';
import { note } from '../shared/life';
import type { Opening } from '../shared/mailbox';
import { writeScheduled } from '../shared/persist';
import { assertIdentity } from '../shared/refusal';
import { runUntilFinal } from '../shared/run-loop';
import { showRefusal } from '../shared/view';
import { actFault, applyAct } from './acts';
import { instructPayout } from './bank';
import {
  dueAt,
  newPayout,
  OVERDUE_AGAIN_MS,
  type Payout,
  type PayoutActed,
  type PayoutItem,
  type PayoutMailbox,
  record,
  resultIn,
  stateOf,
} from './life';
import { messages } from './messages';
import { openPayoutMailbox, reserve, untilSent } from './opening';

/**
 * The life of one payout: accepted in time with its money reserved, or refused for good; then sent
 * by the bank and moved by its word until it has completed, failed or come back.
 * @see docs/api.md#states-of-a-payout
 */
export async function payout(start: PayoutStart): Promise<PayoutResult> {
  assertIdentity('payout_id', Object(start).payout_id, payoutWorkflowId);
  const mail = openPayoutMailbox('resume' in start);
  const callerWaits = !('resume' in start) && start.caller_waits === true;
  listen(mail, messages, {
    noun: 'payout',
    resumed: 'resume' in start,
    state: () => resultIn(mail, start.payout_id),
    opened: async () => stateOf(await untilSent(mail, callerWaits)),
    actFault,
  });
  // A cancel request from the Temporal UI must not leave money half moved: it is not heeded.
  return await CancellationScope.nonCancellable(async () => {
    const opening = 'resume' in start ? await load(mail, start) : await open(mail, start);
    mail.opening = opening;
    if (opening.outcome === 'refused') await condition(allHandlersFinished);
    else await live(mail, opening.resource);
    return resultIn(mail, start.payout_id);
  });
}

async function open(mail: PayoutMailbox, input: PayoutInput): Promise<Opening<Payout>> {
  const created_at = new Date().toISOString();
  const opening = await reserve(mail, { ...input, created_at, accept_by_ms: mail.acceptBy });
  if (opening.outcome === 'refused') {
    showRefusal({ status: 'created', attention: null }, opening);
    return opening;
  }
  const payout = newPayout(mail, input.payout_id, { ...opening, attention: null }, false);
  record.show(payout);
  const writtenAt = opening.isFresh === true ? Date.parse(created_at) : undefined;
  void instructPayout(payout, undefined, writtenAt);
  return { outcome: 'accepted', resource: payout };
}

async function load(mail: PayoutMailbox, start: PayoutResume): Promise<Opening<Payout>> {
  const { payout_id: resource_id, request_id } = start;
  const loaded = await writeScheduled((activities) =>
    activities.loadPayout({ resource_id, request_id }),
  );
  const payout = newPayout(mail, resource_id, loaded, true);
  payout.sentAt = loaded.sent_at;
  payout.completedAt = loaded.completed_at;
  if (isEnded(payout.status)) record.tell(payout, 'Started again after the end.');
  else await goOn(payout);
  return { outcome: 'accepted', resource: payout };
}

/** A run that was ended from outside is told to operators; the bank is asked what it knows. */
async function goOn(payout: Payout): Promise<void> {
  if (workflowInfo().continuedFromExecutionRunId !== undefined) {
    record.tell(payout, 'Goes on in a new run, since the history was long.');
  } else {
    note(payout, 'Started again in flight: its workflow was ended from outside.');
    payout.notOverdueBefore = Date.now() + OVERDUE_AGAIN_MS;
    await record.setAttention(payout, 'restarted_in_flight');
  }
  if (isUnsent(payout.status)) void instructPayout(payout, givenBefore());
}

type Resuming = (start: PayoutResume) => Promise<PayoutResult>;

function live({ inbox }: PayoutMailbox, payout: Payout): Promise<void> {
  return runUntilFinal({
    inbox,
    handle: async (item) => {
      await handle(payout, item);
      // Those who wait for the bank's answer need not wait for one that no longer matters.
      if (!isUnsent(payout.status)) answerResubmits(payout, {});
    },
    isFinal: () => isEnded(payout.status) && payout.sendings.size === 0,
    nextDue: () => nextDue(payout),
    isIdle: () => payout.sendings.size === 0 && payout.resubmits.length === 0,
    startAfresh: () =>
      continueAsNew<Resuming>({
        payout_id: payout.id,
        resume: true,
        request_id: payout.facts.request_id,
      }),
  });
}

/** Handles an item whole: all that it changes is written when this returns. */
async function handle(payout: Payout, item: PayoutItem): Promise<void> {
  switch (item.kind) {
    case 'callback':
      return await record.heed(payout, item, () => applyCallback(payout, item.name, item.callback));
    case 'malformed':
      note(payout, `unreadable callback \`${item.name}\`: ${item.fault}`);
      return await record.markMalformed(payout);
    case 'answer':
      return await applyAnswer(payout, item);
    case 'outdated':
      return await adopt(payout);
    case 'operator':
      return await applyAct(payout, item);
    default:
      assertNever(item);
  }
}

async function applyCallback(
  payout: Payout,
  name: PayoutCallbackName,
  callback: BankCallback,
): Promise<void> {
  const { callback_id, code, reason, bank_reference, value_date } = callback;
  if (payout.applied.has(callback_id)) {
    return record.tell(payout, `callback \`${name}\` (${callback_id}): applied before`);
  }
  const { can_be_returned } = payout.facts;
  const returnable = { can_be_returned, sent_at: payout.sentAt, completed_at: payout.completedAt };
  const decision = decidePayout(payout.status, name, returnable, Date.now());
  note(payout, `callback \`${name}\` (${callback_id}): ${decision.kind}`);
  switch (decision.kind) {
    case 'move': {
      const differs = differenceOf(callback, payout.facts);
      if (differs !== undefined && name !== 'failed') {
        await record.recordUnapplied(payout, name, callback, differs);
        return await record.setAttention(payout, 'amount_differs');
      }
      // Nothing is sent behind the bank's own word, also while that is being written.
      if (decision.to.includes('failed')) payout.instruction += 1;
      const failed = PAYOUT_FAILURES.bank;
      const back = RETURNS.bank;
      const failure = { code: code ?? failed.code, message: reason ?? failed.message };
      const returned = { code: code ?? back.code, reason: reason ?? back.reason };
      const change = {
        ...(decision.to.includes('failed') ? { failure } : {}),
        ...(decision.to.includes('returned') ? { returned } : {}),
        ...(bank_reference ? { bank_reference } : {}),
      };
      return await record.move(payout, decision.to, { change, callback_id, value_date });
    }
    case 'unapplied':
      await record.recordUnapplied(payout, name, callback, decision.reason);
      if (decision.attention !== undefined) await record.setAttention(payout, decision.attention);
      return;
    default:
      assertNever(decision);
  }
}

async function applyAnswer(
  payout: Payout,
  { answer }: Extract<PayoutItem, { kind: 'answer' }>,
): Promise<void> {
  record.tell(payout, `instruction at the bank: ${answer.outcome}`);
  if (payout.status === 'failed' && answer.outcome !== 'refused') {
    return await record.setAttention(payout, 'moved_after_failed');
  }
  if (!isUnsent(payout.status)) return;
  if (answer.outcome === 'refused') {
    const failure = { code: answer.code, message: answer.message };
    await record.move(payout, ['failed'], { change: { failure }, scheduled: true });
  } else await record.move(payout, wayTo(payout.status, answer.outcome));
  answerResubmits(payout, { bank: answer.outcome });
}

function answerResubmits(payout: Payout, said: Pick<PayoutActed, 'bank'>): void {
  for (const answer of payout.resubmits.splice(0)) answer.resolve({ ...stateOf(payout), ...said });
}

function nextDue(payout: Payout): Due | undefined {
  const { status, overdueTold } = payout;
  if (status !== 'created' && status !== 'submitted' && status !== 'sent') {
    return takingBack(payout);
  }
  if (overdueTold) return undefined;
  const act = () => record.markOverdue(payout, OVERDUE[status]);
  return { at: dueAt(payout), summary: 'The payout is due', act };
}

/** Goes on from where the record stands; the bank is asked before anything is sent again. */
async function adopt(payout: Payout): Promise<void> {
  await record.adopt(payout);
  if (isUnsent(payout.status)) void instructPayout(payout, givenBefore());
}

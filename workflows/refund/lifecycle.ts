import {
  allHandlersFinished,
  CancellationScope,
  condition,
  continueAsNew,
} from '@temporalio/workflow';
import type { OpenRefund } from '../../activities/refund-reservation';
import type { RefundOpening } from '../../activities/refunds';
import { assertNever } from '../../src/domain/assert';
import {
  type BankCallback,
  differenceOf,
  type RefundCallbackName,
} from '../../src/domain/callback';
import {
  decideRefund,
  isFinalRefund,
  REFUND_FAILURES,
  refundWorkflowId,
} from '../../src/domain/refund';
import type {
  RefundInput,
  RefundResult,
  RefundResume,
  RefundStart,
} from '../../src/domain/refund-workflow';
import type { Due } from '../shared/alarm';
import { givenBefore, takingBack } from '../shared/bank-instruction';
import { listen, untilOpened } from '../shared/handlers';
import { note } from '../shared/life';
import { type Opening, openMailbox } from '../shared/mailbox';
import { writeLocally, writeScheduled } from '../shared/persist';
import { assertIdentity } from '../shared/refusal';
import { runUntilFinal } from '../shared/run-loop';
import { showRefusal, upsertLabels } from '../shared/view';
import { actFault, applyAct } from './acts';
import { instructRefund } from './bank';
import {
  dueAt,
  newRefund,
  type Refund,
  type RefundItem,
  type RefundMailbox,
  record,
  resultIn,
  stateOf,
} from './life';
import { messages } from './messages';

/**
 * The life of one refund: accepted with its money reserved, or refused; then sent by the bank and
 * moved by its word until it is final. @see docs/api.md#refunds
 */
export async function refund(start: RefundStart): Promise<RefundResult> {
  assertIdentity('refund_id', Object(start).refund_id, refundWorkflowId);
  const mail: RefundMailbox = openMailbox();
  listen(mail, messages, {
    noun: 'refund',
    resumed: 'resume' in start,
    state: () => resultIn(mail, start.refund_id),
    opened: async () => stateOf(await untilOpened(mail)),
    actFault,
  });
  // A cancel request from the Temporal UI must not leave money half moved: it is not heeded.
  return await CancellationScope.nonCancellable(async () => {
    const opening = 'resume' in start ? await load(mail, start) : await open(mail, start);
    mail.opening = opening;
    if (opening.outcome === 'refused') await condition(allHandlersFinished);
    else await live(mail, opening.resource);
    return resultIn(mail, start.refund_id);
  });
}

async function open(mail: RefundMailbox, input: RefundInput): Promise<Opening<Refund>> {
  const created_at = new Date().toISOString();
  const opening = await reserve({ ...input, created_at });
  if (opening.outcome === 'refused') {
    showRefusal({ status: 'processing', attention: null }, opening);
    return opening;
  }
  const refund = newRefund(mail, input.refund_id, { ...opening, attention: null }, false);
  if (input.amount === null) {
    upsertLabels(refund, { ...refund.labels, amount: opening.facts.amount });
  }
  record.show(refund);
  const writtenAt = opening.isFresh === true ? Date.parse(created_at) : undefined;
  void instructRefund(refund, undefined, writtenAt);
  return { outcome: 'accepted', resource: refund };
}

/**
 * A refusal releases the idempotency key. An attempt that was given up may still succeed, so its
 * document is looked for; scheduled, since an opening whose task is repeated must find its claim.
 */
async function reserve(input: OpenRefund): Promise<RefundOpening> {
  const opening = await writeLocally((activities) => activities.openRefund(input));
  if (opening.outcome === 'accepted') return opening;
  return (await writeScheduled((activities) => activities.abandonRefund(input))) ?? opening;
}

async function load(mail: RefundMailbox, start: RefundResume): Promise<Opening<Refund>> {
  const { refund_id: resource_id, request_id } = start;
  const loaded = await writeScheduled((activities) =>
    activities.loadRefund({ resource_id, request_id }),
  );
  const refund = newRefund(mail, resource_id, loaded, true);
  refund.overdueTold = refund.attention === 'refund_overdue';
  const ended = isFinalRefund(refund.status);
  record.tell(refund, ended ? 'Started again after the end.' : 'Started again in flight.');
  if (!ended) void instructRefund(refund, givenBefore());
  return { outcome: 'accepted', resource: refund };
}

type Resuming = (start: RefundResume) => Promise<RefundResult>;

function live({ inbox }: RefundMailbox, refund: Refund): Promise<void> {
  return runUntilFinal({
    inbox,
    handle: (item) => handle(refund, item),
    isFinal: () => isFinalRefund(refund.status) && refund.sendings.size === 0,
    nextDue: () => nextDue(refund),
    isIdle: () => refund.sendings.size === 0,
    startAfresh: () =>
      continueAsNew<Resuming>({
        refund_id: refund.id,
        resume: true,
        request_id: refund.facts.request_id,
      }),
  });
}

/** Handles an item whole: all that it changes is written when this returns. */
async function handle(refund: Refund, item: RefundItem): Promise<void> {
  switch (item.kind) {
    case 'callback':
      return await record.heed(refund, item, () => applyCallback(refund, item.name, item.callback));
    case 'malformed':
      note(refund, `unreadable callback \`${item.name}\`: ${item.fault}`);
      return await record.markMalformed(refund);
    case 'answer':
      return await applyAnswer(refund, item);
    case 'outdated':
      return await adopt(refund);
    case 'operator':
      return await applyAct(refund, item);
    default:
      assertNever(item);
  }
}

async function applyCallback(
  refund: Refund,
  name: RefundCallbackName,
  callback: BankCallback,
): Promise<void> {
  const { callback_id, code, reason, bank_reference, value_date } = callback;
  if (refund.applied.has(callback_id)) {
    return record.tell(refund, `callback \`${name}\` (${callback_id}): applied before`);
  }
  const decision = decideRefund(refund.status, name);
  note(refund, `callback \`${name}\` (${callback_id}): ${decision.kind}`);
  switch (decision.kind) {
    case 'move': {
      const differs = differenceOf(callback, refund.facts);
      if (differs !== undefined && name === 'settled') {
        await record.recordUnapplied(refund, name, callback, differs);
        return await record.setAttention(refund, 'amount_differs');
      }
      // Nothing is sent behind the bank's own word, also while that is being written.
      refund.instruction += 1;
      const { bank: ours } = REFUND_FAILURES;
      const failure = { code: code ?? ours.code, message: reason ?? ours.message };
      const change = {
        ...(decision.to === 'failed' ? { failure } : {}),
        ...(bank_reference ? { bank_reference } : {}),
      };
      return await record.move(refund, [decision.to], { change, callback_id, value_date });
    }
    case 'unapplied':
      await record.recordUnapplied(refund, name, callback, decision.reason);
      if (decision.attention !== undefined) await record.setAttention(refund, decision.attention);
      return;
    default:
      assertNever(decision);
  }
}

async function applyAnswer(
  refund: Refund,
  { answer }: Extract<RefundItem, { kind: 'answer' }>,
): Promise<void> {
  record.tell(refund, `instruction at the bank: ${answer.outcome}`);
  if (isFinalRefund(refund.status)) return;
  if (answer.outcome === 'refused') {
    const failure = { code: answer.code, message: answer.message };
    return await record.move(refund, ['failed'], { change: { failure }, scheduled: true });
  }
  refund.bankReference = answer.bank_reference;
}

function nextDue(refund: Refund): Due | undefined {
  if (isFinalRefund(refund.status)) return takingBack(refund);
  if (refund.overdueTold) return undefined;
  const act = () => record.markOverdue(refund, 'refund_overdue');
  return { at: dueAt(refund), summary: 'The refund is due', act };
}

/** Goes on from where the record stands; the bank is asked before anything is sent again. */
async function adopt(refund: Refund): Promise<void> {
  await record.adopt(refund);
  if (!isFinalRefund(refund.status)) void instructRefund(refund, givenBefore());
}

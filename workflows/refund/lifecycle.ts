import { allHandlersFinished, CancellationScope, condition } from '@temporalio/workflow';
import type { OpenRefund, RefundOpening } from '../../activities/refunds';
import { isFinalRefund, refundWorkflowId } from '../../src/domain/refund';
import type {
  RefundInput,
  RefundResult,
  RefundResume,
  RefundStart,
} from '../../src/domain/refund-workflow';
import { note } from '../shared/life';
import { persist, persistRecorded } from '../shared/persist';
import { assertIdentity } from '../shared/refusal';
import { type Due, live } from '../shared/run-loop';
import { showRefusal } from '../shared/view';
import { instructRefund } from './bank';
import { listen } from './handlers';
import { beginLife, type RefundLife, resultOf } from './life';
import { handle, markOverdue } from './steps';
import { show } from './view';

/**
 * The life of one refund: accepted with its money reserved, or refused; then sent by the bank and
 * moved by its word until it is final. @see spec §3.2
 */
export async function refund(start: RefundStart): Promise<RefundResult> {
  assertIdentity('refund_id', Object(start).refund_id, refundWorkflowId);
  const life = beginLife(start);
  listen(life);
  // A cancel request from the Temporal UI must not leave money half moved: it is not heeded.
  return await CancellationScope.nonCancellable(async () => {
    if ('resume' in start) await resume(life, start);
    else await open(life, start);
    if (life.refusal !== undefined) await condition(allHandlersFinished);
    else await liveOn(life);
    return resultOf(life);
  });
}

async function open(life: RefundLife, input: RefundInput): Promise<void> {
  const created_at = new Date(life.since).toISOString();
  const opening = await reserve({ ...input, created_at });
  if (opening.outcome === 'refused') {
    const { code, message } = opening;
    life.refusal = { code, message };
    return showRefusal(life, life.refusal);
  }
  life.facts = opening.facts;
  life.status = opening.status;
  life.version = opening.version;
  if (input.amount === null) life.amount = opening.facts.amount;
  life.stored = true;
  show(life);
  void instructRefund(life);
}

/** A refusal frees the key; an attempt that was given up may have been accepted behind it. */
async function reserve(input: OpenRefund): Promise<RefundOpening> {
  const opening = await persist((activities) => activities.openRefund(input));
  if (opening.outcome === 'accepted') return opening;
  // Recorded first: an opening whose task is repeated must find its claim again.
  const behind = await persistRecorded((activities) => activities.abandonRefund(input));
  return behind ?? opening;
}

async function resume(life: RefundLife, { refund_id, request_id }: RefundResume): Promise<void> {
  // Recorded: read again after a lost task, it would show what this run has done already.
  const loaded = await persistRecorded((activities) =>
    activities.loadRefund({ refund_id, request_id }),
  );
  life.facts = loaded.facts;
  life.status = loaded.status;
  life.version = loaded.version;
  life.attention = loaded.attention;
  life.overdueTold = loaded.attention === 'refund_overdue';
  life.stored = true;
  const ended = isFinalRefund(life.status);
  note(life, ended ? 'Started again after the refund had ended.' : 'Started again in flight.');
  show(life);
  if (!ended) void instructRefund(life, true);
}

function liveOn(life: RefundLife): Promise<void> {
  return live({
    inbox: life.inbox,
    handle: (item) => handle(life, item),
    isFinal: () => isFinalRefund(life.status),
    nextDue: () => nextDue(life),
  });
}

function nextDue(life: RefundLife): Due | undefined {
  const { facts, status, snoozedUntil } = life;
  if (facts === undefined || isFinalRefund(status)) return undefined;
  if (life.overdueTold) return undefined;
  const at = snoozedUntil ?? facts.due_at_ms;
  return { at, summary: 'The refund is due', act: () => markOverdue(life) };
}

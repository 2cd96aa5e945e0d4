import {
  allHandlersFinished,
  CancellationScope,
  condition,
  proxyLocalActivities,
  sleep,
  TemporalFailure,
  workflowInfo,
} from '@temporalio/workflow';
import type { LifecycleActivities } from '../../activities';
import type { OpenPayout, PayoutOpening } from '../../activities/payouts';
import { isEnded, payoutWorkflowId } from '../../src/domain/payout';
import {
  ACCEPT_WITHIN_MS,
  type PayoutInput,
  type PayoutResult,
  type PayoutResume,
  type PayoutStart,
} from '../../src/domain/payout-workflow';
import { note } from '../shared/life';
import { persistRecorded } from '../shared/persist';
import { assertIdentity } from '../shared/refusal';
import { type Due, live } from '../shared/run-loop';
import { showRefusal } from '../shared/view';
import { instructPayout } from './bank';
import { listen } from './handlers';
import { beginLife, isUnsent, type PayoutLife, resultOf } from './life';
import { attend, OVERDUE_AGAIN_MS } from './record';
import { handle, markOverdue } from './steps';
import { show } from './view';

/**
 * The life of one payout: accepted in time with its money reserved, or refused for good; then sent
 * by the bank and moved by its word until it has completed, failed or come back. @see spec §3.3
 */
export async function payout(start: PayoutStart): Promise<PayoutResult> {
  assertIdentity('payout_id', Object(start).payout_id, payoutWorkflowId);
  const life = beginLife(start, workflowInfo().startTime.getTime() + ACCEPT_WITHIN_MS);
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

async function open(life: PayoutLife, input: PayoutInput): Promise<void> {
  const created_at = new Date(life.since).toISOString();
  const opening = await reserve(life, { ...input, created_at, accept_by_ms: life.acceptBy });
  if (opening.outcome === 'refused') {
    const { code, message } = opening;
    life.refusal = { code, message };
    return showRefusal(life, life.refusal);
  }
  life.facts = opening.facts;
  life.status = opening.status;
  life.version = opening.version;
  life.stored = true;
  show(life);
  void instructPayout(life);
}

/** Without an acceptance its key is freed; an attempt that was given up may have been faster. */
async function reserve(life: PayoutLife, input: OpenPayout): Promise<PayoutOpening> {
  const opening = await reserveInTime(input);
  life.attempted = true;
  if (opening?.outcome === 'accepted') return opening;
  // Recorded first: an opening whose task is repeated must find its claim again.
  const behind = await persistRecorded((activities) => activities.abandonPayout(input));
  return behind.outcome === 'accepted' ? behind : (opening ?? behind);
}

/** Longer than the slowest acceptance seen, short enough for a second attempt. */
const ATTEMPT_MS_MAX = 3_000;
const PAUSE_MS = 200;

/**
 * Undefined when it could not be recorded in time, or no worker was up. Each attempt is an activity
 * of its own: while the SDK repeats a local one, the workflow's clock stands still.
 */
async function reserveInTime(input: OpenPayout): Promise<PayoutOpening | undefined> {
  const timeLeft = () => input.accept_by_ms - Date.now();
  for (let left = timeLeft(); left > 0; left = timeLeft()) {
    const { openPayout } = proxyLocalActivities<LifecycleActivities>({
      scheduleToCloseTimeout: Math.min(left, ATTEMPT_MS_MAX),
      retry: { maximumAttempts: 1 },
    });
    try {
      return await openPayout(input);
    } catch (error) {
      // A local time-out is an `ActivityFailure` at first, and a bare `TimeoutFailure` in a replay.
      if (!(error instanceof TemporalFailure)) throw error;
    }
    await sleep(PAUSE_MS, { summary: 'Accept the payout again' });
  }
  return undefined;
}

async function resume(life: PayoutLife, { payout_id, request_id }: PayoutResume): Promise<void> {
  // Recorded: read again after a lost task, it would show what this run has done already.
  const loaded = await persistRecorded((activities) =>
    activities.loadPayout({ payout_id, request_id }),
  );
  life.facts = loaded.facts;
  life.status = loaded.status;
  life.version = loaded.version;
  life.attention = loaded.attention;
  life.sentAt = loaded.sent_at;
  life.completedAt = loaded.completed_at;
  life.stored = true;
  if (isEnded(life.status)) {
    note(life, 'Started again after the payout had ended.');
    return show(life);
  }
  note(life, 'Started again in flight: its workflow was ended from outside.');
  life.notOverdueBefore = Date.now() + OVERDUE_AGAIN_MS;
  await attend(life, 'restarted_in_flight');
  if (isUnsent(life)) void instructPayout(life, true);
}

function liveOn(life: PayoutLife): Promise<void> {
  return live({
    inbox: life.inbox,
    handle: (item) => handle(life, item),
    isFinal: () => isEnded(life.status),
    nextDue: () => nextDue(life),
  });
}

function nextDue(life: PayoutLife): Due | undefined {
  const { facts, status, overdueTold, snoozedUntil, notOverdueBefore } = life;
  if (facts === undefined || isEnded(status) || overdueTold) return undefined;
  const at = snoozedUntil ?? Math.max(facts.due_at_ms, notOverdueBefore);
  return { at, summary: 'The payout is due', act: () => markOverdue(life) };
}

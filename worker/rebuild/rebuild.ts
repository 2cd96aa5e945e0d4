import type { Client } from '@temporalio/client';
import type { WorkflowBundle } from '@temporalio/worker';
import { MongoError } from 'mongodb';
import { createLifecycleActivities, type LifecycleActivities } from '../../activities';
import { assertNever } from '../../src/domain/assert';
import type { CallbackResource } from '../../src/domain/callback';
import { InsufficientBalance } from '../../src/ledger/postings';
import { LIFECYCLES } from '../../src/lifecycles';
import { createLogger } from '../../src/log';
import type { Rebuilder, RebuilderDeps, Rebuilt } from '../../src/reconcile/rebuilder';
import { claimFor, isKeyLost, type Opening, takeBack } from './claims';
import { bundleForReplay, stepsOf } from './replay';
import { isWrite, type Step, type Write } from './steps';

/** Refusals of a balance that lacks the money, or was never credited. */
const LACKING = ['insufficient_balance', 'balance_account_not_found'];

interface Deps extends RebuilderDeps {
  activities: LifecycleActivities;
  workflowBundle: WorkflowBundle;
}

/** Reason why a resource can't be rebuilt; what was written before stands, and is not written again. */
class Left extends Error {
  override readonly name = 'Left';
  readonly outcome: 'short' | 'unreadable';

  constructor(outcome: 'short' | 'unreadable', message: string) {
    super(message);
    this.outcome = outcome;
  }
}

/**
 * Rebuilds by the service's own steps: each write that the histories hold is made once more, in
 * order. A write is one transaction, conditional on the version that it left, so a rebuilding that
 * was stopped goes on where it stood.
 */
export async function openRebuilder(deps: RebuilderDeps): Promise<Rebuilder> {
  const log = createLogger('reconcile', 'silent');
  const all: Deps = {
    ...deps,
    activities: createLifecycleActivities({ ...deps, log }),
    workflowBundle: await bundleForReplay(),
  };
  return { rebuild: (kind, id) => rebuild(all, kind, id) };
}

async function rebuild(deps: Deps, kind: CallbackResource, id: string): Promise<Rebuilt> {
  try {
    const steps = await allSteps(deps, LIFECYCLES[kind].workflowId(id));
    for (const step of steps) if (isWrite(step)) await write(deps, kind, step, steps);
    return { outcome: 'rebuilt', key_lost: await isKeyLost(deps.stores, id) };
  } catch (error) {
    if (!(error instanceof Left)) throw error;
    return { outcome: error.outcome, reason: error.message };
  }
}

/** Steps of every run that the server still knows, the oldest first. */
async function allSteps({ temporal, workflowBundle }: Deps, workflowId: string): Promise<Step[]> {
  const steps: Step[] = [];
  for (const runId of await runsOf(temporal, workflowId)) {
    const history = await temporal.workflow.getHandle(workflowId, runId).fetchHistory();
    try {
      steps.push(...(await stepsOf(workflowBundle, workflowId, history)));
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      throw new Left('unreadable', `The history of run ${runId} does not replay: ${reason}`);
    }
  }
  return steps;
}

async function runsOf({ workflow }: Client, workflowId: string): Promise<string[]> {
  const runs: { runId: string; startTime: Date }[] = [];
  for await (const run of workflow.list({ query: `WorkflowId = '${workflowId}'` })) runs.push(run);
  runs.sort((a, b) => a.startTime.getTime() - b.startTime.getTime());
  return runs.map(({ runId }) => runId);
}

/** Makes one write again. @throws Left */
async function write(
  deps: Deps,
  kind: CallbackResource,
  step: Write,
  steps: readonly Step[],
): Promise<void> {
  const { activities } = deps;
  switch (step.activity) {
    case 'openPayment':
      await needClaim(deps, kind, step.input.payment_id, step, steps);
      await activities.openPayment(step.input);
      return;
    case 'openRefund':
    case 'abandonRefund': {
      if (step.result?.outcome !== 'accepted') return;
      await needClaim(deps, kind, step.input.refund_id, step, steps);
      // The amount that was reserved, where all that remained was asked for.
      const { amount } = step.result.facts;
      const again = await activities.openRefund({ ...step.input, amount });
      return await assertAccepted(deps, step.input.refund_id, again);
    }
    case 'openPayout':
    case 'abandonPayout': {
      if (step.result.outcome !== 'accepted') return;
      await needClaim(deps, kind, step.input.payout_id, step, steps);
      // It was accepted in its time, whatever the time is now.
      const accept_by_ms = Number.MAX_SAFE_INTEGER;
      const again = await activities.openPayout({ ...step.input, accept_by_ms });
      return await assertAccepted(deps, step.input.payout_id, again);
    }
    case 'recordPaymentMove':
      return await assertMoved(step, () => activities.recordPaymentMove(step.input));
    case 'recordRefundMove':
      return await assertMoved(step, () => activities.recordRefundMove(step.input));
    case 'recordPayoutMove':
      return await assertMoved(step, () => activities.recordPayoutMove(step.input));
    case 'recordPaymentAttention':
      return await activities.recordPaymentAttention(step.input);
    case 'recordRefundAttention':
      return await activities.recordRefundAttention(step.input);
    case 'recordPayoutAttention':
      return await activities.recordPayoutAttention(step.input);
    case 'recordUnapplied':
      return await activities.recordUnapplied(step.input);
    default:
      assertNever(step);
  }
}

/**
 * Sees to the claim of a resource that the record does not hold.
 * @throws Left when it was used up: the collections are not of one moment
 */
async function needClaim(
  { stores }: Deps,
  kind: CallbackResource,
  id: string,
  opening: Opening,
  steps: readonly Step[],
): Promise<void> {
  if ((await LIFECYCLES[kind].get(stores, id)) !== null) return;
  await claimFor(stores, id, opening, steps);
  const claim = await stores.idempotency.forResource(id);
  if (claim?.request) return;
  throw new Left('unreadable', 'Its key is used up, and its document is missing.');
}

/** @throws Left when the balance does not hold what was taken, or something else refuses it */
async function assertAccepted(
  { stores }: Deps,
  id: string,
  again: { outcome: 'accepted' } | { outcome: 'refused'; code: string; message: string },
): Promise<void> {
  if (again.outcome === 'accepted') return;
  await takeBack(stores, id);
  throw new Left(LACKING.includes(again.code) ? 'short' : 'unreadable', again.message);
}

/** @throws Left when the record does not stand where the move began, or has gone another way */
async function assertMoved(
  { result }: { result: { ahead?: unknown } },
  move: () => Promise<{ ahead?: unknown }>,
): Promise<void> {
  // It moved nothing then, either.
  if (result.ahead !== undefined) return;
  try {
    const { ahead } = await move();
    if (ahead === undefined) return;
  } catch (error) {
    if (error instanceof MongoError || !(error instanceof Error)) throw error;
    throw new Left(error instanceof InsufficientBalance ? 'short' : 'unreadable', error.message);
  }
  throw new Left('unreadable', 'The record has made other moves than the workflow.');
}

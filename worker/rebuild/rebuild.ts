import { isGrpcServiceError } from '@temporalio/client';
import { ApplicationFailure } from '@temporalio/common';
import type { WorkflowBundleOption } from '@temporalio/worker';
import { MongoError } from 'mongodb';
import { createLifecycleActivities, type LifecycleActivities } from '../../activities';
import { assertNever } from '../../src/domain/assert';
import type { CallbackResource } from '../../src/domain/callback';
import { InsufficientBalance } from '../../src/ledger/postings';
import { LIFECYCLES } from '../../src/lifecycles';
import { createLogger } from '../../src/log';
import type { Part, Rebuilder, RebuilderDeps, Rebuilt } from '../../src/reconcile/rebuilder';
import { claimFor, isKeyLost, type Opening, takeBack } from './claims';
import { Left, type Past, pastOf } from './past';
import { isWrite, partOf, type Write } from './steps';

/** Refusals of a balance that lacks the money, or was never credited. */
const LACKING = ['insufficient_balance', 'balance_account_not_found'];

interface Deps extends RebuilderDeps {
  activities: LifecycleActivities;
  workflowBundle: WorkflowBundleOption;
}

/**
 * Rebuilds by the service's own steps: each write that the histories hold is made once more, in
 * order. A write is one transaction, conditional on the version that it left, so a rebuilding that
 * was stopped goes on where it stood.
 * @param workflowBundle with the interceptors that tell of steps
 */
export function openRebuilder(
  deps: RebuilderDeps,
  workflowBundle: WorkflowBundleOption,
): Rebuilder {
  const log = createLogger('reconcile', 'silent');
  const all: Deps = {
    ...deps,
    activities: createLifecycleActivities({ ...deps, log }),
    workflowBundle,
  };
  return { rebuild: (kind, id, part) => rebuild(all, kind, id, part) };
}

async function rebuild(
  deps: Deps,
  kind: CallbackResource,
  id: string,
  part: Part,
): Promise<Rebuilt> {
  try {
    const past = await pastOf(deps, LIFECYCLES[kind].workflowId(id));
    const writes = past.steps.filter(isWrite);
    const due = writes.filter((step) => partOf(step) === part);
    for (const step of due) await writeOrLeave(deps, kind, step, past);
    return { outcome: 'rebuilt', key_lost: await isKeyLost(deps.stores, id) };
  } catch (error) {
    if (!(error instanceof Left)) throw error;
    return { outcome: error.outcome, reason: error.message };
  }
}

/** @throws Left when the record refuses the write; errors of the two stores themselves pass */
async function writeOrLeave(
  deps: Deps,
  kind: CallbackResource,
  step: Write,
  past: Past,
): Promise<void> {
  try {
    await write(deps, kind, step, past);
  } catch (error) {
    if (error instanceof Left || error instanceof MongoError || isServiceError(error)) throw error;
    const reason = error instanceof Error ? error.message : String(error);
    throw new Left(isLackOfMoney(error) ? 'short' : 'unreadable', reason);
  }
}

function isLackOfMoney(error: unknown): boolean {
  if (error instanceof InsufficientBalance) return true;
  return error instanceof ApplicationFailure && LACKING.includes(error.type ?? '');
}

function isServiceError(error: unknown): boolean {
  return isGrpcServiceError(error) || (error instanceof Error && isGrpcServiceError(error.cause));
}

/** Makes one write again. @throws Error when the record refuses it */
async function write(deps: Deps, kind: CallbackResource, step: Write, past: Past): Promise<void> {
  const { activities } = deps;
  switch (step.activity) {
    case 'openPayment':
      await needClaim(deps, kind, step.input.payment_id, step, past);
      await activities.openPayment(step.input);
      return;
    case 'openRefund':
    case 'abandonRefund': {
      if (step.result?.outcome !== 'accepted') return;
      await needClaim(deps, kind, step.input.refund_id, step, past);
      // The amount that was reserved, where all that remained was asked for.
      const { amount } = step.result.facts;
      const again = await activities.openRefund({ ...step.input, amount });
      return await assertAccepted(deps, step.input.refund_id, again);
    }
    case 'openPayout':
    case 'abandonPayout': {
      if (step.result.outcome !== 'accepted') return;
      await needClaim(deps, kind, step.input.payout_id, step, past);
      // It was accepted in its time, whatever the time is now.
      const accept_by_ms = Number.MAX_SAFE_INTEGER;
      const again = await activities.openPayout({
        ...step.input,
        accept_by_ms,
        rebuilding: true,
      });
      return await assertAccepted(deps, step.input.payout_id, again);
    }
    case 'openCryptoPayment':
      await needClaim(deps, kind, step.input.crypto_payment_id, step, past);
      await activities.openCryptoPayment(step.input);
      return;
    case 'openCryptoSettlement': {
      const { input, result } = step;
      if (result.outcome !== 'accepted') return;
      const { crypto_settlement_id: id } = input;
      if (input.scheduled !== true) await needClaim(deps, kind, id, step, past);
      const { amount, wallet_address } = result.facts;
      const again = { ...input, amount, wallet_address };
      return await assertAccepted(deps, id, await activities.openCryptoSettlement(again));
    }
    case 'recordCryptoPaymentMove':
      return await assertMoved(step, () => activities.recordCryptoPaymentMove(step.input));
    case 'recordCryptoSettlementMove':
      return await assertMoved(step, () => activities.recordCryptoSettlementMove(step.input));
    case 'recordCryptoPaymentAttention':
      await activities.recordCryptoPaymentAttention(step.input);
      return;
    case 'recordCryptoSettlementAttention':
      await activities.recordCryptoSettlementAttention(step.input);
      return;
    case 'recordPaymentMove':
      return await assertMoved(step, () => activities.recordPaymentMove(step.input));
    case 'recordRefundMove':
      return await assertMoved(step, () => activities.recordRefundMove(step.input));
    case 'recordPayoutMove':
      return await assertMoved(step, () => activities.recordPayoutMove(step.input));
    case 'recordPaymentAttention':
      await activities.recordPaymentAttention(step.input);
      return;
    case 'recordRefundAttention':
      await activities.recordRefundAttention(step.input);
      return;
    case 'recordPayoutAttention':
      await activities.recordPayoutAttention(step.input);
      return;
    case 'recordUnapplied':
      return await activities.recordUnapplied(step.input);
    case 'recordRefused':
      return await activities.recordRefused(step.input);
    case 'recordLateMoney':
      await activities.recordLateMoney(step.input);
      return;
    case 'recordLateReversed':
      await activities.recordLateReversed(step.input);
      return;
    case 'recordDispute':
      return await activities.recordDispute(step.input);
    case 'clawBack':
      if (step.result.outcome === 'booked') await activities.clawBack(step.input);
      return;
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
  past: Past,
): Promise<void> {
  if ((await LIFECYCLES[kind].get(stores, id)) !== null) return;
  await claimFor(stores, id, opening, past);
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
  const { ahead } = await move();
  if (ahead !== undefined)
    throw new Left('unreadable', 'The record has made other moves than the workflow.');
}

import { isGrpcServiceError } from '@temporalio/client';
import { ApplicationFailure } from '@temporalio/common';
import type { WorkflowBundleOption } from '@temporalio/worker';
import { MongoError } from 'mongodb';
import { createLifecycleActivities, type LifecycleActivities } from '../../activities';
import { createLogger } from '../../src/base/log';
import { assertNever } from '../../src/domain/assert';
import type { CallbackResource } from '../../src/domain/callback/callback';
import { InsufficientBalance } from '../../src/ledger/entries';
import { LIFECYCLES } from '../../src/lifecycles';
import type {
  Part,
  Rebuilder,
  RebuilderDeps,
  RebuildResult,
} from '../../src/service/reconcile/rebuilder';
import { NotRebuilt, type RunHistory, readHistory } from './history';
import { ensureRecord, isKeyLost, type Opening, releaseRecord } from './idempotency-records';
import { getPart, isWrite, type Write } from './steps';

const INSUFFICIENT_CODES = ['insufficient_balance', 'balance_account_not_found'];

interface Deps extends RebuilderDeps {
  activities: LifecycleActivities;
  workflowBundle: WorkflowBundleOption;
}

/**
 * Rebuilds by the service's own activities: repeats each write of the histories, in order. A write
 * is one transaction, conditional on its version, so an interrupted rebuild continues.
 * @param workflowBundle with the interceptors that report steps
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
): Promise<RebuildResult> {
  try {
    const history = await readHistory(deps, LIFECYCLES[kind].workflowId(id));
    const writes = history.steps.filter(isWrite);
    const due = writes.filter((step) => getPart(step) === part);
    for (const step of due) await repeatWrite(deps, kind, step, history);
    return { outcome: 'rebuilt', key_lost: await isKeyLost(deps.stores, id) };
  } catch (error) {
    if (!(error instanceof NotRebuilt)) throw error;
    return { outcome: error.outcome, reason: error.message };
  }
}

/** @throws NotRebuilt when the record refuses the write; errors of the two stores pass */
async function repeatWrite(
  deps: Deps,
  kind: CallbackResource,
  step: Write,
  history: RunHistory,
): Promise<void> {
  try {
    await write(deps, kind, step, history);
  } catch (error) {
    if (error instanceof NotRebuilt || error instanceof MongoError || isServiceError(error))
      throw error;
    const reason = error instanceof Error ? error.message : String(error);
    throw new NotRebuilt(isInsufficientBalance(error) ? 'short' : 'unreadable', reason);
  }
}

function isInsufficientBalance(error: unknown): boolean {
  if (error instanceof InsufficientBalance) return true;
  return error instanceof ApplicationFailure && INSUFFICIENT_CODES.includes(error.type ?? '');
}

function isServiceError(error: unknown): boolean {
  return isGrpcServiceError(error) || (error instanceof Error && isGrpcServiceError(error.cause));
}

/** @throws Error when the record refuses the write */
async function write(
  deps: Deps,
  kind: CallbackResource,
  step: Write,
  history: RunHistory,
): Promise<void> {
  const { activities } = deps;
  switch (step.activity) {
    case 'openPayment':
      await requireRecord(deps, kind, step.input.payment_id, step, history);
      await activities.openPayment(step.input);
      return;
    case 'openRefund':
    case 'abandonRefund': {
      if (step.result?.outcome !== 'accepted') return;
      await requireRecord(deps, kind, step.input.refund_id, step, history);
      // The reserved amount, where the request named none.
      const { amount } = step.result.facts;
      const reopening = await activities.openRefund({ ...step.input, amount });
      return await assertAccepted(deps, step.input.refund_id, reopening);
    }
    case 'openPayout':
    case 'abandonPayout': {
      if (step.result.outcome !== 'accepted') return;
      await requireRecord(deps, kind, step.input.payout_id, step, history);
      // It was accepted in time then.
      const accept_by_ms = Number.MAX_SAFE_INTEGER;
      const reopening = await activities.openPayout({
        ...step.input,
        accept_by_ms,
        rebuilding: true,
      });
      return await assertAccepted(deps, step.input.payout_id, reopening);
    }
    case 'openCryptoPayment':
      await requireRecord(deps, kind, step.input.crypto_payment_id, step, history);
      await activities.openCryptoPayment(step.input);
      return;
    case 'openCryptoSettlement': {
      const { input, result } = step;
      if (result.outcome !== 'accepted') return;
      const { crypto_settlement_id: id } = input;
      if (input.scheduled !== true) await requireRecord(deps, kind, id, step, history);
      const { amount, wallet_address } = result.facts;
      const reopenInput = { ...input, amount, wallet_address };
      return await assertAccepted(deps, id, await activities.openCryptoSettlement(reopenInput));
    }
    case 'recordCryptoPaymentMove':
      return await assertTransition(step, () => activities.recordCryptoPaymentMove(step.input));
    case 'recordCryptoSettlementMove':
      return await assertTransition(step, () => activities.recordCryptoSettlementMove(step.input));
    case 'recordCryptoPaymentAttention':
      await activities.recordCryptoPaymentAttention(step.input);
      return;
    case 'recordCryptoSettlementAttention':
      await activities.recordCryptoSettlementAttention(step.input);
      return;
    case 'recordPaymentMove':
      return await assertTransition(step, () => activities.recordPaymentMove(step.input));
    case 'recordRefundMove':
      return await assertTransition(step, () => activities.recordRefundMove(step.input));
    case 'recordPayoutMove':
      return await assertTransition(step, () => activities.recordPayoutMove(step.input));
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
      if (step.result.outcome === 'posted') await activities.clawBack(step.input);
      return;
    default:
      assertNever(step);
  }
}

/**
 * Ensures the idempotency record of a missing resource.
 * @throws NotRebuilt when it was used up: the collections are not of one moment
 */
async function requireRecord(
  { stores }: Deps,
  kind: CallbackResource,
  id: string,
  opening: Opening,
  history: RunHistory,
): Promise<void> {
  if ((await LIFECYCLES[kind].get(stores, id)) !== null) return;
  await ensureRecord(stores, id, opening, history);
  const record = await stores.idempotency.forResource(id);
  if (record?.request) return;
  throw new NotRebuilt('unreadable', 'Its key is used up, and its document is missing.');
}

/** @throws NotRebuilt when the balance is insufficient, or another rule refuses it */
async function assertAccepted(
  { stores }: Deps,
  id: string,
  reopening: { outcome: 'accepted' } | { outcome: 'refused'; code: string; message: string },
): Promise<void> {
  if (reopening.outcome === 'accepted') return;
  await releaseRecord(stores, id);
  throw new NotRebuilt(
    INSUFFICIENT_CODES.includes(reopening.code) ? 'short' : 'unreadable',
    reopening.message,
  );
}

/** @throws NotRebuilt when the stored state does not match the transition */
async function assertTransition(
  { result }: { result: { stale?: unknown } },
  repeat: () => Promise<{ stale?: unknown }>,
): Promise<void> {
  // It wrote nothing then, either.
  if (result.stale !== undefined) return;
  const { stale } = await repeat();
  if (stale !== undefined)
    throw new NotRebuilt('unreadable', 'The record has made other moves than the workflow.');
}

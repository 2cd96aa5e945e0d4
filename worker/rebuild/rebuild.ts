import { isGrpcServiceError } from '@temporalio/client';
import { ApplicationFailure } from '@temporalio/common';
import type { WorkflowBundleOption } from '@temporalio/worker';
import { MongoError } from 'mongodb';
import { createLifecycleActivities, type LifecycleActivities } from '../../activities';
import type { BookedReport } from '../../activities/disputes';
import { createLogger } from '../../src/base/log';
import { assertNever } from '../../src/domain/assert';
import type { CallbackResource } from '../../src/domain/banks/callback';
import type { Movement } from '../../src/domain/banks/movement';
import type { AcceptedRequest } from '../../src/domain/creation';
import { omitUndefined } from '../../src/domain/defined';
import { InsufficientBalance } from '../../src/ledger/locks';
import { LIFECYCLES } from '../../src/lifecycles';
import type {
  Part,
  Rebuilder,
  RebuilderDeps,
  RebuildResult,
} from '../../src/service/operators/reconcile/reconcile';
import type { Stores } from '../../src/store';
import { KEY_LIFETIME_MS, KEY_LOST, REBUILT, rebuiltRecordKey } from '../../src/store/idempotency';
import { NotRebuilt, type RunHistory, readHistory } from './replay';
import { getPart, isWrite, repeat, type Write } from './steps';

const INSUFFICIENT_CODES = ['insufficient_balance', 'balance_account_not_found'];

interface Resource {
  kind: CallbackResource;
  id: string;
  history: RunHistory;
}

interface Deps extends RebuilderDeps {
  activities: LifecycleActivities;
  workflowBundle: WorkflowBundleOption;
}

/**
 * Repeats each write of the histories, in order. A write is conditional on its version, so an
 * interrupted rebuild continues.
 * @param workflowBundle with the interceptors that report steps
 */
export function openRebuilder(
  deps: RebuilderDeps,
  workflowBundle: WorkflowBundleOption,
): Rebuilder {
  const log = createLogger('reconcile', 'silent');
  const all: Deps = {
    ...deps,
    activities: createLifecycleActivities({ ...deps, log, isRebuild: true }),
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
    // Writes are repeated in order, each at its version.
    const first = writes.findIndex((step) => getPart(step) === 'disputes');
    const due = part === 'disputes' || first === -1 ? writes : writes.slice(0, first);
    for (const step of due) await repeatWrite(deps, step, { kind, id, history });
    // A repeated request would open another resource.
    const record = await deps.stores.idempotency.forResource(id);
    return { outcome: 'rebuilt', key_lost: record?.fingerprint === KEY_LOST };
  } catch (error) {
    if (!(error instanceof NotRebuilt)) throw error;
    return { outcome: error.outcome, reason: error.message };
  }
}

/** @throws NotRebuilt when the record refuses the write; errors of the two stores pass */
async function repeatWrite(deps: Deps, step: Write, resource: Resource): Promise<void> {
  try {
    await write(deps, step, resource);
  } catch (error) {
    const { message, cause } = error instanceof Error ? error : new Error(String(error));
    const isOfStore = error instanceof MongoError || [error, cause].some(isGrpcServiceError);
    if (error instanceof NotRebuilt || isOfStore) throw error;
    const code = error instanceof ApplicationFailure ? (error.type ?? '') : '';
    const isShort = error instanceof InsufficientBalance || INSUFFICIENT_CODES.includes(code);
    throw new NotRebuilt(isShort ? 'short' : 'unreadable', message);
  }
}

async function write(deps: Deps, step: Write, resource: Resource): Promise<void> {
  const { activities } = deps;
  switch (step.activity) {
    case 'openPayment':
    case 'openCryptoPayment':
      await requireRecord(deps, resource, step);
      await repeat(activities, step);
      return;
    case 'openRefund':
    case 'abandonRefund': {
      if (step.result?.outcome !== 'accepted') return;
      await requireRecord(deps, resource, step);
      // The reserved amount, where the request named none.
      const { amount } = step.result.facts;
      return await assertAccepted(
        deps,
        resource,
        await activities.openRefund({ ...step.input, amount }),
      );
    }
    case 'openPayout':
    case 'abandonPayout': {
      if (step.result.outcome !== 'accepted') return;
      await requireRecord(deps, resource, step);
      // It was accepted in time then.
      const inTime = { accept_by_ms: Number.MAX_SAFE_INTEGER, rebuilding: true } as const;
      const reopening = await activities.openPayout({ ...step.input, ...inTime });
      return await assertAccepted(deps, resource, reopening);
    }
    case 'openCryptoSettlement': {
      const { input, result } = step;
      if (result.outcome !== 'accepted') return;
      if (input.scheduled !== true) await requireRecord(deps, resource, step);
      const { amount, wallet_address } = result.facts;
      const reopenInput = { ...input, amount, wallet_address };
      const reopening = await activities.openCryptoSettlement(reopenInput);
      return await assertAccepted(deps, resource, reopening);
    }
    case 'recordPaymentMove': {
      const { input, result } = step;
      if (result.stale !== undefined) return;
      const fee_bearer = findFeeBearer(result.moved, input.callback_id);
      return assertMoved(await activities.recordPaymentMove({ ...input, fee_bearer }));
    }
    case 'recordRefundMove':
    case 'recordPayoutMove':
    case 'recordDisputeMove':
    case 'recordCryptoPaymentMove':
    case 'recordCryptoSettlementMove':
      // It wrote nothing then, either.
      if (step.result.stale !== undefined) return;
      return assertMoved(await repeat(activities, step));
    case 'recordMovement': {
      const { input, result } = step;
      if (result.stale !== undefined) return;
      const fee_bearer = findFeeBearer(result.movements, input.report.source.id);
      await activities.recordMovement({ ...input, fee_bearer });
      return;
    }
    case 'openDispute': {
      const { input, result } = step;
      if (result.outcome !== 'accepted' || result.answer === undefined) return;
      const report = repeatFee(input.report, result.answer);
      // Its money did not fit what was left of the payment then.
      const refused = result.answer.outcome === 'refused' ? ({ isRefused: true } as const) : {};
      await activities.openDispute({ ...input, ...refused, report, rebuilding: true });
      return;
    }
    case 'recordDisputeReport': {
      if (isUnwritten(step.result)) return;
      // It fit what was left of the payment then.
      const report = repeatFee(step.input.report, step.result);
      await activities.recordDisputeReport({ ...step.input, report, rebuilding: true });
      return;
    }
    default:
      if (!isUnwritten(step.result)) await repeat(activities, step);
  }
}

/** Repeats who bore a fee, and that one was above what the connector had declared then. */
function repeatFee(report: BookedReport, result: object): BookedReport {
  const { fee_bearer }: Pick<BookedReport, 'fee_bearer'> = Object(result);
  const borne = { ...report, ...omitUndefined({ fee_bearer }) };
  return 'isFeeRefused' in result ? { ...borne, fee: 0 } : borne;
}

/** Finds who bore the fee of a report then: the account may say otherwise now. */
function findFeeBearer(movements: readonly Movement[] = [], source: string | undefined) {
  return movements.find(({ sources }) => sources.some(({ id }) => id === source))?.fee?.bearer;
}

/** @throws NotRebuilt */
function assertMoved({ stale }: { stale?: unknown }): void {
  if (stale === undefined) return;
  throw new NotRebuilt('unreadable', 'The record has other transitions than the workflow.');
}

/** Outcomes of which a repeat writes what was written then: perhaps nothing. */
const WRITTEN = ['posted', 'returned', 'repeated', 'unmatched', 'resolved'];

/** Whether the write changed nothing then, either. */
function isUnwritten(result: Write['result']): boolean {
  const { stale, outcome = 'posted' } = Object(result);
  return stale !== undefined || !WRITTEN.includes(outcome);
}

/** @throws NotRebuilt when the collections are not of one moment */
async function requireRecord(
  { stores }: Deps,
  { kind, id, history }: Resource,
  opening: Opening,
): Promise<void> {
  if ((await LIFECYCLES[kind].get(stores, id)) !== null) return;
  await ensureRecord(stores, id, opening, history);
  const record = await stores.idempotency.forResource(id);
  if (record?.request) return;
  throw new NotRebuilt('unreadable', 'Its key is used up, and its document is missing.');
}

/** @throws NotRebuilt when a rule refuses it */
async function assertAccepted(
  { stores }: Deps,
  { id }: Resource,
  reopening: { outcome: 'accepted' } | { outcome: 'refused'; code: string; message: string },
): Promise<void> {
  if (reopening.outcome === 'accepted') return;
  const record = await stores.idempotency.forResource(id);
  if (record?.operation === REBUILT) await stores.idempotency.release(id);
  throw new NotRebuilt(
    INSUFFICIENT_CODES.includes(reopening.code) ? 'short' : 'unreadable',
    reopening.message,
  );
}

type Opening = Exclude<
  Extract<Write, { activity: `open${string}` | `abandon${string}` }>,
  { activity: 'openDispute' }
>;

/**
 * Creates a missing record, without the merchant's texts. It takes its old key only during the
 * key's lifetime: later, another resource may have it.
 */
async function ensureRecord(
  { idempotency }: Pick<Stores, 'idempotency'>,
  resource_id: string,
  opening: Opening,
  { memo, startedAt }: RunHistory,
): Promise<void> {
  if ((await idempotency.forResource(resource_id)) !== null) return;
  const now = new Date();
  const isOver = startedAt.getTime() + KEY_LIFETIME_MS < now.getTime();
  const { key, body: fingerprint } = isOver || !memo ? { key: resource_id, body: KEY_LOST } : memo;
  const { request_id } = opening.input;
  const request = buildRequest(opening);
  const record = { ...rebuiltRecordKey(opening.input, key), fingerprint, resource_id };
  await idempotency.reserveKey({ ...record, request, request_id }, now);
}

function buildRequest(opening: Opening): AcceptedRequest {
  switch (opening.activity) {
    case 'openPayment': {
      const { created_at, expires_at, session, payment_id, request_id, ...more } = opening.input;
      const { return_url, ...routing } = more;
      const expires_in_seconds = (Date.parse(expires_at) - Date.parse(created_at)) / 1_000;
      // The service's own address, since the shop's are lost.
      const home = new URL('/', return_url).href;
      const customer = { reference: null, ciphertext: null };
      const urls = { success_url: home, error_url: home };
      const stored = { reference: null, customer, metadata: '{}', ...urls };
      return { stored, routing: { ...routing, expires_in_seconds } };
    }
    case 'openRefund':
    case 'abandonRefund': {
      const { refund_id, request_id, created_at, ...routing } = opening.input;
      return { refund: { reason: null }, routing };
    }
    case 'openPayout':
    case 'abandonPayout': {
      const { payout_id, request_id, created_at, accept_by_ms, ...routing } = opening.input;
      return { payout: { reference: null, metadata: '{}' }, routing };
    }
    case 'openCryptoPayment': {
      const { created_at, expires_at, amount_due, rate, address, ...more } = opening.input;
      const { required_confirmations, chain_id, token_contract, ...input } = more;
      const { crypto_payment_id, request_id, ...routing } = input;
      const expires_in_seconds = (Date.parse(expires_at) - Date.parse(created_at)) / 1_000;
      const crypto_payment = { reference: null, metadata: '{}' };
      return { crypto_payment, routing: { ...routing, expires_in_seconds } };
    }
    case 'openCryptoSettlement': {
      const { crypto_settlement_id, request_id, created_at, ...settlement } = opening.input;
      return { settlement };
    }
    default:
      return assertNever(opening);
  }
}

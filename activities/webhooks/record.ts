import { setTimeout as wait } from 'node:timers/promises';
import { ApplicationFailure, activityInfo } from '@temporalio/activity';
import { ApplicationFailureCategory } from '@temporalio/common';
import { MongoError } from 'mongodb';
import {
  ATTEMPTS_MAX,
  type DeliveryKey,
  type EndpointDeliveryInput,
  getDeliveryId,
  nextAttemptDelayMs,
  WEBHOOK_EXHAUSTED,
} from '../../src/domain/events/delivery';
import { readAccountTime } from '../../src/domain/merchants/clock';
import type { Encrypter } from '../../src/encryption/encrypter';
import type { EndpointHealth } from '../../src/service/events/endpoints/manage';
import type { AccountStore } from '../../src/store/accounts';
import type { DeliveryAttempt, DeliveryStore } from '../../src/store/deliveries';
import {
  type Endpoint,
  type EndpointStore,
  secretOwner,
  signingSecret,
} from '../../src/store/endpoints';
import { describeRow, matchesDelivery, postEvent, toRow } from '../../src/webhooks/attempt';
import type { Admission, EndpointLimits } from '../../src/webhooks/endpoint-limits';
import type { PostWebhook } from '../../src/webhooks/post';
import { isAcknowledged, type PostResult } from '../../src/webhooks/post-result';

const RETRY_AFTER_OUTAGE_MS = 10_000;

export interface AttemptInput extends EndpointDeliveryInput {
  /** Unix time in ms. */
  first_at_ms?: number;
  /** First attempt, if not stored; without path and answer. */
  unstored?: DeliveryAttempt;
}

interface DeliveryRecord {
  deliveries: Pick<DeliveryStore, 'addAttempt' | 'last' | 'end'>;
  random: () => number;
  patienceMs?: number;
}

/**
 * Waits out a short outage; a longer one ends this try, which uses up no attempt.
 * @throws ApplicationFailure `RecordUnreachable`, after `onGiveUp`
 */
export async function untilReachable<T>(
  { patienceMs, random }: Pick<DeliveryRecord, 'patienceMs' | 'random'>,
  work: () => Promise<T>,
  onGiveUp: () => void = () => {},
): Promise<T> {
  try {
    return await retryDuringOutage(work, patienceMs);
  } catch (error) {
    if (!(error instanceof MongoError)) throw error;
    onGiveUp();
    throw ApplicationFailure.create({
      type: 'RecordUnreachable',
      message: `The database can't be reached: ${error.message}`,
      nextRetryDelay: RETRY_AFTER_OUTAGE_MS * (1 + random()),
    });
  }
}

/** Whether the server has tried this activity before, or was made to try it now. */
export function isRepeatedTry(): boolean {
  const { attempt, scheduledTimestampMs, currentAttemptScheduledTimestampMs } = activityInfo();
  return attempt > 1 || currentAttemptScheduledTimestampMs > scheduledTimestampMs;
}

/** Stores an attempt first that an earlier try could not store. */
async function lastAttempt(
  record: DeliveryRecord,
  input: AttemptInput,
  hasAdvanced: boolean,
): Promise<DeliveryAttempt | null> {
  const { heartbeatDetails } = activityInfo();
  // The first try has made no attempt, unless an earlier workflow was lost, or the clock has
  // advanced.
  if (!isRepeatedTry() && input.resume !== true && !hasAdvanced) return null;
  const storedAttempt = await record.deliveries.last(getDeliveryId(input), input.run);
  const postedAttempt: unknown = heartbeatDetails ?? input.unstored;
  if (
    !matchesDelivery(postedAttempt, input) ||
    postedAttempt.attempt <= (storedAttempt?.attempt ?? 0)
  )
    return storedAttempt;
  await storeAttempt(record, postedAttempt);
  return postedAttempt;
}

/** @throws ApplicationFailure `EventUnknown` */
export async function storeAttempt(
  { deliveries }: Pick<DeliveryRecord, 'deliveries'>,
  row: DeliveryAttempt,
): Promise<void> {
  const { event_id, run, outcome } = row;
  const writeResult = await deliveries.addAttempt(row);
  if (writeResult === 'no_event') {
    throw ApplicationFailure.nonRetryable(`No ${event_id}.`, 'EventUnknown');
  }
  if (writeResult === 'kept' || outcome === 'failed') return;
  // Another try of this number may be stored as failed: this one was delivered.
  await deliveries.end(getDeliveryId(row), run, 'delivered');
}

const PATIENCE_MS = 8_000;
const PAUSE_MS = 250;

/**
 * Waits out an outage, which must not use up an attempt.
 * @throws the last error of `work`
 */
export async function retryDuringOutage<T>(
  work: () => Promise<T>,
  patienceMs = PATIENCE_MS,
): Promise<T> {
  const giveUpAt = Date.now() + patienceMs;
  while (true) {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof MongoError) || Date.now() >= giveUpAt) throw error;
      await wait(PAUSE_MS);
    }
  }
}

const EARLY_MS_MAX = 1_000;

export interface WebhookActivityDeps extends DeliveryRecord {
  deliveries: DeliveryRecord['deliveries'] & Pick<DeliveryStore, 'noteWaiting' | 'endWait'>;
  endpoints: Pick<EndpointStore, 'list' | 'listCached'>;
  limits: EndpointLimits;
  encrypter: Pick<Encrypter, 'decrypt'>;
  allowPrivate: boolean;
  post: PostWebhook;
  /** Unix time in ms. */
  now: () => number;
  accounts: Pick<AccountStore, 'getCached'>;
  health: EndpointHealth;
  tryNow: (delivery: DeliveryKey) => Promise<boolean>;
  log: Record<'info' | 'warn', (fields: LogFields, message: string) => void>;
  nextDelayMs?: typeof nextAttemptDelayMs;
}

/** Excludes body, URL and secret. */
interface LogFields {
  request_id: string;
  event_id: string;
  endpoint_id?: string;
  attempt?: number;
  err?: unknown;
}

export type DeliveryOutcome = 'delivered' | 'no_endpoint' | 'disabled';

interface MadeAttempt {
  row: DeliveryAttempt;
  endpoint: Endpoint;
}

export async function makeAttempt(
  deps: WebhookActivityDeps,
  input: AttemptInput,
  admission: Extract<Admission, { admitted: true }>,
): Promise<DeliveryOutcome | MadeAttempt> {
  const { event } = input;
  let result: PostResult | undefined;
  try {
    const target = await untilReachable(deps, () => lookUp(deps, input));
    if (typeof target === 'string') return target;
    const { url, endpoint, ciphertext, attempt, atMs, offset_ms, firstAt } = target;
    const secret = await deps.encrypter.decrypt(ciphertext, secretOwner(endpoint));
    const allowPrivate = deps.allowPrivate && !event.livemode;
    result = await postEvent(deps.post, { event, url, secret, atMs, allowPrivate });
    const accountMs = deps.now() + offset_ms;
    const firstAtMs = firstAt === undefined ? input.first_at_ms : Date.parse(firstAt);
    const times = { firstAtMs, nowMs: accountMs };
    const delayMs = isAcknowledged(result)
      ? null
      : nextDelayMs(deps, times, attempt, result, input);
    const nextAtMs = delayMs === null ? null : accountMs + delayMs;
    const about = { attempt, url, atMs: atMs + offset_ms, firstAt, result, nextAtMs };
    return { row: toRow(input, about), endpoint };
  } finally {
    admission.leave(result);
  }
}

/** Ms by which the account's clock leads. */
export async function readOffset(
  { accounts }: Pick<WebhookActivityDeps, 'accounts'>,
  { event: { account_id, livemode } }: Pick<AttemptInput, 'event'>,
): Promise<number> {
  if (livemode) return 0;
  const account = await accounts.getCached(account_id);
  return readAccountTime(livemode, account?.clock).offset_ms;
}

async function lookUp(deps: WebhookActivityDeps, input: AttemptInput) {
  const { event_id, request_id } = input;
  const offset_ms = await readOffset(deps, input);
  const last = await lastAttempt(deps, input, offset_ms > 0);
  if (last?.outcome === 'delivered') return 'delivered';
  const now = deps.now() + offset_ms;
  const dueMs = Date.parse(last?.next_attempt_at ?? '');
  // Not due yet, or none follows.
  const mayAttempt = last === null || (last.attempt < ATTEMPTS_MAX && dueMs - now <= EARLY_MS_MAX);
  if (!mayAttempt) throw attemptFailed(last, now);
  const atMs = deps.now();
  const startsAhead = last === null && offset_ms > 0;
  const firstAt = startsAhead ? new Date(atMs + offset_ms).toISOString() : last?.first_at;
  // A retry or a redelivery must not miss a change of the endpoint.
  const isFirst = last === null && input.run === 0;
  const { account_id, livemode } = input.event;
  const rows = await deps.endpoints[isFirst ? 'listCached' : 'list'](account_id, livemode);
  const endpoint = rows.find((row) => row.endpoint_id === input.endpoint_id);
  const ciphertext = endpoint && signingSecret(endpoint, new Date(atMs));
  const attempt = (last?.attempt ?? 0) + 1;
  if (endpoint === undefined || ciphertext === undefined) {
    await endWith(deps, input, 'no_endpoint');
    deps.log.info({ request_id, event_id, attempt }, 'no webhook endpoint');
    return 'no_endpoint';
  }
  if (endpoint.disabled_reason !== undefined) {
    await endWith(deps, input, 'disabled');
    deps.log.info({ request_id, event_id, attempt }, 'webhook endpoint disabled');
    return 'disabled';
  }
  return {
    endpoint,
    url: endpoint.url,
    ciphertext,
    attempt,
    atMs,
    offset_ms,
    firstAt,
  };
}

function nextDelayMs(
  deps: WebhookActivityDeps,
  { firstAtMs, nowMs }: { firstAtMs: number | undefined; nowMs: number },
  attempt: number,
  result: PostResult,
  { attempts_max }: Pick<AttemptInput, 'attempts_max'>,
): number | null {
  if (attempt >= (attempts_max ?? ATTEMPTS_MAX)) return null;
  const retryAfterSeconds = result.outcome === 'response' ? result.retryAfterSeconds : undefined;
  return (deps.nextDelayMs ?? nextAttemptDelayMs)({
    attempt,
    firstAtMs: firstAtMs ?? activityInfo().scheduledTimestampMs,
    nowMs,
    retryAfterMs: retryAfterSeconds === undefined ? undefined : retryAfterSeconds * 1_000,
    jitter: deps.random(),
  });
}

export function attemptFailed(row: DeliveryAttempt, nowMs: number): ApplicationFailure {
  const { attempt, next_attempt_at } = row;
  const isLast = attempt >= ATTEMPTS_MAX || next_attempt_at === null;
  return ApplicationFailure.create({
    type: isLast ? WEBHOOK_EXHAUSTED : 'WebhookAttemptFailed',
    // The server's own count includes other tries.
    message: `${describeRow(row)} (attempt ${attempt} of ${ATTEMPTS_MAX})`,
    nonRetryable: isLast,
    ...(isLast ? {} : { nextRetryDelay: Math.max(1, Date.parse(next_attempt_at) - nowMs) }),
    // The receiver's fault is no error in our logs and metrics.
    category: ApplicationFailureCategory.BENIGN,
  });
}

/** Skips a delivery that was redelivered since. */
async function endWith(
  { deliveries }: Pick<WebhookActivityDeps, 'deliveries'>,
  input: EndpointDeliveryInput,
  status: 'no_endpoint' | 'disabled',
): Promise<void> {
  await deliveries.end(getDeliveryId(input), input.run, status);
}

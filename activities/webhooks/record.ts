import { setTimeout as wait } from 'node:timers/promises';
import { ApplicationFailure, activityInfo } from '@temporalio/activity';
import { MongoError } from 'mongodb';
import { type EndpointDeliveryInput, getDeliveryId } from '../../src/domain/events/delivery';
import type { DeliveryAttempt, DeliveryStore } from '../../src/store/deliveries';
import { matchesDelivery } from '../../src/webhooks/attempt';

const RETRY_AFTER_OUTAGE_MS = 10_000;

export interface AttemptInput extends EndpointDeliveryInput {
  /** Unix time in ms. */
  first_at_ms?: number;
  /** First attempt, if not stored; without path and answer. */
  unstored?: DeliveryAttempt;
}

export interface DeliveryRecord {
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
export async function lastAttempt(
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

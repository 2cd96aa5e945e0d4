import type { EventDelivery } from '../resources/events';

/**
 * Whether somebody had an event sent again to an endpoint. Attempts that were due do not count: they are
 * the service's own retries.
 * @param before what was seen last; undefined for an endpoint that the event was not sent to
 */
export function isRedelivered(
  before: EventDelivery | undefined,
  after: EventDelivery,
  now: Date,
): boolean {
  if (before === undefined || after.attempts <= before.attempts) return false;
  if (before.status !== 'pending') return true;
  if (before.next_attempt_at === null || before.attempts === 0) return false;
  return now < new Date(before.next_attempt_at);
}

/**
 * Chooses the state with which the next one is compared: a redelivery makes a delivery pending at once,
 * and its attempt comes later.
 */
export function chooseBaseline(
  before: EventDelivery | undefined,
  after: EventDelivery,
): EventDelivery {
  const hasEnded = before !== undefined && before.status !== 'pending';
  return hasEnded && after.status === 'pending' && after.attempts === before.attempts
    ? before
    : after;
}

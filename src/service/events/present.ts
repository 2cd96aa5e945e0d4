import type { DeliveryAttempt, DeliveryRow } from '../../store/deliveries';
import type { EventDocument } from '../../store/events';

/** An event with its deliveries, the oldest endpoint's first; none without endpoints. */
export interface ListedEvent {
  event: EventDocument;
  deliveries: readonly DeliveryRow[];
}

/** @see docs/api.md#events */
export function presentEvent({ event, deliveries }: ListedEvent) {
  const { _id: id, type, created, livemode, data } = event;
  const presented = deliveries.map(presentDelivery);
  return { id, object: 'event', type, created, livemode, data, deliveries: presented };
}

export function presentDelivery({ endpoint_id, status, attempts, next_attempt_at }: DeliveryRow) {
  return { endpoint_id, status, attempts, next_attempt_at };
}

const NO_DELIVERY = { status: 'no_endpoint', attempts: 0, next_attempt_at: null } as const;

export type ShownDelivery = Pick<DeliveryRow, 'status' | 'attempts' | 'next_attempt_at'>;

/** Shows operators the oldest endpoint's delivery. */
export function presentOldest([oldest = NO_DELIVERY]: readonly ShownDelivery[]): ShownDelivery {
  const { status, attempts, next_attempt_at } = oldest;
  return { status, attempts, next_attempt_at };
}

/** @param attempts newest first */
export function presentLog(attempts: readonly DeliveryAttempt[]) {
  return attempts.toReversed().map(({ at, status_code, error, duration_ms }) => ({
    ...{ at, status: status_code, error, duration_ms },
  }));
}

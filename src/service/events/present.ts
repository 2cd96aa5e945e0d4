import type { DeliveryDocument, DeliveryRow } from '../../store/deliveries';
import type { EventDocument } from '../../store/events';

/**
 * @see docs/api.md#events
 * @param separate deliveries outside the event
 */
export function presentEvent(event: EventDocument, separate: readonly DeliveryRow[]) {
  const { _id: id, type, created, livemode, data } = event;
  const deliveries = listDeliveries(event, separate).map(presentDelivery);
  return { id, object: 'event', type, created, livemode, data, deliveries };
}

/** The oldest endpoint's delivery comes first; none without endpoints. */
export function listDeliveries(
  event: EventDocument,
  separate: readonly DeliveryRow[],
): DeliveryRow[] {
  const others = separate.filter(({ event_id }) => event_id === event._id);
  return event.delivery.endpoint_id === undefined ? others : [event, ...others];
}

export function presentDelivery({ delivery }: DeliveryRow) {
  const { endpoint_id, status, attempts, next_attempt_at } = delivery;
  return { endpoint_id, status, attempts, next_attempt_at };
}

export function matchesRow(
  { _id }: DeliveryRow,
  { event_id, delivery_id = event_id }: DeliveryDocument,
) {
  return delivery_id === _id;
}

/** @param attempts newest first */
export function presentLog(attempts: readonly DeliveryDocument[]) {
  return attempts.toReversed().map(({ at, status_code, error, duration_ms }) => ({
    ...{ at, status: status_code, error, duration_ms },
  }));
}

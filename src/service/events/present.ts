import type { DeliveryDocument } from '../../store/deliveries';
import { firstEndpointId } from '../../store/endpoints';
import type { EventDocument } from '../../store/events';

/** Presents exactly the fields of docs/api.md#events, in their order. */
export function presentEvent(event: EventDocument) {
  const { _id: id, type, created, livemode, data } = event;
  return { id, object: 'event', type, created, livemode, data, deliveries: presentDelivery(event) };
}

function presentDelivery({ account_id, livemode, delivery }: EventDocument) {
  const { endpoint_id, status, attempts, next_attempt_at } = delivery;
  if (endpoint_id === undefined && status === 'no_endpoint') return [];
  const id = endpoint_id ?? firstEndpointId(account_id, livemode);
  return [{ endpoint_id: id, status, attempts, next_attempt_at }];
}

/** @param attempts newest first */
export function presentLog(attempts: readonly DeliveryDocument[]) {
  return attempts.toReversed().map(({ at, status_code, error, duration_ms }) => ({
    ...{ at, status: status_code, error, duration_ms },
  }));
}

import { listEnabledEvents } from '../../../domain/webhook/endpoint';
import type { Endpoint } from '../../../store/endpoints';

export type { Endpoint } from '../../../store/endpoints';

/** @see docs/api.md#webhook-endpoints */
export function presentEndpoint(endpoint: Endpoint) {
  const { endpoint_id: id, url, description = null, enabled_events } = endpoint;
  const { disabled_reason = null, livemode, created_at, updated_at } = endpoint;
  return {
    ...{ id, object: 'webhook_endpoint', url, description },
    enabled_events: listEnabledEvents(enabled_events),
    status: disabled_reason === null ? 'enabled' : 'disabled',
    ...{ disabled_reason, livemode, created_at, updated_at },
  };
}

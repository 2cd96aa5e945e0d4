import type { Endpoint } from '../../service/endpoints/present';
import type { DeliveryRow } from '../../service/events/list';
import { presentOldest } from '../../service/events/present';
import { deliveryText } from '../../service/resources/timeline';
import { type FactRow, Status, Table, When } from '../frame/parts';
import type { Call } from '../frame/route';
import { ENDPOINTS_PATH, showUrl } from './endpoint-settings';

interface StatesProps {
  deliveries: readonly DeliveryRow[];
}

export function States({ deliveries }: StatesProps) {
  const rows = deliveries.length === 0 ? [presentOldest([])] : deliveries;
  return (
    <span class="states">
      {[...new Set(rows.map(({ status }) => status))].map((status) => (
        <Status key={status} of={status} />
      ))}
    </span>
  );
}

/** @param deliveries one, or none without an endpoint */
export function describeDelivery(deliveries: readonly DeliveryRow[]): FactRow[] {
  const delivery = presentOldest(deliveries);
  return [
    ['Delivery', deliveryText(delivery)],
    ['Attempts', String(delivery.attempts)],
    ['Next attempt', <When key="next" at={delivery.next_attempt_at} />],
  ];
}

interface DeliveryTableProps {
  call: Call;
  deliveries: readonly DeliveryRow[];
  endpoints: readonly Endpoint[];
}

export function DeliveryTable({ call, deliveries, endpoints }: DeliveryTableProps) {
  return (
    <Table
      label="Deliveries"
      head={['Endpoint', 'Delivery', 'Attempts', 'Next attempt']}
      rows={deliveries.map(({ _id, endpoint_id, status, attempts, next_attempt_at }) => {
        const endpoint = endpoints.find((each) => each.endpoint_id === endpoint_id);
        const cells = [
          <code key="endpoint">{endpoint ? showUrl(call, endpoint) : endpoint_id}</code>,
          <Status key="status" of={status} />,
          String(attempts),
          <When key="next" at={next_attempt_at} />,
        ];
        if (endpoint === undefined) return { key: _id, cells };
        return { key: _id, href: call.href(`${ENDPOINTS_PATH}/${endpoint_id}`), cells };
      })}
      none=""
    />
  );
}

import type { Endpoint } from '../../service/endpoints/present';
import type { DeliveryRow, EventDocument } from '../../service/events/list';
import { deliveryText } from '../../service/resources/timeline';
import { type FactRow, Status, Table, When } from '../frame/parts';
import type { Call } from '../frame/route';
import { ENDPOINTS_PATH, showUrl } from './endpoint-settings';

interface StatesProps {
  event: EventDocument;
  deliveries: readonly DeliveryRow[];
}

export function States({ event, deliveries }: StatesProps) {
  const rows = deliveries.length === 0 ? [event] : deliveries;
  return (
    <span class="states">
      {[...new Set(rows.map(({ delivery }) => delivery.status))].map((status) => (
        <Status key={status} of={status} />
      ))}
    </span>
  );
}

export function describeDelivery({ delivery }: Pick<DeliveryRow, 'delivery'>): FactRow[] {
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
      rows={deliveries.map(({ _id, delivery }) => {
        const { endpoint_id = '', status, attempts, next_attempt_at } = delivery;
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

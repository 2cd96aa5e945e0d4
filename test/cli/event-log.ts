import { randomUUID } from 'node:crypto';
import { buildEvents } from '../../activities/shared/events';
import type { EventType, Subscriber } from '../../src/domain/events/event';
import type { DeliveryRow } from '../../src/store/deliveries';
import type { EndpointDocument } from '../../src/store/endpoints';
import type { EventDocument } from '../../src/store/events';
import type { Provisioning } from './cli';

/** Events of one payment, recorded as its transitions would, all within one millisecond. */
export async function recordEvents(
  { db }: Pick<Provisioning, 'db'>,
  account_id: string,
  types: EventType[],
  wants: Subscriber['wants'] | null = 'all',
): Promise<EventDocument[]> {
  const resource_id = randomUUID();
  const endpoints = db.collection<EndpointDocument>('webhook_endpoints');
  const oldest = await endpoints.findOne({ account_id, livemode: false });
  const endpoint_id = oldest?.endpoint_id ?? 'we_deleted';
  const { events, deliveries } = buildEvents(
    {
      resource: 'payment',
      resource_id,
      account_id,
      livemode: false,
      at: '2026-03-01T12:00:00.000Z',
      data: { payment_id: resource_id },
      request_id: 'req_1',
      transitions: types.map((type, transition) => ({ type, transition })),
    },
    wants === null ? [] : [{ endpoint_id, wants, isDisabled: false }],
  );
  await db.collection<EventDocument>('events').insertMany([...events]);
  if (deliveries.length > 0)
    await db.collection<DeliveryRow>('deliveries').insertMany([...deliveries]);
  return [...events];
}

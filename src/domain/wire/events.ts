import { z } from 'zod';
import { DELIVERY_STATUSES, EVENT_TYPES, WebhookEvent } from '../events/event';
import { LOGGED, OWN_ID } from '../logged';
import { endpoint } from './endpoint';
import { ById, Id, Timestamp } from './fields';
import { buildPageSchema, PAGE_FIELDS } from './lists';
import { SAMPLE_IDS } from './samples';

const Delivery = z
  .object({
    endpoint_id: z
      .string()
      .meta({ examples: [SAMPLE_IDS.webhook_endpoint] })
      .register(LOGGED, OWN_ID),
    status: z.enum(DELIVERY_STATUSES).meta({ examples: ['delivered'] }),
    attempts: z
      .int()
      .min(0)
      .meta({ description: 'Over all runs.', examples: [1] }),
    next_attempt_at: Timestamp.nullable(),
  })
  .meta({ id: 'Delivery' });

const Attempt = z
  .object({
    at: Timestamp,
    status: z
      .int()
      .nullable()
      .meta({ description: 'HTTP status; null without a complete answer.', examples: [200] }),
    error: z.string().nullable(),
    duration_ms: z
      .int()
      .min(0)
      .meta({ examples: [83] }),
  })
  .meta({ id: 'DeliveryAttempt' });

const FIELDS = {
  id: WebhookEvent.shape.id.meta({ examples: [SAMPLE_IDS.event] }).register(LOGGED, OWN_ID),
  object: z.literal('event'),
  type: z.enum(EVENT_TYPES).meta({ examples: ['payment.settled'] }),
  created: Timestamp,
  livemode: z.boolean(),
  data: WebhookEvent.shape.data.meta({ examples: [{ payment_id: SAMPLE_IDS.payment }] }),
};

/** @see docs/api.md#events */
export const Event = z
  .object({ ...FIELDS, deliveries: z.array(Delivery).meta({ description: 'One per endpoint.' }) })
  .meta({ id: 'Event' });

const EventWithLog = z
  .object({
    ...FIELDS,
    deliveries: z.array(
      Delivery.extend({
        log: z.array(Attempt).meta({ description: 'The latest attempts, the oldest first.' }),
      }).meta({ id: 'DeliveryWithLog' }),
    ),
  })
  .meta({ id: 'EventWithLog' });

const EventsQuery = z
  .strictObject({
    ...PAGE_FIELDS,
    type: z.enum(EVENT_TYPES).optional(),
    resource_id: Id.optional(),
    after: Id.optional(),
  })
  .refine(({ after, created_before }) => after === undefined || created_before === undefined, {
    path: ['after'],
    error: 'does not go with created_before',
  });
export type EventsQuery = z.output<typeof EventsQuery>;

export const listEvents = endpoint({
  method: 'get',
  path: '/v1/events',
  operation: 'listEvents',
  summary: 'List events',
  description:
    'Returns a page, newest first. For the next page, send `next_cursor` as `created_before`. With ' +
    '`after`, the oldest comes first, and `next_cursor` is the `after` of the next page: no event is ' +
    'skipped, not even one that becomes visible late.',
  scope: 'events:read',
  query: EventsQuery,
  success: { status: 200, description: 'A page.', schema: buildPageSchema(Event, 'EventList') },
  codes: ['invalid_cursor', 'event_not_found'],
});

export const getEvent = endpoint({
  method: 'get',
  path: '/v1/events/{id}',
  operation: 'getEvent',
  summary: 'Read an event',
  description: 'Returns the event with its attempts.',
  scope: 'events:read',
  params: ById,
  success: { status: 200, description: 'The event.', schema: EventWithLog },
  codes: ['event_not_found'],
});

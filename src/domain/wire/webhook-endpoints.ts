import { z } from 'zod';
import { DISABLED_REASONS, ENDPOINT_STATUSES, EVENT_TYPES } from '../events/event';
import { LOGGED, OWN_ID } from '../logged';
import { endpoint } from './endpoint';
import { Event } from './events';
import { ById, Id, NullableText, optional, Timestamp, text } from './fields';
import { buildPageSchema, listEndpoint, PAGE_FIELDS } from './lists';
import { SAMPLE_CREATED, SAMPLE_IDS } from './samples';

const DESCRIPTION_LENGTH_MAX = 255;
const URL_LENGTH_MAX = 2_048;
const EVENTS_MAX = 100;
/** Works in the sandbox of `npm start`, where no other host is known to exist. */
const SAMPLE_URL = 'http://localhost:9000/webhooks';
const SAMPLE_EVENTS = ['payment.settled', 'refund.settled'];
const SAMPLE_SECRET = 'whsec_4xR9vK2mQ7tB1nZ8wL5jH3cF6yD0sGaPqUeTiOrXbNk';

const Url = text(URL_LENGTH_MAX).meta({
  format: 'uri',
  description: 'https, at a public address; in the sandbox of your own machine also http.',
  examples: [SAMPLE_URL],
});

const Description = optional(text(DESCRIPTION_LENGTH_MAX)).meta({ examples: ['Orders'] });

const EnabledEvents = z
  .array(z.enum(EVENT_TYPES))
  .min(1, 'must name at least one event type')
  .max(EVENTS_MAX)
  .meta({ examples: [SAMPLE_EVENTS] });

const CreateWebhookEndpoint = z
  .strictObject({
    url: Url,
    description: Description,
    enabled_events: EnabledEvents.optional(),
  })
  .meta({
    id: 'CreateWebhookEndpoint',
    examples: [{ url: SAMPLE_URL, description: 'Orders', enabled_events: SAMPLE_EVENTS }],
  });
export type CreateWebhookEndpoint = z.output<typeof CreateWebhookEndpoint>;

const UpdateWebhookEndpoint = z
  .strictObject({
    url: Url.optional(),
    description: Description,
    enabled_events: EnabledEvents.optional(),
    status: z.enum(ENDPOINT_STATUSES).optional(),
  })
  .meta({ id: 'UpdateWebhookEndpoint', examples: [{ status: 'disabled' }] });
export type UpdateWebhookEndpoint = z.output<typeof UpdateWebhookEndpoint>;

const FIELDS = {
  id: z
    .string()
    .meta({ examples: [SAMPLE_IDS.webhook_endpoint] })
    .register(LOGGED, OWN_ID),
  object: z.literal('webhook_endpoint'),
  url: z.string().meta({ examples: [SAMPLE_URL] }),
  description: NullableText.meta({ examples: ['Orders'] }),
  enabled_events: z
    .array(z.enum(EVENT_TYPES))
    .meta({ description: 'By default all but those of disputes.', examples: [SAMPLE_EVENTS] }),
  status: z.enum(ENDPOINT_STATUSES),
  disabled_reason: z
    .enum(DISABLED_REASONS)
    .nullable()
    .meta({
      description: '`merchant`: you disabled it. `failing`: nothing succeeded for five days.',
      examples: [null],
    }),
  livemode: z.boolean(),
  created_at: Timestamp,
  updated_at: Timestamp,
};

/** @see docs/api.md#webhook-endpoints */
const WebhookEndpoint = z
  .object({
    ...FIELDS,
    deleted: z.literal(true).optional().meta({ description: 'Only in the answer of a deletion.' }),
  })
  .meta({ id: 'WebhookEndpoint' });

const WebhookEndpointWithSecret = z
  .object({
    ...FIELDS,
    signing_secret: z.string().meta({
      description: 'Shown here and never again.',
      examples: [SAMPLE_SECRET],
    }),
  })
  .meta({ id: 'WebhookEndpointWithSecret' });

export const createWebhookEndpoint = endpoint({
  method: 'post',
  path: '/v1/webhook-endpoints',
  operation: 'createWebhookEndpoint',
  summary: 'Create a webhook endpoint',
  description:
    'Up to 16 endpoints per environment get your events, each with its own secret. Without ' +
    '`enabled_events` it gets all types but those of disputes.',
  scope: 'webhooks:write',
  creates: true,
  body: CreateWebhookEndpoint,
  success: {
    status: 201,
    description: 'The endpoint and its signing secret.',
    schema: WebhookEndpointWithSecret,
  },
  codes: ['endpoint_limit_reached'],
});

export const getWebhookEndpoint = endpoint({
  method: 'get',
  path: '/v1/webhook-endpoints/{id}',
  operation: 'getWebhookEndpoint',
  summary: 'Read a webhook endpoint',
  description: 'Returns the endpoint without its secret.',
  scope: 'webhooks:read',
  params: ById,
  success: { status: 200, description: 'The endpoint.', schema: WebhookEndpoint },
  codes: ['webhook_endpoint_not_found'],
});

export const listWebhookEndpoints = listEndpoint({
  path: '/v1/webhook-endpoints',
  operation: 'listWebhookEndpoints',
  summary: 'List webhook endpoints, newest first',
  scope: 'webhooks:read',
  query: z.strictObject(PAGE_FIELDS),
  page: buildPageSchema(WebhookEndpoint, 'WebhookEndpointList'),
});

export const updateWebhookEndpoint = endpoint({
  method: 'patch',
  path: '/v1/webhook-endpoints/{id}',
  operation: 'updateWebhookEndpoint',
  summary: 'Change a webhook endpoint',
  description:
    'Changes the fields that you send. Events of the time in which it is disabled are recorded, ' +
    'and sent only by `redeliver`.',
  scope: 'webhooks:write',
  params: ById,
  body: UpdateWebhookEndpoint,
  success: {
    status: 200,
    description: 'The endpoint, changed.',
    schema: WebhookEndpoint,
    example: { status: 'disabled', disabled_reason: 'merchant' },
  },
  codes: ['webhook_endpoint_not_found'],
});

export const deleteWebhookEndpoint = endpoint({
  method: 'delete',
  path: '/v1/webhook-endpoints/{id}',
  operation: 'deleteWebhookEndpoint',
  summary: 'Delete a webhook endpoint',
  description: 'It gets no more events. Its deliveries stay in the log.',
  scope: 'webhooks:write',
  params: ById,
  success: {
    status: 200,
    description: 'The endpoint, deleted.',
    schema: WebhookEndpoint,
    example: { deleted: true },
  },
  codes: ['webhook_endpoint_not_found'],
});

export const rollWebhookSecret = endpoint({
  method: 'post',
  path: '/v1/webhook-endpoints/{id}/roll-secret',
  operation: 'rollWebhookSecret',
  summary: 'Roll the signing secret',
  description:
    'Creates a new secret that signs from the time that you choose; until then the current one ' +
    'does.',
  scope: 'webhooks:write',
  params: ById,
  body: z
    .strictObject({ after: z.enum(['now', '1h', '24h']).default('now') })
    .meta({ id: 'RollWebhookSecret', examples: [{ after: '24h' }] }),
  success: {
    status: 200,
    description: 'The endpoint and its new secret.',
    schema: WebhookEndpointWithSecret,
  },
  codes: ['webhook_endpoint_not_found'],
});

export const testWebhookEndpoint = endpoint({
  method: 'post',
  path: '/v1/webhook-endpoints/{id}/test',
  operation: 'testWebhookEndpoint',
  work: 'delivery',
  summary: 'Send a test event',
  description:
    'Sends an event with `test: true` and a made-up id in its data, once. Read the event to see ' +
    'the answer.',
  scope: 'webhooks:write',
  params: ById,
  body: z
    .strictObject({ type: z.enum(EVENT_TYPES) })
    .meta({ id: 'TestWebhookEndpoint', examples: [{ type: 'payment.settled' }] }),
  success: {
    status: 202,
    description: 'The test event, which is being sent.',
    schema: Event,
    example: {
      data: { payment_id: SAMPLE_IDS.payment, test: true },
      deliveries: [
        {
          endpoint_id: SAMPLE_IDS.webhook_endpoint,
          ...{ status: 'pending', attempts: 0, next_attempt_at: SAMPLE_CREATED },
        },
      ],
    },
  },
  codes: ['webhook_endpoint_not_found', 'endpoint_disabled'],
});

export const redeliverEvent = endpoint({
  method: 'post',
  path: '/v1/events/{id}/redeliver',
  operation: 'redeliverEvent',
  work: 'delivery',
  summary: 'Send an event again',
  description:
    'Sends the event to the endpoint that `endpoint_id` names, or to all enabled ones that want ' +
    'its type, with twelve new attempts each.',
  scope: 'webhooks:write',
  params: ById,
  body: z
    .strictObject({ endpoint_id: optional(Id) })
    .meta({ id: 'RedeliverEvent', examples: [{}] }),
  success: { status: 202, description: 'The event, which is being sent.', schema: Event },
  codes: ['event_not_found', 'webhook_endpoint_not_found', 'endpoint_disabled'],
});

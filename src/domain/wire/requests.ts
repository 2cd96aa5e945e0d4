import { z } from 'zod';
import { Timestamp } from './fields';
import { buildPageSchema, listEndpoint, PAGE_FIELDS } from './lists';
import { SAMPLE_CREATED, SAMPLE_IDS, SAMPLE_PAYMENT } from './samples';

const RedactedBody = z.unknown().meta({
  description: 'JSON, redacted: null without a body, and where it was not read.',
});

/** @see docs/api.md#requests */
const ApiRequest = z
  .object({
    request_id: z.string(),
    object: z.literal('request'),
    method: z.string(),
    path: z.string().meta({ description: 'Without the query.' }),
    status: z.int(),
    code: z.string().nullable().meta({ description: 'Of the error.' }),
    idempotency_key: z.string().nullable(),
    key_id: z.string(),
    duration_ms: z.int(),
    created_at: Timestamp,
    request_body: RedactedBody,
    response_body: RedactedBody,
  })
  .meta({ id: 'ApiRequest' });

const REDACTED = '[redacted]';
const HIDDEN = { success_url: REDACTED, error_url: REDACTED };
const SAMPLE_REQUEST = {
  request_id: '73a2f986-b513-4fbc-b8f4-4894d222b047',
  object: 'request',
  ...{ method: 'POST', path: '/v1/payments', status: 201, code: null },
  ...{ idempotency_key: 'order-1001', key_id: 'key_0a91b2c3-d4e5-4f60-8a7b-9c0d1e2f3a77' },
  ...{ duration_ms: 38, created_at: SAMPLE_CREATED },
  request_body: { ...SAMPLE_PAYMENT, ...HIDDEN },
  response_body: { id: SAMPLE_IDS.payment, object: 'payment', status: 'awaiting_customer' },
};

export const listRequests = listEndpoint({
  path: '/v1/requests',
  operation: 'listRequests',
  summary: 'List your writes and errors of the last 7 days, newest first',
  scope: 'requests:read',
  query: z.strictObject(PAGE_FIELDS),
  page: buildPageSchema(ApiRequest, 'ApiRequestList'),
  example: { data: [SAMPLE_REQUEST] },
});

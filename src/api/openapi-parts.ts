import type { z } from 'zod';
import type { Endpoint } from '../domain/wire/endpoint';
import { SAMPLE_IDS } from '../domain/wire/samples';

export type Json = { [key: string]: unknown };

export type ToSchema = (type: z.ZodType, io: 'input' | 'output', name?: string) => Json;

const COUNT = { type: 'string', pattern: '^\\d+$' };

export const HEADERS: Json = {
  'Request-Id': {
    description: 'Names this call in logs and in `error.request_id`.',
    schema: { type: 'string' },
  },
  'Service-Version': { description: 'Date of the contract.', schema: { type: 'string' } },
  'Idempotent-Replayed': {
    description: '`true` when this is the first answer again.',
    schema: { type: 'string', const: 'true' },
  },
  'Retry-After': { description: 'Seconds.', schema: COUNT },
  'RateLimit-Limit': { description: 'Requests in a window.', schema: COUNT },
  'RateLimit-Remaining': { description: 'Requests left in this window.', schema: COUNT },
  'RateLimit-Reset': { description: 'Seconds until the window ends.', schema: COUNT },
};

export const LIMIT_HEADERS = ['RateLimit-Limit', 'RateLimit-Remaining', 'RateLimit-Reset'];
export const COMMON_HEADERS = ['Request-Id', 'Service-Version'];

export function headerRefs(...names: string[]): Json {
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}

export const WEBHOOKS = 'Webhooks';

const TAGS = [
  ['Payments', 'Take money from customers.', /^\/v1\/payments/],
  ['Refunds', 'Send it back to them.', /^\/v1\/refunds/],
  ['Disputes', 'Answer what a bank disputes.', /^\/v1\/disputes/],
  ['Payouts', 'Pay recipients out of a balance.', /^\/v1\/payout/],
  ['Balances', 'What you have, and every change of it.', /^\/v1\/balance/],
  ['Events', 'What happened, also while you were away.', /^\/v1\/events/],
  ['Webhook endpoints', 'Where events are sent.', /^\/v1\/webhook-endpoints/],
  ['Requests', 'What you sent, and what was answered.', /^\/v1\/requests/],
  ['Catalogue', 'Payment methods and their rules.', /^\/v1\/payment-methods/],
  ['Crypto', 'Crypto payments, where they are enabled.', /^\/v1\/crypto/],
  ['Sandbox', 'Let the sandbox bank and chain act.', /^\/v1\/sandbox/],
] as const;

export const TAG_LIST: readonly Json[] = [
  ...TAGS.map(([name, description]) => ({ name, description })),
  { name: WEBHOOKS, description: 'Events that are posted to you.' },
];

export function getTag(path: string): string {
  const tag = TAGS.find(([, , paths]) => paths.test(path));
  if (tag === undefined) throw new RangeError(`No tag for ${path}`);
  return tag[0];
}

interface Words {
  description: string;
  /** By default the first value of the schema. */
  example?: unknown;
}

const PARAMETERS: Readonly<Record<string, Words>> = {
  id: { description: 'Id that the service gave it.' },
  limit: { description: 'Rows of a page; 25 when left out.', example: 25 },
  status: { description: 'Only those in this state.' },
  method: { description: 'Only those by this method.' },
  reference: { description: 'Only those with exactly this reference.', example: 'order-1001' },
  payment_id: { description: 'Only those of this payment.', example: SAMPLE_IDS.payment },
  balance_account: { description: 'Only those of this balance account.', example: 'main' },
  currency: { description: 'Only those in this currency.', example: 'EUR' },
  asset: { description: 'Only those in this asset.' },
  type: { description: 'Only those of this type.' },
  resource_id: {
    description: 'Only those with this id in their data.',
    example: SAMPLE_IDS.payment,
  },
  after: {
    description:
      'Oldest first, the events after this one. The last `next_cursor` goes on from there.',
    example: SAMPLE_IDS.event,
  },
  created_before: {
    description:
      'Only those made before this time. The last `next_cursor` goes on from there: as text, since ' +
      'most date types cut its nine fractional digits.',
    example: '2026-03-01T12:34:56.789000042Z',
  },
};

/** No example: a tool that sends the same key with every body would be refused. */
const IDEMPOTENCY_KEY = {
  name: 'Idempotency-Key',
  in: 'header',
  required: true,
  description:
    'Unique per operation, valid 24 hours; a UUID does well. A retry returns the first answer.',
  schema: { type: 'string', minLength: 1, maxLength: 255, pattern: '^[\\x20-\\x7e]+$' },
};

const OWNERS = [
  ['/crypto/payments/', SAMPLE_IDS.crypto_payment],
  ['/crypto/settlements/', SAMPLE_IDS.crypto_settlement],
  ['/payments/', SAMPLE_IDS.payment],
  ['/refunds/', SAMPLE_IDS.refund],
  ['/disputes/', SAMPLE_IDS.dispute],
  ['/payouts/', SAMPLE_IDS.payout],
  ['/payout-recipients/', SAMPLE_IDS.recipient],
  ['/events/', SAMPLE_IDS.event],
  ['/webhook-endpoints/', SAMPLE_IDS.webhook_endpoint],
] as const;

export function buildParameters(endpoint: Endpoint, schema: ToSchema): Json[] {
  const [, id] = OWNERS.find(([part]) => endpoint.path.includes(part)) ?? [];
  const toParameters = (place: string, type: z.ZodObject | undefined) =>
    Object.entries(type?.shape ?? {}).map(([name, field]) => {
      const fieldSchema = schema(field, 'output');
      const words = PARAMETERS[name];
      if (words === undefined) throw new RangeError(`No words for the parameter ${name}`);
      const { description, example = name === 'id' ? id : [fieldSchema['enum']].flat()[0] } = words;
      const required = place === 'path';
      return { name, in: place, required, description, example, schema: fieldSchema };
    });
  return [
    ...toParameters('path', endpoint.params),
    ...toParameters('query', endpoint.query),
    ...(endpoint.creates ? [IDEMPOTENCY_KEY] : []),
  ];
}

import { z } from 'zod';
import { RawJson } from '../../base/json';
import { allowWords, LOGGED } from '../logged';
import { PAYMENT_METHOD_IDS } from '../payment/catalog';
import { CANCELLATIONS, PAYMENT_STATUSES } from '../payment/payment';
import { endpoint, readEndpoint } from './endpoint';
import {
  Amount,
  ById,
  Country,
  Currency,
  Email,
  Failure,
  HttpsUrl,
  Moved,
  NamePart,
  NullableText,
  OrderReference,
  optional,
  Reference,
  StoredCode,
  Timestamp,
  text,
} from './fields';
import { buildListQuery, buildPageSchema, listEndpoint } from './lists';
import { SAMPLE_IDS, SAMPLE_ORIGIN, SAMPLE_PAYMENT, SAMPLE_TOKEN, SAMPLE_UPDATED } from './samples';

const METADATA_KEYS_MAX = 50;
const METADATA_BYTES_MAX = 8 * 1_024;
const METHOD_LENGTH_MAX = 100;

/** Returned byte for byte. @see docs/api.md#metadata */
export const Metadata = z
  .instanceof(RawJson, { error: 'must be an object' })
  .refine((raw) => raw.kind === 'object' || raw.kind === 'null', 'must be an object')
  .refine((raw) => raw.keyCount <= METADATA_KEYS_MAX, `must have at most ${METADATA_KEYS_MAX} keys`)
  .refine((raw) => raw.byteLength <= METADATA_BYTES_MAX, 'must be at most 8 KiB')
  .meta({
    type: 'object',
    additionalProperties: true,
    maxProperties: METADATA_KEYS_MAX,
    description: 'Stored and returned unchanged. Never sent to the bank.',
  });

const CustomerRequest = z
  .strictObject({
    email: optional(Email),
    first_name: optional(NamePart),
    last_name: optional(NamePart),
    reference: optional(Reference),
  })
  .meta({ id: 'CustomerRequest' });

/** @see docs/api.md#create-a-payment */
export const CreatePayment = z
  .strictObject({
    method: text(METHOD_LENGTH_MAX)
      .meta({ description: 'A method id from the catalog.' })
      .register(LOGGED, allowWords(PAYMENT_METHOD_IDS)),
    amount: Amount,
    currency: Currency,
    success_url: HttpsUrl,
    error_url: HttpsUrl,
    country: optional(Country),
    reference: optional(OrderReference),
    customer: optional(CustomerRequest),
    metadata: optional(Metadata),
  })
  .meta({ id: 'CreatePayment', examples: [SAMPLE_PAYMENT] });
export type CreatePayment = z.infer<typeof CreatePayment>;

const Customer = z
  .object({
    email: NullableText,
    first_name: NullableText,
    last_name: NullableText,
    reference: NullableText,
  })
  .meta({ id: 'Customer' });

export const Payment = z
  .object({
    id: z.uuid().meta({ examples: [SAMPLE_IDS.payment] }),
    object: z.literal('payment'),
    status: z.enum(PAYMENT_STATUSES).meta({ examples: ['awaiting_customer'] }),
    amount: Amount.meta({ examples: [SAMPLE_PAYMENT.amount] }),
    currency: StoredCode.meta({ examples: [SAMPLE_PAYMENT.currency] }),
    method: z.enum(PAYMENT_METHOD_IDS).meta({ examples: [SAMPLE_PAYMENT.method] }),
    country: StoredCode.nullable().meta({ examples: [SAMPLE_PAYMENT.country] }),
    reference: NullableText.meta({ examples: [SAMPLE_PAYMENT.reference] }),
    redirect_url: z.url().meta({
      description:
        'Redirect the customer here. Opens once and expires. Do not use it in an iframe or e-mail it.',
      examples: [`${SAMPLE_ORIGIN}/pay/${SAMPLE_TOKEN}`],
    }),
    customer: Customer,
    failure: Failure.nullable(),
    livemode: z.boolean(),
    metadata: z.record(z.string(), z.unknown()),
    amount_settled: Moved.nullable().meta({ description: 'What came; null until it settles.' }),
    disputed: Moved.meta({ description: 'In disputes that are open or lost.' }),
    authorized_at: Timestamp.nullable(),
    settled_at: Timestamp.nullable(),
    cancelled_at: Timestamp.nullable(),
    created_at: Timestamp,
    updated_at: Timestamp,
  })
  .meta({ id: 'Payment' });

export const createPayment = endpoint({
  method: 'post',
  path: '/v1/payments',
  operation: 'createPayment',
  summary: 'Create a payment',
  description:
    'Responds as soon as the customer can be redirected to `redirect_url`; if the bank is slow, ' +
    'after 5 seconds, with status `created` and a `redirect_url` that works.',
  scope: 'payments:write',
  creates: true,
  raw: ['metadata'],
  body: CreatePayment,
  success: { status: 201, description: 'The payment.', schema: Payment },
  codes: ['invalid_amount', 'method_requirements_not_met'],
});

export const getPayment = readEndpoint('payment', {
  path: '/v1/payments',
  scope: 'payments:read',
  schema: Payment,
});

export const listPayments = listEndpoint({
  path: '/v1/payments',
  operation: 'listPayments',
  summary: 'List payments, newest first',
  scope: 'payments:read',
  query: buildListQuery(PAYMENT_STATUSES).extend({
    method: z.enum(PAYMENT_METHOD_IDS).optional(),
    reference: Reference.optional(),
  }),
  page: buildPageSchema(Payment, 'PaymentList'),
});

export const cancelPayment = endpoint({
  method: 'post',
  path: '/v1/payments/{id}/cancel',
  operation: 'cancelPayment',
  work: 'create',
  summary: 'Cancel a payment the customer has not paid',
  description: 'Safe to repeat: a cancelled payment is returned unchanged.',
  scope: 'payments:write',
  params: ById,
  body: z.strictObject({}),
  success: {
    status: 200,
    description: 'The cancelled payment.',
    schema: Payment,
    example: {
      ...{ status: 'cancelled', cancelled_at: SAMPLE_UPDATED, updated_at: SAMPLE_UPDATED },
      failure: CANCELLATIONS.merchant,
    },
  },
  codes: ['payment_not_found', 'cannot_cancel'],
});

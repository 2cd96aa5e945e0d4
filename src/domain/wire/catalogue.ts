import { z } from 'zod';
import { availableEntry, catalogEntry, PAYMENT_METHOD_IDS } from '../payment/catalog';
import { endpoint } from './endpoint';
import { buildListSchema } from './lists';

/** All methods would fill pages. */
const SAMPLE_METHODS = PAYMENT_METHOD_IDS.slice(0, 2);

const RefundRules = z
  .object({
    kind: z.enum(['standard', 'none', 'payout_only']),
    withinDays: z.int().min(0).meta({ description: 'Days from `settled_at`.' }),
  })
  .meta({ id: 'RefundRules' });

const CatalogEntry = z
  .object({
    method: z.enum(PAYMENT_METHOD_IDS),
    display_name: z.string(),
    currencies: z.array(z.string()),
    countries: z.array(z.string()),
    refunds: RefundRules,
    supports_recurring: z.boolean(),
    requires_redirect: z.boolean(),
    async_settlement: z.boolean(),
    required_fields: z.array(z.string()),
    chargebacks: z.boolean(),
    notes: z.string().nullable(),
  })
  .meta({ id: 'PaymentMethod' });

/** @see docs/api.md#methods */
const AvailableEntry = CatalogEntry.pick({
  method: true,
  display_name: true,
  currencies: true,
}).meta({ id: 'AvailablePaymentMethod' });
export const listPaymentMethods = endpoint({
  method: 'get',
  path: '/v1/payment-methods',
  operation: 'listPaymentMethods',
  summary: 'Every payment method and its rules',
  description: 'The same for every account, whether it can use the method or not.',
  scope: null,
  query: z.strictObject({}),
  success: {
    status: 200,
    description: 'The catalog.',
    schema: buildListSchema(CatalogEntry, 'PaymentMethodList'),
    example: { data: SAMPLE_METHODS.map(catalogEntry) },
  },
});

export const listAvailablePaymentMethods = endpoint({
  method: 'get',
  path: '/v1/payment-methods/available',
  operation: 'listAvailablePaymentMethods',
  summary: 'The methods that this account can create a payment with now',
  description: "The account's methods that a bank supports in the environment of the key.",
  scope: null,
  query: z.strictObject({}),
  success: {
    status: 200,
    description: 'The methods.',
    schema: buildListSchema(AvailableEntry, 'AvailablePaymentMethodList'),
    example: { data: SAMPLE_METHODS.map(availableEntry) },
  },
});

import { z } from 'zod';
import { PAYMENT_METHOD_IDS } from '../catalogue';
import { endpoint } from './endpoint';

const RefundRules = z
  .object({
    kind: z.enum(['standard', 'none', 'payout_only']),
    withinDays: z.int().min(0).meta({ description: 'Days from `settled_at`.' }),
  })
  .meta({ id: 'RefundRules' });

/** @see docs/api.md#methods */
const CatalogueEntry = z
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
const AvailableEntry = z
  .object({
    method: z.enum(PAYMENT_METHOD_IDS),
    display_name: z.string(),
    currencies: z.array(z.string()),
  })
  .meta({ id: 'AvailablePaymentMethod' });

function listOf<T extends z.ZodType>(item: T, id: string) {
  return z.object({ object: z.literal('list'), data: z.array(item) }).meta({ id });
}

export const listPaymentMethods = endpoint({
  method: 'get',
  path: '/v1/payment-methods',
  operation: 'listPaymentMethods',
  summary: 'Every payment method and its rules',
  description: 'Alike for every account, whether it can use the method or not.',
  scope: null,
  query: z.strictObject({}),
  success: {
    status: 200,
    description: 'The catalogue.',
    schema: listOf(CatalogueEntry, 'PaymentMethodList'),
  },
  codes: [],
});

export const listAvailablePaymentMethods = endpoint({
  method: 'get',
  path: '/v1/payment-methods/available',
  operation: 'listAvailablePaymentMethods',
  summary: 'The methods that this account can create a payment with now',
  description: 'Those that it has, and that a bank of the environment of the key serves.',
  scope: null,
  query: z.strictObject({}),
  success: {
    status: 200,
    description: 'The methods.',
    schema: listOf(AvailableEntry, 'AvailablePaymentMethodList'),
  },
  codes: [],
});

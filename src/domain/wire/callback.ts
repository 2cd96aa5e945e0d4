import { z } from 'zod';
import { isBalanceAccountName } from '../balance-account';
import {
  AMOUNT_MAX,
  CALLBACK_RESOURCES,
  type BankCallback as Callback,
  PAYMENT_CALLBACKS,
  PAYOUT_CALLBACKS,
  REFUND_CALLBACKS,
} from '../callback';

/** Payload of every bank callback, as it is published to connector teams. */
export const BankCallback = z
  .object({
    callback_id: z.string().min(1).max(200),
    occurred_at: z.iso.datetime({ offset: true }),
    bank_reference: z.string().max(200).optional(),
    code: z.string().max(100).optional(),
    reason: z.string().max(500).optional(),
    amount: z.int().min(1).max(AMOUNT_MAX).optional(),
    currency: z
      .string()
      .regex(/^[A-Z]{3}$/)
      .optional(),
    value_date: z.iso.date().optional(),
  })
  .meta({ id: 'BankCallback' }) satisfies z.ZodType<Callback>;

/** Report of a connector: the resource, and what happened to it. */
export const ResourceCallback = z.object({
  /** Name of the connector, which is part of a field's path in the ledger. */
  connector: z.string().refine(isBalanceAccountName, 'must be the name of a connector'),
  resource: z.enum(CALLBACK_RESOURCES),
  resource_id: z.uuid(),
  /** Name of a callback that the resource has. */
  name: z.enum([...PAYMENT_CALLBACKS, ...REFUND_CALLBACKS, ...PAYOUT_CALLBACKS]),
  callback: BankCallback,
});

export type ResourceCallback = z.infer<typeof ResourceCallback>;

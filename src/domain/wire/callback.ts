import { z } from 'zod';
import { isBalanceAccountName } from '../account/balance-account';
import {
  AMOUNT_MAX,
  type AnyCallback,
  BANK_RESOURCES,
  CALLBACK_RESOURCES,
  type BankCallback as Callback,
  type CallbackName,
  type CallbackResource,
  CRYPTO_RESOURCES,
  PAYMENT_CALLBACKS,
  PAYOUT_CALLBACKS,
  REFUND_CALLBACKS,
} from '../callback/callback';
import { UNITS } from '../crypto/assets';
import {
  BLOCKS_MAX,
  CRYPTO_PAYMENT_CALLBACKS,
  CRYPTO_SETTLEMENT_CALLBACKS,
  type CryptoCallback as CryptoPayload,
} from '../crypto/callback';

/** Payload of every bank callback, published to connector teams. */
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

const Count = z.int().min(0).max(BLOCKS_MAX).optional();

const CryptoCallback = z
  .object({
    callback_id: z.string().min(1).max(200),
    occurred_at: z.iso.datetime({ offset: true }),
    transaction_id: z.string().min(1).max(200).optional(),
    amount: z.string().regex(UNITS).optional(),
    confirmations: Count,
    block_number: Count,
    block_hash: z.string().min(1).max(200).optional(),
    screening: z.enum(['passed', 'failed']).optional(),
    bank_reference: z.string().max(200).optional(),
    code: z.string().max(100).optional(),
    reason: z.string().max(500).optional(),
  })
  .meta({ id: 'CryptoCallback' }) satisfies z.ZodType<CryptoPayload>;

export const CryptoReport = z.object({
  connector: z.string().refine(isBalanceAccountName, 'must be the name of a connector'),
  resource: z.enum(CRYPTO_RESOURCES),
  resource_id: z.uuid(),
  name: z.enum([...CRYPTO_PAYMENT_CALLBACKS, ...CRYPTO_SETTLEMENT_CALLBACKS]),
  callback: CryptoCallback,
});

const BankReport = z.object({
  /** Part of a field path in the ledger. */
  connector: z.string().refine(isBalanceAccountName, 'must be the name of a connector'),
  resource: z.enum(BANK_RESOURCES),
  resource_id: z.uuid(),
  name: z.enum([...PAYMENT_CALLBACKS, ...REFUND_CALLBACKS, ...PAYOUT_CALLBACKS]),
  callback: BankCallback,
});

export const ResourceCallback = z.discriminatedUnion('resource', [BankReport, CryptoReport]);

/** Wider than the schema: callers build it, and the receiver parses it. */
export interface ResourceCallback {
  connector: string;
  resource: CallbackResource;
  resource_id: string;
  name: CallbackName;
  callback: AnyCallback;
}

function buildHttpCallback<
  R extends CallbackResource,
  N extends CallbackName,
  Payload extends z.ZodRawShape,
>(resource: R, events: readonly [N, ...N[]], { shape }: z.ZodObject<Payload>) {
  return z.strictObject({
    resource: z.literal(resource),
    resource_id: z.uuid(),
    event: z.enum(events),
    ...shape,
  });
}

/** Body of a callback over HTTP. @see docs/connectors.md#callbacks-over-http */
export const HttpCallback = z.discriminatedUnion(
  'resource',
  [
    buildHttpCallback('payment', PAYMENT_CALLBACKS, BankCallback),
    buildHttpCallback('refund', REFUND_CALLBACKS, BankCallback),
    buildHttpCallback('payout', PAYOUT_CALLBACKS, BankCallback),
    buildHttpCallback('crypto_payment', CRYPTO_PAYMENT_CALLBACKS, CryptoCallback),
    buildHttpCallback('crypto_settlement', CRYPTO_SETTLEMENT_CALLBACKS, CryptoCallback),
  ],
  { error: `must be one of ${CALLBACK_RESOURCES.join(', ')}` },
);

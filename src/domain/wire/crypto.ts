import { z } from 'zod';
import { ASSET_CODES, NETWORKS, UNITS } from '../crypto';
import { CRYPTO_PAYMENT_STATUSES } from '../crypto-payment';
import { CRYPTO_SETTLEMENT_STATUSES } from '../crypto-settlement';
import { DEPOSIT_STATUSES } from '../deposit';
import { endpoint } from './endpoint';
import { Amount, ById, Currency, Failure, optional, Reference, Timestamp, text } from './fields';
import { BY_PAGES, CreatedBefore, Limit, pageOf } from './lists';
import { Metadata } from './payments';

const NAME_LENGTH_MAX = 50;

const Asset = text(NAME_LENGTH_MAX).meta({ description: `One of ${ASSET_CODES.join(', ')}.` });
const NetworkName = text(NAME_LENGTH_MAX).meta({ description: `One of ${NETWORKS.join(', ')}.` });

/** Amount of a coin, in an answer. */
const Units = z
  .string()
  .regex(/^\d+$/)
  .meta({ description: "An integer in the asset's smallest unit, as a text." });

/** Amount of a coin, in a request. */
export const AskedUnits = z
  .string()
  .regex(UNITS, "must be an integer in the asset's smallest unit, as a text");

/** @see docs/api.md#crypto */
const CreateCryptoPayment = z
  .strictObject({
    amount: Amount,
    currency: Currency,
    asset: Asset,
    network: NetworkName,
    reference: optional(Reference),
    metadata: optional(Metadata),
  })
  .meta({ id: 'CreateCryptoPayment' });
export type CreateCryptoPayment = z.infer<typeof CreateCryptoPayment>;

/** @see docs/api.md#states-of-a-crypto-payment */
const Deposit = z
  .object({
    transaction_id: z.string(),
    amount: Units,
    confirmations: z.int().min(0),
    required_confirmations: z.int().min(1),
    status: z.enum(DEPOSIT_STATUSES),
    seen_at: Timestamp,
  })
  .meta({ id: 'CryptoDeposit' });

const pair = { asset: z.enum(ASSET_CODES), network: z.enum(NETWORKS) };

/** @see docs/api.md#crypto */
export const CryptoPayment = z
  .object({
    id: z.uuid(),
    object: z.literal('crypto_payment'),
    status: z.enum(CRYPTO_PAYMENT_STATUSES),
    amount: Amount,
    currency: z.string(),
    ...pair,
    amount_due: Units,
    amount_received: Units.meta({ description: 'Confirmed deposits that count.' }),
    address: z.string(),
    payment_uri: z.string().meta({ description: 'BIP-21 or EIP-681, for wallets.' }),
    redirect_url: z.string().meta({ format: 'uri', description: "The payer's page." }),
    deposits: z.array(Deposit),
    reference: z.string().nullable(),
    livemode: z.boolean(),
    metadata: z.record(z.string(), z.unknown()),
    expires_at: Timestamp,
    received_at: Timestamp.nullable(),
    created_at: Timestamp,
    updated_at: Timestamp,
  })
  .meta({ id: 'CryptoPayment' });

/** @see docs/api.md#settlements */
export const CreateCryptoSettlement = z
  .strictObject({
    asset: Asset,
    network: NetworkName,
    amount: optional(
      AskedUnits.meta({ description: 'Smallest units; left out: the whole balance.' }),
    ),
  })
  .meta({ id: 'CreateCryptoSettlement' });
export type CreateCryptoSettlement = z.infer<typeof CreateCryptoSettlement>;

/** @see docs/api.md#settlements */
export const CryptoSettlement = z
  .object({
    id: z.uuid(),
    object: z.literal('crypto_settlement'),
    status: z.enum(CRYPTO_SETTLEMENT_STATUSES),
    ...pair,
    amount: Units,
    fee: Units,
    wallet_address: z.string(),
    transaction_id: z.string().nullable(),
    failure: Failure.nullable(),
    livemode: z.boolean(),
    created_at: Timestamp,
    completed_at: Timestamp.nullable(),
  })
  .meta({ id: 'CryptoSettlement' });

export const createCryptoPayment = endpoint({
  method: 'post',
  path: '/v1/crypto/payments',
  operation: 'createCryptoPayment',
  summary: 'Take a payment in a coin',
  description: 'The rate is fixed for the window, and the address is of this payment alone.',
  scope: 'crypto:write',
  crypto: true,
  creates: true,
  raw: ['metadata'],
  body: CreateCryptoPayment,
  success: { status: 201, description: 'The crypto payment.', schema: CryptoPayment },
  codes: ['invalid_amount', 'crypto_not_enabled', 'asset_not_supported', 'asset_not_available'],
});

export const getCryptoPayment = endpoint({
  method: 'get',
  path: '/v1/crypto/payments/{id}',
  operation: 'getCryptoPayment',
  summary: 'Read a crypto payment',
  description: 'For reconciliation, not for polling: webhooks tell of every change of state.',
  scope: 'crypto:read',
  crypto: true,
  params: ById,
  success: { status: 200, description: 'The crypto payment.', schema: CryptoPayment },
  codes: ['crypto_not_enabled', 'crypto_payment_not_found'],
});

export const listCryptoPayments = endpoint({
  method: 'get',
  path: '/v1/crypto/payments',
  operation: 'listCryptoPayments',
  summary: 'List crypto payments, newest first',
  description: BY_PAGES,
  scope: 'crypto:read',
  crypto: true,
  query: z.strictObject({
    limit: Limit,
    status: z.enum(CRYPTO_PAYMENT_STATUSES).optional(),
    created_before: CreatedBefore,
  }),
  success: {
    status: 200,
    description: 'A page.',
    schema: pageOf(CryptoPayment, 'CryptoPaymentList'),
  },
  codes: ['crypto_not_enabled', 'invalid_cursor'],
});

export const createCryptoSettlement = endpoint({
  method: 'post',
  path: '/v1/crypto/settlements',
  operation: 'createCryptoSettlement',
  summary: 'Pay a balance out to the registered wallet',
  description: 'Balances are paid out daily by themselves; this asks for it now.',
  scope: 'crypto:write',
  crypto: true,
  creates: true,
  body: CreateCryptoSettlement,
  success: { status: 201, description: 'The settlement.', schema: CryptoSettlement },
  codes: [
    'invalid_amount',
    'crypto_not_enabled',
    'asset_not_supported',
    'asset_not_available',
    'wallet_not_registered',
    'insufficient_balance',
  ],
});

export const getCryptoSettlement = endpoint({
  method: 'get',
  path: '/v1/crypto/settlements/{id}',
  operation: 'getCryptoSettlement',
  summary: 'Read a settlement',
  description: 'For reconciliation, not for polling: webhooks tell of every end.',
  scope: 'crypto:read',
  crypto: true,
  params: ById,
  success: { status: 200, description: 'The settlement.', schema: CryptoSettlement },
  codes: ['crypto_not_enabled', 'crypto_settlement_not_found'],
});

export const listCryptoSettlements = endpoint({
  method: 'get',
  path: '/v1/crypto/settlements',
  operation: 'listCryptoSettlements',
  summary: 'List settlements, newest first',
  description: BY_PAGES,
  scope: 'crypto:read',
  crypto: true,
  query: z.strictObject({
    limit: Limit,
    status: z.enum(CRYPTO_SETTLEMENT_STATUSES).optional(),
    created_before: CreatedBefore,
  }),
  success: {
    status: 200,
    description: 'A page.',
    schema: pageOf(CryptoSettlement, 'CryptoSettlementList'),
  },
  codes: ['crypto_not_enabled', 'invalid_cursor'],
});

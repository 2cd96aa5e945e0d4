import { z } from 'zod';
import { ASSET_CODES, NETWORKS, UNITS } from '../crypto/assets';
import { DEPOSIT_STATUSES } from '../crypto/deposit';
import { CRYPTO_PAYMENT_STATUSES } from '../crypto/payment';
import { CRYPTO_SETTLEMENT_STATUSES } from '../crypto/settlement';
import { LOGGED, WHOLE } from '../logged';
import { endpoint, readEndpoint } from './endpoint';
import {
  Amount,
  Currency,
  Failure,
  NullableText,
  OrderReference,
  optional,
  StoredCode,
  Timestamp,
  text,
} from './fields';
import { buildListQuery, buildPageSchema, listEndpoint } from './lists';
import { Metadata } from './payments';
import { SAMPLE_ADDRESS, SAMPLE_IDS, SAMPLE_ORIGIN, SAMPLE_TOKEN, SAMPLE_UNITS } from './samples';

const NAME_LENGTH_MAX = 50;

const Asset = text(NAME_LENGTH_MAX).meta({ description: `One of ${ASSET_CODES.join(', ')}.` });
const NetworkName = text(NAME_LENGTH_MAX).meta({ description: `One of ${NETWORKS.join(', ')}.` });

const Units = z
  .string()
  .regex(/^\d+$/)
  .meta({
    description: "An integer in the asset's smallest unit, as a string.",
    examples: [SAMPLE_UNITS],
  })
  .register(LOGGED, WHOLE);

export const RequestUnits = z
  .string()
  .regex(UNITS, "must be an integer in the asset's smallest unit, as a text");

/** @see docs/api.md#crypto */
const CreateCryptoPayment = z
  .strictObject({
    amount: Amount,
    currency: Currency,
    asset: Asset,
    network: NetworkName,
    reference: optional(OrderReference),
    metadata: optional(Metadata),
  })
  .meta({
    id: 'CreateCryptoPayment',
    examples: [
      {
        amount: 10_000,
        currency: 'EUR',
        asset: 'ETH',
        network: 'ethereum',
        reference: 'order-1001',
      },
    ],
  });
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

const pair = {
  asset: z.enum(ASSET_CODES).meta({ examples: ['ETH'] }),
  network: z.enum(NETWORKS).meta({ examples: ['ethereum'] }),
};

export const CryptoPayment = z
  .object({
    id: z.uuid().meta({ examples: [SAMPLE_IDS.crypto_payment] }),
    object: z.literal('crypto_payment'),
    status: z.enum(CRYPTO_PAYMENT_STATUSES).meta({ examples: ['awaiting_deposit'] }),
    amount: Amount.meta({ examples: [10_000] }),
    currency: StoredCode.meta({ examples: ['EUR'] }),
    ...pair,
    amount_due: Units,
    amount_received: Units.meta({ description: 'Confirmed deposits that count.', examples: ['0'] }),
    address: z.string().meta({ examples: [SAMPLE_ADDRESS] }),
    payment_uri: z.string().meta({
      description: 'BIP-21 or EIP-681, for wallets.',
      examples: [`ethereum:${SAMPLE_ADDRESS}@1?value=${SAMPLE_UNITS}`],
    }),
    redirect_url: z.string().meta({
      ...{ format: 'uri', description: "The payer's page." },
      examples: [`${SAMPLE_ORIGIN}/pay/crypto/${SAMPLE_TOKEN}`],
    }),
    deposits: z.array(Deposit).meta({ examples: [[]] }),
    reference: NullableText.meta({ examples: ['order-1001'] }),
    livemode: z.boolean(),
    metadata: z.record(z.string(), z.unknown()),
    expires_at: Timestamp.meta({ examples: ['2026-03-01T13:04:56.789Z'] }),
    received_at: Timestamp.nullable(),
    created_at: Timestamp,
    updated_at: Timestamp,
  })
  .meta({ id: 'CryptoPayment' });

export const CreateCryptoSettlement = z
  .strictObject({
    asset: Asset,
    network: NetworkName,
    amount: optional(
      RequestUnits.meta({ description: 'Smallest units. Default: the whole balance.' }),
    ),
  })
  .meta({ id: 'CreateCryptoSettlement', examples: [{ asset: 'ETH', network: 'ethereum' }] });
export type CreateCryptoSettlement = z.infer<typeof CreateCryptoSettlement>;

/** @see docs/api.md#settlements */
export const CryptoSettlement = z
  .object({
    id: z.uuid().meta({ examples: [SAMPLE_IDS.crypto_settlement] }),
    object: z.literal('crypto_settlement'),
    status: z.enum(CRYPTO_SETTLEMENT_STATUSES).meta({ examples: ['pending'] }),
    ...pair,
    amount: Units,
    fee: Units.meta({ examples: ['0'] }),
    wallet_address: z.string().meta({ examples: [SAMPLE_ADDRESS] }),
    transaction_id: NullableText,
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
  summary: 'Create a crypto payment',
  description: 'The rate is fixed for the window. The address is used for this payment only.',
  scope: 'crypto:write',
  crypto: true,
  creates: true,
  raw: ['metadata'],
  body: CreateCryptoPayment,
  success: { status: 201, description: 'The crypto payment.', schema: CryptoPayment },
  codes: ['invalid_amount', 'asset_not_supported', 'asset_not_available'],
});

export const getCryptoPayment = readEndpoint('crypto_payment', {
  path: '/v1/crypto/payments',
  scope: 'crypto:read',
  schema: CryptoPayment,
  crypto: true,
  changes: 'every change of state',
});

export const listCryptoPayments = listEndpoint({
  path: '/v1/crypto/payments',
  operation: 'listCryptoPayments',
  summary: 'List crypto payments, newest first',
  scope: 'crypto:read',
  crypto: true,
  query: buildListQuery(CRYPTO_PAYMENT_STATUSES),
  page: buildPageSchema(CryptoPayment, 'CryptoPaymentList'),
  codes: ['invalid_cursor'],
});

export const createCryptoSettlement = endpoint({
  method: 'post',
  path: '/v1/crypto/settlements',
  operation: 'createCryptoSettlement',
  summary: 'Pay a balance out to the registered wallet',
  description: 'Balances are paid out automatically every day; this pays out now.',
  scope: 'crypto:write',
  crypto: true,
  creates: true,
  body: CreateCryptoSettlement,
  success: { status: 201, description: 'The settlement.', schema: CryptoSettlement },
  codes: [
    'invalid_amount',
    'asset_not_supported',
    'asset_not_available',
    'wallet_not_registered',
    'method_requirements_not_met',
    'insufficient_balance',
  ],
});

export const getCryptoSettlement = readEndpoint('crypto_settlement', {
  path: '/v1/crypto/settlements',
  scope: 'crypto:read',
  schema: CryptoSettlement,
  name: 'settlement',
  crypto: true,
  changes: 'every final state',
});

export const listCryptoSettlements = listEndpoint({
  path: '/v1/crypto/settlements',
  operation: 'listCryptoSettlements',
  summary: 'List settlements, newest first',
  scope: 'crypto:read',
  crypto: true,
  query: buildListQuery(CRYPTO_SETTLEMENT_STATUSES),
  page: buildPageSchema(CryptoSettlement, 'CryptoSettlementList'),
  codes: ['invalid_cursor'],
});

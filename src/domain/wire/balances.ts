import { z } from 'zod';
import { ASSET_CODES, NETWORKS } from '../crypto/assets';
import { BALANCE_TRANSACTION_TYPES, isBalanceAccountName } from '../money/money';
import { endpoint } from './endpoint';
import { Currency, Timestamp } from './fields';
import { buildListSchema, buildPageSchema, listEndpoint, PAGE_FIELDS } from './lists';
import { SAMPLE_CREATED, SAMPLE_IDS } from './samples';

const inCurrency = { currency: z.string().meta({ description: 'ISO 4217.' }) };
const inAsset = { asset: z.enum(ASSET_CODES), network: z.enum(NETWORKS) };

const Minor = z.int().meta({ description: 'Minor units.' });
const Units = z
  .string()
  .regex(/^-?\d+$/)
  .meta({ description: "An integer in the asset's smallest unit, as a string." });

const ProvedUntil = z.iso
  .date()
  .nullable()
  .meta({ description: "Last day until which our banks' statements prove it." });

function buildBalance(of: z.ZodRawShape, amount: z.ZodType) {
  return z.object({
    object: z.literal('balance'),
    balance_account: z.string(),
    ...of,
    available: amount,
    reserved: amount,
    pending: amount,
    owed: amount,
    proved_until: ProvedUntil,
  });
}

/** @see docs/api.md#balances */
const Balance = z.union([
  buildBalance(inCurrency, Minor).meta({ id: 'CurrencyBalance' }),
  buildBalance(inAsset, Units).meta({ id: 'AssetBalance' }),
]);

const Source = z
  .object({
    object: z.string().meta({ description: 'A kind of resource, `funding` or `adjustment`.' }),
    id: z.string(),
  })
  .meta({ id: 'BalanceTransactionSource' });

function buildTransaction(of: z.ZodRawShape, amount: z.ZodType) {
  return z.object({
    id: z.string(),
    object: z.literal('balance_transaction'),
    type: z.enum(BALANCE_TRANSACTION_TYPES),
    balance_account: z.string(),
    ...of,
    amount,
    fee: amount,
    net: amount,
    available_on: Timestamp,
    source: Source,
    created_at: Timestamp,
  });
}

/** @see docs/api.md#balances */
const BalanceTransaction = z.union([
  buildTransaction(inCurrency, Minor).meta({ id: 'CurrencyBalanceTransaction' }),
  buildTransaction(inAsset, Units).meta({ id: 'AssetBalanceTransaction' }),
]);

const SAMPLE_BALANCE = {
  ...{ object: 'balance', balance_account: 'main', currency: 'EUR' },
  ...{ available: 9_500, reserved: 0, pending: 0, owed: 0, proved_until: '2026-11-27' },
};
const SAMPLE_TRANSACTION = {
  id: 'txn_3b7c1d9e-52f4-8a06-9c1b-7e0f4d2a6c99',
  object: 'balance_transaction',
  type: 'payout',
  ...{ balance_account: 'main', currency: 'EUR', amount: -1000, fee: 25, net: -1025 },
  available_on: SAMPLE_CREATED,
  source: { object: 'payout', id: SAMPLE_IDS.payout },
  created_at: SAMPLE_CREATED,
};

export const listBalances = endpoint({
  method: 'get',
  path: '/v1/balances',
  operation: 'listBalances',
  summary: 'Every balance',
  description: 'By balance account and currency or asset.',
  scope: 'balances:read',
  query: z.strictObject({}),
  success: {
    status: 200,
    description: 'The balances.',
    schema: buildListSchema(Balance, 'BalanceList'),
    example: { data: [SAMPLE_BALANCE] },
  },
});

const BalanceTransactionQuery = z.strictObject({
  ...PAGE_FIELDS,
  balance_account: z
    .string()
    .refine(isBalanceAccountName, 'must be the name of a balance account')
    .optional(),
  currency: Currency.optional(),
  asset: z.enum(ASSET_CODES).optional(),
  type: z.enum(BALANCE_TRANSACTION_TYPES).optional(),
});
export type BalanceTransactionQuery = z.output<typeof BalanceTransactionQuery>;

export const listBalanceTransactions = listEndpoint({
  path: '/v1/balance_transactions',
  operation: 'listBalanceTransactions',
  summary: 'List the changes of your balances, newest first',
  scope: 'balances:read',
  query: BalanceTransactionQuery,
  page: buildPageSchema(BalanceTransaction, 'BalanceTransactionList'),
  example: { data: [SAMPLE_TRANSACTION] },
});

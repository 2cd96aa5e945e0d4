import { z } from 'zod';
import {
  AMOUNT_MAX,
  type AnyCallback,
  AVAILABLE_TOO_LATE,
  BANK_RESOURCES,
  CALLBACKS,
  type BankCallback as Callback,
  type CallbackName,
  type CallbackResource,
  CRYPTO_RESOURCES,
  isAvailableTooLate,
  MONEYLESS,
  PAYEE_RESULTS,
} from '../banks/callback';
import { ASSET_CODES, UNITS } from '../crypto/assets';
import { BLOCKS_MAX, type CryptoCallback as CryptoPayload, FEE_UNITS } from '../crypto/callback';
import { DISPUTE_IN_FLIGHT } from '../dispute/dispute';
import { isBalanceAccountName } from '../money/money';
import { BANK_REFERENCE, BANK_REFERENCE_FAULT, IDENTIFIER, IDENTIFIER_FAULT } from '../shape';
import { Currency } from './fields';

const CallbackId = z.string().regex(IDENTIFIER, IDENTIFIER_FAULT);
const BankReference = z.string().regex(BANK_REFERENCE, BANK_REFERENCE_FAULT);

const LATE_FAULT = { path: ['available_on'], error: AVAILABLE_TOO_LATE };

/** Published to connector teams. */
export const BankCallback = z
  .object({
    callback_id: CallbackId,
    occurred_at: z.iso.datetime({ offset: true }),
    bank_reference: BankReference.optional(),
    code: z.string().max(100).optional(),
    reason: z.string().max(500).optional(),
    amount: z.int().min(0).max(AMOUNT_MAX).optional(),
    currency: Currency.optional(),
    value_date: z.iso.date().optional(),
    available_on: z.iso.date().optional(),
    dispute_id: z.string().min(1).max(200).optional(),
    dispute_status: z.enum(DISPUTE_IN_FLIGHT).optional(),
    evidence_due_at: z.iso.datetime({ offset: true }).optional(),
    fee: z.int().min(0).max(AMOUNT_MAX).optional(),
    result: z.enum(PAYEE_RESULTS).optional(),
  })
  .refine((callback) => !isAvailableTooLate(callback), LATE_FAULT)
  .meta({ id: 'BankCallback' }) satisfies z.ZodType<Callback>;

const Count = z.int().min(0).max(BLOCKS_MAX).optional();

const CryptoCallback = z
  .object({
    callback_id: CallbackId,
    occurred_at: z.iso.datetime({ offset: true }),
    transaction_id: z.string().min(1).max(200).optional(),
    amount: z.string().regex(UNITS).optional(),
    confirmations: Count,
    mined_at: z.iso.datetime({ offset: true }).optional(),
    block_number: Count,
    block_hash: z.string().min(1).max(200).optional(),
    screening: z.enum(['passed', 'failed']).optional(),
    asset: z.enum(ASSET_CODES).optional(),
    network_fee: z.string().regex(FEE_UNITS).optional(),
    bank_reference: BankReference.optional(),
    code: z.string().max(100).optional(),
    reason: z.string().max(500).optional(),
  })
  .meta({ id: 'CryptoCallback' }) satisfies z.ZodType<CryptoPayload>;

const ResourceId = z.uuid().toLowerCase();

/** Part of a field path in the ledger. */
const Connector = z.string().refine(isBalanceAccountName, 'must be the name of a connector');

export const CryptoReport = z.object({
  connector: Connector,
  resource: z.enum(CRYPTO_RESOURCES),
  resource_id: ResourceId,
  name: z.enum(CRYPTO_RESOURCES.flatMap((kind) => CALLBACKS[kind])),
  callback: CryptoCallback,
});

const NO_MONEY = 'must be at least 1';

/** Only a dispute can be about no money. */
function namesMoney(name: string, { amount }: { amount?: unknown }): boolean {
  return amount !== 0 || MONEYLESS.includes(name);
}

/** Part of what settles; the fee of a dispute is taken besides its amount. */
function isFeeWithin(name: string, { amount = AMOUNT_MAX, fee = 0 }: Partial<Callback>): boolean {
  return name !== 'settled' || fee <= amount;
}

const FEE_FAULT = { path: ['fee'], message: 'must be at most the amount' };

const BankReport = z
  .object({
    connector: Connector,
    resource: z.enum(BANK_RESOURCES),
    resource_id: ResourceId,
    name: z.enum(BANK_RESOURCES.flatMap((kind) => CALLBACKS[kind])),
    callback: BankCallback,
  })
  .refine(({ name, callback }) => namesMoney(name, callback), {
    path: ['callback', 'amount'],
    error: NO_MONEY,
  })
  .refine(({ name, callback }) => isFeeWithin(name, callback), FEE_FAULT);

export const ResourceCallback = z.discriminatedUnion('resource', [BankReport, CryptoReport]);

/** Wider than the schema: callers build it, the receiver parses it. */
export interface ResourceCallback {
  connector: string;
  resource: CallbackResource;
  resource_id: string;
  name: CallbackName;
  callback: AnyCallback;
}

function buildHttpCallback<Payload extends z.ZodRawShape>(
  resource: CallbackResource,
  { shape }: z.ZodObject<Payload>,
) {
  return z.strictObject({
    resource: z.literal(resource),
    resource_id: ResourceId,
    event: z.enum(CALLBACKS[resource]),
    ...shape,
  });
}

const [first, ...others] = BANK_RESOURCES;

/** @see docs/connectors.md#callbacks-over-http */
export const HttpCallback = z
  .discriminatedUnion(
    'resource',
    [
      buildHttpCallback(first, BankCallback),
      ...others.map((kind) => buildHttpCallback(kind, BankCallback)),
      ...CRYPTO_RESOURCES.map((kind) => buildHttpCallback(kind, CryptoCallback)),
    ],
    { error: `must be one of ${[...BANK_RESOURCES, ...CRYPTO_RESOURCES].join(', ')}` },
  )
  .refine(({ event, ...callback }) => namesMoney(event, callback), {
    path: ['amount'],
    error: NO_MONEY,
  })
  .refine((report) => !('fee' in report) || isFeeWithin(report.event, report), FEE_FAULT)
  .refine((report) => !('available_on' in report) || !isAvailableTooLate(report), LATE_FAULT);

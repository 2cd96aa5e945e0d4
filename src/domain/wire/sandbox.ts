import { z } from 'zod';
import {
  AMOUNT_MAX,
  type BankResource,
  CALLBACKS,
  MONEYLESS,
  PAYEE_RESULTS,
} from '../banks/callback';
import { SIMULATED_DEPOSITS } from '../crypto/simulation';
import { DISPUTE_IN_FLIGHT } from '../dispute/dispute';
import { CryptoPayment, CryptoSettlement, RequestUnits } from './crypto';
import { endpoint } from './endpoint';
import { ById, Moved, optional, text } from './fields';
import { Payment } from './payments';
import { Payout } from './payouts';
import { Refund } from './refunds';
import { SAMPLE_TRANSACTION, SAMPLE_UNITS, SAMPLE_UPDATED } from './samples';

const CODE_LENGTH_MAX = 100;
const REASON_LENGTH_MAX = 500;
const TRANSACTION_LENGTH_MAX = 200;
const DISPUTE_LENGTH_MAX = 200;
const CONFIRMATIONS_MAX = 1_000;

/** @param event of the example, whose resource has the state of this name */
function buildReportSchema<const Names extends readonly string[]>(events: Names, event: unknown) {
  return z
    .strictObject({
      event: z.enum(events),
      code: optional(text(CODE_LENGTH_MAX)),
      reason: optional(text(REASON_LENGTH_MAX)),
    })
    .meta({ examples: [{ event }] });
}

function describeSimulation(resource: string): string {
  return (
    `Sandbox keys only. The event is processed like a real bank callback; the response is the ` +
    `${resource} after it. An event that no longer applies leaves the ${resource} unchanged.`
  );
}

const REPORT_SCHEMAS = {
  payment: (event: unknown) =>
    buildReportSchema(CALLBACKS.payment, event)
      .extend({
        dispute_id: optional(text(DISPUTE_LENGTH_MAX).min(1)),
        amount: optional(Moved.max(AMOUNT_MAX)),
        dispute_status: optional(z.enum(DISPUTE_IN_FLIGHT)),
        fee: optional(z.int().min(0).max(AMOUNT_MAX)),
      })
      .refine(
        ({ event: name, dispute_id, amount, fee }) =>
          name.startsWith('dispute_') ||
          ((dispute_id ?? amount) == null && (fee == null || name === 'settled')),
        {
          path: ['event'],
          message: 'dispute_id, amount and fee are for disputes only, fee for settled, too',
        },
      )
      .refine(({ event: name, amount }) => amount !== 0 || MONEYLESS.includes(name), {
        path: ['amount'],
        message: 'must be at least 1',
      })
      .meta({ examples: [{ event }] }),
  refund: (event: unknown) => buildReportSchema(CALLBACKS.refund, event),
  payout: (event: unknown) =>
    buildReportSchema(CALLBACKS.payout, event)
      .extend({ result: optional(z.enum(PAYEE_RESULTS)) })
      .refine(({ event: name, result }) => (name === 'payee_verified') === (result != null), {
        path: ['result'],
        message: 'is required for payee_verified, and for nothing else',
      })
      .meta({ examples: [{ event }] }),
} satisfies Record<BankResource, (event: unknown) => z.ZodType>;

function simulateBank<Noun extends BankResource>(
  noun: Noun,
  schema: z.ZodType,
  example: Record<string, unknown>,
) {
  return endpoint({
    method: 'post',
    path: `/v1/sandbox/${noun}s/{id}/simulate`,
    operation: `simulate${noun.charAt(0).toUpperCase()}${noun.slice(1)}`,
    summary: `Let the sandbox bank report something about a ${noun}`,
    description: describeSimulation(noun),
    scope: `${noun}s:write`,
    work: 'simulation',
    params: ById,
    body: REPORT_SCHEMAS[noun](example['status']),
    success: { status: 200, description: `The ${noun} after the event.`, schema, example },
    codes: [`${noun}_not_found`],
  });
}

/** @see docs/decisions.md#sandbox */
export const simulatePayment = simulateBank('payment', Payment, {
  status: 'authorized',
  authorized_at: SAMPLE_UPDATED,
  updated_at: SAMPLE_UPDATED,
});

export const simulateRefund = simulateBank('refund', Refund, {
  status: 'settled',
  amount_settled: 500,
  settled_at: SAMPLE_UPDATED,
});

export const simulatePayout = simulateBank('payout', Payout, {
  status: 'completed',
  completed_at: SAMPLE_UPDATED,
});

export const simulateCryptoPayment = endpoint({
  method: 'post',
  path: '/v1/sandbox/crypto/payments/{id}/simulate',
  operation: 'simulateCryptoPayment',
  summary: 'Let the sandbox chain report something about a crypto payment',
  description: describeSimulation('crypto payment'),
  scope: 'crypto:write',
  crypto: true,
  work: 'simulation',
  params: ById,
  body: z
    .strictObject({
      event: optional(z.enum(SIMULATED_DEPOSITS)),
      amount: optional(RequestUnits),
      confirmations: optional(z.int().min(0).max(CONFIRMATIONS_MAX)),
      transaction_id: optional(text(TRANSACTION_LENGTH_MAX).min(1)),
      code: optional(text(CODE_LENGTH_MAX)),
      reason: optional(text(REASON_LENGTH_MAX)),
    })
    .refine(({ event, amount, transaction_id }) => event ?? amount ?? transaction_id, {
      path: ['event'],
      message: 'send the event, or the amount of a deposit',
    })
    .meta({ examples: [{ event: 'received' }] }),
  success: {
    status: 200,
    description: 'The crypto payment after it.',
    schema: CryptoPayment,
    example: {
      ...{ status: 'received', amount_received: SAMPLE_UNITS },
      ...{ received_at: SAMPLE_UPDATED, updated_at: SAMPLE_UPDATED },
      deposits: [
        {
          ...{ transaction_id: SAMPLE_TRANSACTION, amount: SAMPLE_UNITS, status: 'confirmed' },
          ...{ confirmations: 3, required_confirmations: 3, seen_at: SAMPLE_UPDATED },
        },
      ],
    },
  },
  codes: ['crypto_payment_not_found'],
});

export const simulateCryptoSettlement = endpoint({
  method: 'post',
  path: '/v1/sandbox/crypto/settlements/{id}/simulate',
  operation: 'simulateCryptoSettlement',
  summary: 'Let the sandbox chain report something about a settlement',
  description: describeSimulation('settlement'),
  scope: 'crypto:write',
  crypto: true,
  work: 'simulation',
  params: ById,
  body: buildReportSchema(CALLBACKS.crypto_settlement, 'completed'),
  success: {
    status: 200,
    description: 'The settlement after it.',
    schema: CryptoSettlement,
    example: {
      status: 'completed',
      transaction_id: SAMPLE_TRANSACTION,
      completed_at: SAMPLE_UPDATED,
    },
  },
  codes: ['crypto_settlement_not_found'],
});

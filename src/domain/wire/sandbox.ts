import { z } from 'zod';
import { PAYMENT_CALLBACKS, PAYOUT_CALLBACKS, REFUND_CALLBACKS } from '../callback/callback';
import { CRYPTO_SETTLEMENT_CALLBACKS } from '../crypto/callback';
import { SIMULATED_DEPOSITS } from '../crypto/simulation';
import { CryptoPayment, CryptoSettlement, RequestUnits } from './crypto';
import { endpoint } from './endpoint';
import { ById, optional, text } from './fields';
import { Payment } from './payments';
import { Payout } from './payouts';
import { Refund } from './refunds';
import { SAMPLE_TRANSACTION, SAMPLE_UNITS, SAMPLE_UPDATED } from './samples';

const CODE_LENGTH_MAX = 100;
const REASON_LENGTH_MAX = 500;
const TRANSACTION_LENGTH_MAX = 200;
const CONFIRMATIONS_MAX = 1_000;

function buildReportSchema<const Names extends readonly string[]>(events: Names) {
  return z.strictObject({
    event: z.enum(events),
    code: optional(text(CODE_LENGTH_MAX)),
    reason: optional(text(REASON_LENGTH_MAX)),
  });
}

function describeSimulation(resource: string): string {
  return (
    `Sandbox keys only. The event is processed like a real bank callback; the response is the ` +
    `${resource} after it. An event that no longer applies leaves the ${resource} unchanged.`
  );
}

/** @see docs/decisions.md#sandbox */
export const simulatePayment = endpoint({
  method: 'post',
  path: '/v1/sandbox/payments/{id}/simulate',
  operation: 'simulatePayment',
  summary: 'Let the sandbox bank report something about a payment',
  description: describeSimulation('payment'),
  scope: 'payments:write',
  params: ById,
  body: buildReportSchema(PAYMENT_CALLBACKS),
  success: {
    status: 200,
    description: 'The payment after the event.',
    schema: Payment,
    example: { status: 'authorized', authorized_at: SAMPLE_UPDATED, updated_at: SAMPLE_UPDATED },
  },
  codes: ['payment_not_found'],
});

export const simulateRefund = endpoint({
  method: 'post',
  path: '/v1/sandbox/refunds/{id}/simulate',
  operation: 'simulateRefund',
  summary: 'Let the sandbox bank report something about a refund',
  description: describeSimulation('refund'),
  scope: 'refunds:write',
  params: ById,
  body: buildReportSchema(REFUND_CALLBACKS),
  success: {
    status: 200,
    description: 'The refund after the event.',
    schema: Refund,
    example: { status: 'settled', settled_at: SAMPLE_UPDATED },
  },
  codes: ['refund_not_found'],
});

export const simulatePayout = endpoint({
  method: 'post',
  path: '/v1/sandbox/payouts/{id}/simulate',
  operation: 'simulatePayout',
  summary: 'Let the sandbox bank report something about a payout',
  description: describeSimulation('payout'),
  scope: 'payouts:write',
  params: ById,
  body: buildReportSchema(PAYOUT_CALLBACKS),
  success: {
    status: 200,
    description: 'The payout after the event.',
    schema: Payout,
    example: { status: 'completed', completed_at: SAMPLE_UPDATED },
  },
  codes: ['payout_not_found'],
});

export const simulateCryptoPayment = endpoint({
  method: 'post',
  path: '/v1/sandbox/crypto/payments/{id}/simulate',
  operation: 'simulateCryptoPayment',
  summary: 'Let the sandbox chain report something about a crypto payment',
  description: describeSimulation('crypto payment'),
  scope: 'crypto:write',
  crypto: true,
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
    }),
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
  codes: ['crypto_not_enabled', 'crypto_payment_not_found'],
});

export const simulateCryptoSettlement = endpoint({
  method: 'post',
  path: '/v1/sandbox/crypto/settlements/{id}/simulate',
  operation: 'simulateCryptoSettlement',
  summary: 'Let the sandbox chain report something about a settlement',
  description: describeSimulation('settlement'),
  scope: 'crypto:write',
  crypto: true,
  params: ById,
  body: buildReportSchema(CRYPTO_SETTLEMENT_CALLBACKS),
  success: {
    status: 200,
    description: 'The settlement after it.',
    schema: CryptoSettlement,
    example: {
      ...{ status: 'completed', transaction_id: SAMPLE_TRANSACTION, completed_at: SAMPLE_UPDATED },
    },
  },
  codes: ['crypto_not_enabled', 'crypto_settlement_not_found'],
});

import { z } from 'zod';
import { PAYMENT_CALLBACKS, PAYOUT_CALLBACKS, REFUND_CALLBACKS } from '../callback';
import { CRYPTO_SETTLEMENT_CALLBACKS } from '../crypto-callback';
import { SIMULATED_DEPOSITS } from '../crypto-simulation';
import { AskedUnits, CryptoPayment, CryptoSettlement } from './crypto';
import { endpoint } from './endpoint';
import { ById, optional, text } from './fields';
import { Payment } from './payments';
import { Payout } from './payouts';
import { Refund } from './refunds';

const CODE_LENGTH_MAX = 100;
const REASON_LENGTH_MAX = 500;
const TRANSACTION_LENGTH_MAX = 200;
const CONFIRMATIONS_MAX = 1_000;

/** Report that the sandbox bank is to make: one of the resource's own events. */
function report<const Names extends readonly string[]>(events: Names) {
  return z.strictObject({
    event: z.enum(events),
    code: optional(text(CODE_LENGTH_MAX)),
    reason: optional(text(REASON_LENGTH_MAX)),
  });
}

/** Description of the operation, alike for every resource. */
function describe(resource: string): string {
  return (
    `Sandbox keys only. The event takes the way of a real bank callback; the answer is the ${resource} ` +
    `after it. What the ${resource} cannot do any more leaves it unchanged, as with a real bank.`
  );
}

/** @see docs/decisions.md#sandbox */
export const simulatePayment = endpoint({
  method: 'post',
  path: '/v1/sandbox/payments/{id}/simulate',
  operation: 'simulatePayment',
  summary: 'Let the sandbox bank report something about a payment',
  description: describe('payment'),
  scope: 'payments:write',
  params: ById,
  body: report(PAYMENT_CALLBACKS),
  success: { status: 200, description: 'The payment after the event.', schema: Payment },
  codes: ['payment_not_found'],
});

export const simulateRefund = endpoint({
  method: 'post',
  path: '/v1/sandbox/refunds/{id}/simulate',
  operation: 'simulateRefund',
  summary: 'Let the sandbox bank report something about a refund',
  description: describe('refund'),
  scope: 'refunds:write',
  params: ById,
  body: report(REFUND_CALLBACKS),
  success: { status: 200, description: 'The refund after the event.', schema: Refund },
  codes: ['refund_not_found'],
});

export const simulatePayout = endpoint({
  method: 'post',
  path: '/v1/sandbox/payouts/{id}/simulate',
  operation: 'simulatePayout',
  summary: 'Let the sandbox bank report something about a payout',
  description: describe('payout'),
  scope: 'payouts:write',
  params: ById,
  body: report(PAYOUT_CALLBACKS),
  success: { status: 200, description: 'The payout after the event.', schema: Payout },
  codes: ['payout_not_found'],
});

export const simulateCryptoPayment = endpoint({
  method: 'post',
  path: '/v1/sandbox/crypto/payments/{id}/simulate',
  operation: 'simulateCryptoPayment',
  summary: 'Let the sandbox chain report something about a crypto payment',
  description: describe('crypto payment'),
  scope: 'crypto:write',
  crypto: true,
  params: ById,
  body: z
    .strictObject({
      event: optional(z.enum(SIMULATED_DEPOSITS)),
      amount: optional(AskedUnits),
      confirmations: optional(z.int().min(0).max(CONFIRMATIONS_MAX)),
      transaction_id: optional(text(TRANSACTION_LENGTH_MAX).min(1)),
      code: optional(text(CODE_LENGTH_MAX)),
      reason: optional(text(REASON_LENGTH_MAX)),
    })
    .refine(({ event, amount, transaction_id }) => event ?? amount ?? transaction_id, {
      path: ['event'],
      message: 'say the event, or the amount of a deposit',
    }),
  success: { status: 200, description: 'The crypto payment after it.', schema: CryptoPayment },
  codes: ['crypto_not_enabled', 'crypto_payment_not_found'],
});

export const simulateCryptoSettlement = endpoint({
  method: 'post',
  path: '/v1/sandbox/crypto/settlements/{id}/simulate',
  operation: 'simulateCryptoSettlement',
  summary: 'Let the sandbox chain report something about a settlement',
  description: describe('settlement'),
  scope: 'crypto:write',
  crypto: true,
  params: ById,
  body: report(CRYPTO_SETTLEMENT_CALLBACKS),
  success: { status: 200, description: 'The settlement after it.', schema: CryptoSettlement },
  codes: ['crypto_not_enabled', 'crypto_settlement_not_found'],
});

import { z } from 'zod';
import { PAYMENT_CALLBACKS } from '../callback';
import { endpoint } from './endpoint';
import { optional, text } from './fields';
import { Payment } from './payments';

const CODE_LENGTH_MAX = 100;
const REASON_LENGTH_MAX = 500;

/** Decided: "Sandbox". */
export const simulatePayment = endpoint({
  method: 'post',
  path: '/v1/sandbox/payments/{id}/simulate',
  operation: 'simulatePayment',
  summary: 'Let the sandbox bank report something about a payment',
  description:
    'Sandbox keys only. The event takes the way of a real bank callback; the answer is the payment ' +
    'after it. What the payment cannot do any more leaves it unchanged, as with a real bank.',
  scope: 'payments:write',
  params: z.object({ id: z.string() }),
  body: z.strictObject({
    event: z.enum(PAYMENT_CALLBACKS),
    code: optional(text(CODE_LENGTH_MAX)),
    reason: optional(text(REASON_LENGTH_MAX)),
  }),
  success: { status: 200, description: 'The payment after the event.', schema: Payment },
  codes: ['payment_not_found'],
});

import { z } from 'zod';

/**
 * What a bank says about one of our resources: the payload of every signal. The signal's name is
 * what happened. A callback counts once by its `callback_id`.
 */
export const BankCallback = z.object({
  callback_id: z.string().min(1).max(200),
  occurred_at: z.iso.datetime({ offset: true }),
  bank_reference: z.string().max(200).optional(),
  code: z.string().max(100).optional(),
  reason: z.string().max(500).optional(),
});

export type BankCallback = z.infer<typeof BankCallback>;

/** Signals of the `payment` workflow. Contract with connector teams: changed only by addition. */
export const PAYMENT_CALLBACKS = ['authorized', 'settled', 'failed', 'expired'] as const;
export type PaymentCallbackName = (typeof PAYMENT_CALLBACKS)[number];

import { z } from 'zod';
import type { BankCallback as Callback } from '../callback';

/** The payload of every bank callback, as it is published to connector teams. */
export const BankCallback = z
  .object({
    callback_id: z.string().min(1).max(200),
    occurred_at: z.iso.datetime({ offset: true }),
    bank_reference: z.string().max(200).optional(),
    code: z.string().max(100).optional(),
    reason: z.string().max(500).optional(),
  })
  .meta({ id: 'BankCallback' }) satisfies z.ZodType<Callback>;

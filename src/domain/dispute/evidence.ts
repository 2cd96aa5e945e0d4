import { z } from 'zod';

const optional = z.string().nullable();

/** Statement of a merchant about a dispute. */
export const Evidence = z.object({
  explanation: z.string(),
  customer_reference: optional,
  shipped_at: optional.meta({ description: 'ISO 8601.' }),
  carrier: optional,
  tracking_number: optional,
  refund_reference: optional,
});
export type Evidence = z.infer<typeof Evidence>;

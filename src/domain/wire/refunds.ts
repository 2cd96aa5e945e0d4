import { z } from 'zod';
import { LOGGED, OWN_ID } from '../logged';
import { REFUND_STATUSES } from '../refund/refund';
import { toLowerId } from '../shape';
import { endpoint, readEndpoint } from './endpoint';
import {
  Amount,
  ById,
  Failure,
  Moved,
  NullableText,
  optional,
  StoredCode,
  Timestamp,
  text,
} from './fields';
import { buildListQuery, buildPageSchema, listEndpoint } from './lists';
import { SAMPLE_IDS } from './samples';

const PAYMENT_ID_LENGTH_MAX = 100;
const REASON_LENGTH_MAX = 500;

/** @see docs/api.md#refunds */
export const CreateRefund = z
  .strictObject({
    payment_id: text(PAYMENT_ID_LENGTH_MAX)
      .overwrite(toLowerId)
      .meta({ description: 'A settled payment.' })
      .register(LOGGED, OWN_ID),
    amount: optional(Amount).meta({
      description: 'Minor units, up to the rest of the payment. Default: the rest.',
    }),
    reason: optional(text(REASON_LENGTH_MAX)).meta({ description: 'For your own reporting.' }),
  })
  .meta({
    id: 'CreateRefund',
    examples: [{ payment_id: SAMPLE_IDS.payment, amount: 500, reason: 'One item came back.' }],
  });
export type CreateRefund = z.infer<typeof CreateRefund>;

export const Refund = z
  .object({
    id: z.uuid().meta({ examples: [SAMPLE_IDS.refund] }),
    object: z.literal('refund'),
    payment_id: z.uuid().meta({ examples: [SAMPLE_IDS.payment] }),
    amount: Amount.meta({ examples: [500] }),
    currency: StoredCode.meta({ examples: ['EUR'] }),
    status: z.enum(REFUND_STATUSES).meta({ examples: ['processing'] }),
    reason: NullableText.meta({ examples: ['One item came back.'] }),
    failure: Failure.nullable(),
    amount_settled: Moved.nullable().meta({ description: 'What was sent; null until it settles.' }),
    settled_at: Timestamp.nullable(),
    created_at: Timestamp,
  })
  .meta({ id: 'Refund' });

const RefundPage = buildPageSchema(Refund, 'RefundList');

const RefundQuery = buildListQuery(REFUND_STATUSES);

export const createRefund = endpoint({
  method: 'post',
  path: '/v1/refunds',
  operation: 'createRefund',
  summary: 'Refund a payment, in full or in part',
  description:
    'Responds when the amount is debited from the balance and from the rest of the payment. A ' +
    'webhook reports whether it reached the customer.',
  scope: 'refunds:write',
  creates: true,
  body: CreateRefund,
  success: { status: 201, description: 'The refund.', schema: Refund },
  codes: [
    'invalid_amount',
    'payment_not_found',
    'payment_disputed',
    'payment_not_settled',
    'refund_not_supported',
    'refund_window_expired',
    'refund_amount_exceeds_balance',
    'insufficient_balance',
  ],
});

export const getRefund = readEndpoint('refund', {
  path: '/v1/refunds',
  scope: 'refunds:read',
  schema: Refund,
});

export const listRefunds = listEndpoint({
  path: '/v1/refunds',
  operation: 'listRefunds',
  summary: 'List refunds, newest first',
  scope: 'refunds:read',
  query: RefundQuery,
  page: RefundPage,
});

export const listPaymentRefunds = listEndpoint({
  path: '/v1/payments/{id}/refunds',
  operation: 'listPaymentRefunds',
  summary: 'List the refunds of one payment, newest first',
  scope: 'refunds:read',
  params: ById,
  query: RefundQuery,
  page: RefundPage,
  codes: ['payment_not_found'],
});

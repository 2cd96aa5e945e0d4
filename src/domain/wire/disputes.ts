import { z } from 'zod';
import { DISPUTE_ID, DISPUTE_STATUSES, EVIDENCE_LENGTH_MAX } from '../dispute/dispute';
import { fits } from '../shape';
import { endpoint, readEndpoint } from './endpoint';
import { ById, Id, Moved, optional, StoredCode, Timestamp, text } from './fields';
import { buildListQuery, buildPageSchema, listEndpoint } from './lists';
import { SAMPLE_IDS } from './samples';

const CARRIER_LENGTH_MAX = 255;
const TRACKING_LENGTH_MAX = 255;

/** @see docs/api.md#disputes */
const Dispute = z
  .object({
    id: z
      .string()
      .regex(DISPUTE_ID)
      .meta({ examples: [SAMPLE_IDS.dispute] }),
    object: z.literal('dispute'),
    payment_id: z.uuid().meta({ examples: [SAMPLE_IDS.payment] }),
    status: z.enum(DISPUTE_STATUSES).meta({ examples: ['needs_response'] }),
    amount: Moved.meta({
      description: 'What the bank took, without what came back; 0 for an inquiry.',
      examples: [1050],
    }),
    currency: StoredCode.meta({ examples: ['EUR'] }),
    fee: Moved.meta({ description: 'What the bank charged for it.', examples: [0] }),
    reason: StoredCode.nullable().meta({
      description: "The scheme's code.",
      examples: ['13.1'],
    }),
    evidence_due_at: Timestamp.nullable().meta({
      description: 'Evidence is refused from then on; null: without a deadline.',
    }),
    evidence_submitted_at: Timestamp.nullable(),
    closed_at: Timestamp.nullable(),
    livemode: z.boolean(),
    created_at: Timestamp,
    updated_at: Timestamp,
  })
  .meta({ id: 'Dispute' });

/** @see docs/api.md#disputes */
export const SubmitEvidence = z
  .strictObject({
    explanation: text(EVIDENCE_LENGTH_MAX)
      .min(1, 'must not be empty')
      .meta({ description: 'What happened, for the bank.' }),
    customer_reference: optional(text(EVIDENCE_LENGTH_MAX)).meta({
      description: 'The customer in your own system.',
    }),
    shipped_at: optional(z.iso.datetime({ offset: true })).meta({
      description: 'When the goods left.',
    }),
    carrier: optional(text(CARRIER_LENGTH_MAX)),
    tracking_number: optional(text(TRACKING_LENGTH_MAX)),
    refund_reference: optional(text(EVIDENCE_LENGTH_MAX)).meta({
      description: 'The refund that the customer already has.',
    }),
  })
  .refine((evidence) => fits(Object.values(evidence).join(''), EVIDENCE_LENGTH_MAX), {
    path: ['explanation'],
    message: `must have at most ${EVIDENCE_LENGTH_MAX} characters in all`,
  })
  .meta({
    id: 'SubmitEvidence',
    examples: [
      {
        explanation: 'The parcel was signed for at the address of the order.',
        shipped_at: '2026-03-02T09:00:00Z',
        carrier: 'PostNL',
        tracking_number: '3SABCD0123456',
      },
    ],
  });
export type SubmitEvidence = z.infer<typeof SubmitEvidence>;

export const getDispute = readEndpoint('dispute', {
  path: '/v1/disputes',
  scope: 'disputes:read',
  schema: Dispute,
});

const codes = ['dispute_not_found', 'dispute_closed', 'evidence_not_supported'] as const;

export const submitEvidence = endpoint({
  method: 'post',
  path: '/v1/disputes/{id}/evidence',
  operation: 'submitEvidence',
  summary: 'Answer a dispute with evidence',
  description:
    'Sent to the bank once, and before the deadline. A repeat of the same evidence changes ' +
    'nothing.',
  scope: 'disputes:write',
  params: ById,
  body: SubmitEvidence,
  success: { status: 200, description: 'The dispute.', schema: Dispute },
  codes,
});

export const acceptDispute = endpoint({
  method: 'post',
  path: '/v1/disputes/{id}/accept',
  operation: 'acceptDispute',
  summary: 'Accept a dispute',
  description: 'Gives in: what the bank took stays with the customer. A repeat changes nothing.',
  scope: 'disputes:write',
  params: ById,
  body: z.strictObject({}),
  success: { status: 200, description: 'The dispute.', schema: Dispute },
  codes,
});

export const listDisputes = listEndpoint({
  path: '/v1/disputes',
  operation: 'listDisputes',
  summary: 'List disputes, newest first',
  scope: 'disputes:read',
  query: buildListQuery(DISPUTE_STATUSES).extend({
    payment_id: Id.optional(),
  }),
  page: buildPageSchema(Dispute, 'DisputeList'),
});

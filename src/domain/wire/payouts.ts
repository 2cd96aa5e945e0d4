import { z } from 'zod';
import { PAYEE_RESULTS } from '../banks/callback';
import { allowWords, CODE, LOGGED, OWN_ID } from '../logged';
import { PAYOUT_STATUSES } from '../payout/payout';
import { RAIL_IDS, railEntry } from '../payout/rails';
import { toLowerId } from '../shape';
import { endpoint, readEndpoint } from './endpoint';
import {
  Amount,
  Currency,
  Failure,
  Moved,
  NullableText,
  OrderReference,
  optional,
  StoredCode,
  Timestamp,
  text,
} from './fields';
import { buildListQuery, buildListSchema, buildPageSchema, listEndpoint } from './lists';
import { Metadata } from './payments';
import { SAMPLE_IDS } from './samples';

const RECIPIENT_ID_LENGTH_MAX = 100;
const METHOD_LENGTH_MAX = 100;

/** @see docs/api.md#payouts */
export const CreatePayout = z
  .strictObject({
    recipient_id: text(RECIPIENT_ID_LENGTH_MAX).overwrite(toLowerId).register(LOGGED, OWN_ID),
    method: text(METHOD_LENGTH_MAX)
      .meta({ description: 'A rail id from the list of rails.' })
      .register(LOGGED, allowWords(RAIL_IDS)),
    amount: Amount,
    currency: Currency,
    reference: optional(OrderReference).meta({
      description: "Shown on the recipient's statement if the rail supports it.",
    }),
    metadata: optional(Metadata).meta({
      description:
        'Stored and returned unchanged. Its field `balance_account` is the balance account that ' +
        'pays the amount and the fee. Default: `main`.',
    }),
  })
  .meta({
    id: 'CreatePayout',
    examples: [
      {
        recipient_id: SAMPLE_IDS.recipient,
        method: 'card_payout',
        amount: 1_000,
        currency: 'EUR',
        reference: 'invoice-2002',
      },
    ],
  });
export type CreatePayout = z.infer<typeof CreatePayout>;

const Return = z
  .object({
    code: z.string().register(LOGGED, CODE),
    reason: z.string().meta({ description: "The receiving bank's reason." }),
  })
  .meta({ id: 'PayoutReturn' });

const Verification = z
  .object({
    result: z.enum(PAYEE_RESULTS).meta({ description: 'Whether the name is that of the account.' }),
    checked_at: Timestamp,
  })
  .meta({ id: 'PayeeVerification' });

export const Payout = z
  .object({
    id: z.uuid().meta({ examples: [SAMPLE_IDS.payout] }),
    object: z.literal('payout'),
    status: z.enum(PAYOUT_STATUSES).meta({ examples: ['sent'] }),
    amount: Amount.meta({ examples: [1000] }),
    currency: StoredCode.meta({ examples: ['EUR'] }),
    method: z.enum(RAIL_IDS).meta({ examples: ['card_payout'] }),
    recipient_id: z.uuid().meta({ examples: [SAMPLE_IDS.recipient] }),
    reference: NullableText.meta({ examples: ['invoice-2002'] }),
    metadata: z.record(z.string(), z.unknown()),
    failure: Failure.nullable(),
    returned: Return.nullable(),
    fee: Moved.meta({ description: 'Charged besides the amount.' }),
    amount_returned: Moved.nullable().meta({ description: 'What came back; null before.' }),
    verification: Verification.nullable().meta({
      description:
        'What the bank has said of the recipient’s name; null before, and on other rails.',
    }),
    livemode: z.boolean(),
    created_at: Timestamp,
    completed_at: Timestamp.nullable(),
  })
  .meta({ id: 'Payout' });

/** @see docs/api.md#rails */
const PayoutMethod = z
  .object({
    method: z.enum(RAIL_IDS),
    display_name: z.string(),
    recipient_type: z.enum(['card', 'bank_account']),
    typical_speed: z.string(),
    can_be_returned: z.boolean(),
  })
  .meta({ id: 'PayoutMethod' });

export const createPayout = endpoint({
  method: 'post',
  path: '/v1/payouts',
  operation: 'createPayout',
  summary: 'Pay out to a recipient',
  description:
    'Responds as soon as the bank has sent the payout; if the bank is slow, after 5 seconds with ' +
    'the current state. Amount and fee are reserved first.',
  scope: 'payouts:write',
  creates: true,
  raw: ['metadata'],
  body: CreatePayout,
  success: { status: 201, description: 'The payout.', schema: Payout },
  codes: [
    'invalid_amount',
    'recipient_not_found',
    'recipient_deleted',
    'rail_requirements_not_met',
    'recipient_type_mismatch',
    'balance_account_not_found',
    'insufficient_balance',
    'payout_limit_exceeded',
  ],
});

export const getPayout = readEndpoint('payout', {
  path: '/v1/payouts',
  scope: 'payouts:read',
  schema: Payout,
});

export const listPayouts = listEndpoint({
  path: '/v1/payouts',
  operation: 'listPayouts',
  summary: 'List payouts, newest first',
  scope: 'payouts:read',
  query: buildListQuery(PAYOUT_STATUSES),
  page: buildPageSchema(Payout, 'PayoutList'),
});

export const listPayoutMethods = endpoint({
  method: 'get',
  path: '/v1/payout-methods',
  operation: 'listPayoutMethods',
  summary: 'The rails that this account can use for payouts now',
  description: "The account's rails that a bank supports in the environment of the key.",
  scope: null,
  query: z.strictObject({}),
  success: {
    status: 200,
    description: 'The rails.',
    schema: buildListSchema(PayoutMethod, 'PayoutMethodList'),
    example: { data: RAIL_IDS.map(railEntry) },
  },
});

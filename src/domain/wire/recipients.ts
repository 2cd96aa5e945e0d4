import { isValidBIC } from 'ibantools';
import { z } from 'zod';
import { isIban } from '../banks/iban';
import { CARD_SCHEMES, isBirthDate, isCardNumber, recipientFaults } from '../payout/recipient';
import { endpoint } from './endpoint';
import { ById, Country, Email, NamePart, optional, Reference, Timestamp, text } from './fields';
import { SAMPLE_IDS } from './samples';

const ADDRESS_LINE_LENGTH_MAX = 200;
const CITY_LENGTH_MAX = 100;
const POSTAL_CODE_LENGTH_MAX = 20;
/** 34 characters with a space after each. */
const IBAN_LENGTH_MAX = 68;
const TYPES = ['card', 'bank_account'] as const;

/** Blank text would satisfy a rail's required field. */
function requireText(schema: z.ZodString) {
  return schema.refine((value) => value.trim() !== '', 'must not be blank');
}

function matchPattern(pattern: RegExp, message: string) {
  return z.string().regex(pattern, message);
}

const Fields = z.strictObject({
  type: z.enum(TYPES),
  first_name: requireText(NamePart).meta({ description: 'As the bank knows it.' }),
  last_name: requireText(NamePart).meta({ description: 'As the bank knows it.' }),
  card_number: optional(
    z
      .string()
      .refine(isCardNumber, 'must be a card number of 12 to 19 digits')
      .meta({ pattern: '^[0-9]{12,19}$', description: 'Cards: required.' }),
  ),
  expiry_month: optional(matchPattern(/^(0[1-9]|1[0-2])$/, 'must be a month, 01 to 12')),
  expiry_year: optional(matchPattern(/^\d{4}$/, 'must be a year of four digits')),
  date_of_birth: optional(
    z
      .string()
      .refine(isBirthDate, 'must be a date, YYYY-MM-DD, from 1900 on')
      .meta({ format: 'date', description: 'Cards: required.' }),
  ),
  iban: optional(
    z
      .string()
      .max(IBAN_LENGTH_MAX)
      .refine(isIban, 'must be an IBAN with valid check digits')
      .meta({ description: 'Spaces and hyphens of any kind, and lower case, are accepted.' }),
  ),
  bic: optional(
    z
      .string()
      .refine((bic) => isValidBIC(bic), 'must be a BIC of 8 or 11 characters')
      .meta({ description: 'Required with an IBAN outside the SEPA area.' }),
  ),
  sort_code: optional(matchPattern(/^\d{6}$/, 'must be six digits')),
  account_number: optional(matchPattern(/^\d{8}$/, 'must be eight digits')),
  address_line1: optional(requireText(text(ADDRESS_LINE_LENGTH_MAX))),
  city: optional(requireText(text(CITY_LENGTH_MAX))),
  postal_code: optional(requireText(text(POSTAL_CODE_LENGTH_MAX))),
  last4: optional(
    matchPattern(/^[0-9A-Z]{4}$/, 'must be four characters').meta({
      description: 'Must match the number.',
    }),
  ),
  scheme: optional(
    z.enum(CARD_SCHEMES).meta({ description: 'Cards only. Must match the number.' }),
  ),
  country: optional(Country),
  email: optional(Email),
  reference: optional(Reference).meta({ description: 'Your own identifier.' }),
  parent_payment_reference: optional(Reference).meta({ description: 'Stored, not interpreted.' }),
});

/** Runs even if a field is at fault, so that one response lists all faults. */
export const CreateRecipient = Fields.superRefine(
  (input, ctx) => {
    const atFault = new Set(ctx.issues.map(({ path }) => path?.[0]));
    if (atFault.has('type')) return;
    const cleared = Object.keys(input).filter((field) => atFault.has(field));
    const left = { ...input, ...Object.fromEntries(cleared.map((field) => [field, ''])) };
    for (const { field, message } of recipientFaults(left)) {
      if (!atFault.has(field)) ctx.addIssue({ code: 'custom', path: [field], message });
    }
  },
  { when: ({ value }) => typeof value === 'object' && value !== null },
).meta({
  id: 'CreatePayoutRecipient',
  examples: [
    {
      type: 'card',
      first_name: 'Ada',
      last_name: 'Lovelace',
      card_number: '4111111111111111',
      expiry_month: '12',
      expiry_year: '2099',
      date_of_birth: '1985-12-10',
      address_line1: 'Keizersgracht 1',
      city: 'Amsterdam',
      postal_code: '1015 CN',
    },
  ],
});
export type CreateRecipient = z.infer<typeof Fields>;

/** @see docs/api.md#recipients */
const Recipient = z
  .object({
    id: z.uuid().meta({ examples: [SAMPLE_IDS.recipient] }),
    object: z.literal('payout_recipient'),
    type: z.enum(TYPES).meta({ examples: ['card'] }),
    scheme: z
      .enum(CARD_SCHEMES)
      .nullable()
      .meta({
        description: 'Null for bank accounts, and for cards of networks without payouts.',
        examples: ['visa'],
      }),
    last4: z.string().meta({ examples: ['1111'] }),
    created_at: Timestamp,
    deleted: z
      .literal(true)
      .optional()
      .meta({ description: 'Present if the identifying data of the recipient was deleted.' }),
  })
  .meta({ id: 'PayoutRecipient' });

export const createRecipient = endpoint({
  method: 'post',
  path: '/v1/payout-recipients',
  operation: 'createRecipient',
  summary: 'Create a payout recipient',
  description: 'The identifying data of the recipient is encrypted on arrival and never returned.',
  scope: 'payouts:write',
  creates: true,
  body: CreateRecipient,
  success: { status: 201, description: 'The recipient.', schema: Recipient },
});

export const deleteRecipient = endpoint({
  method: 'delete',
  path: '/v1/payout-recipients/{id}',
  operation: 'deleteRecipient',
  summary: 'Delete a payout recipient',
  description:
    'Permanently deletes the identifying data of the recipient. Past payouts keep the id. Safe to ' +
    'repeat.',
  scope: 'payouts:write',
  params: ById,
  success: {
    status: 200,
    description: 'The recipient, deleted.',
    schema: Recipient,
    example: { deleted: true },
  },
  codes: ['recipient_not_found'],
});

import { z } from 'zod';
import { CARD_SCHEMES } from '../recipient';
import {
  type GivenRecipient,
  isBic,
  isBirthDate,
  isCardNumber,
  isIban,
  recipientFaults,
} from '../recipient-check';
import { endpoint } from './endpoint';
import { ById, Country, optional, PersonName, Reference, Timestamp, text } from './fields';

const ADDRESS_LINE_LENGTH_MAX = 200;
const CITY_LENGTH_MAX = 100;
const POSTAL_CODE_LENGTH_MAX = 20;
const EMAIL_LENGTH_MAX = 254;
/** Room for 34 characters with a space after each. */
const IBAN_LENGTH_MAX = 68;
const TYPES = ['card', 'bank_account'] as const;

/** Refuses an empty text, which would pass for a field that a rail asks for. */
function filled(schema: z.ZodString) {
  return schema.refine((value) => value.trim() !== '', 'must not be blank');
}

/** Checks a text by a pattern, with a message that does not repeat it. */
function formed(pattern: RegExp, message: string) {
  return z.string().regex(pattern, message);
}

const Fields = z.strictObject({
  type: z.enum(TYPES),
  first_name: filled(PersonName).meta({ description: 'As held by the bank.' }),
  last_name: filled(PersonName).meta({ description: 'As held by the bank.' }),
  card_number: optional(
    z
      .string()
      .refine(isCardNumber, 'must be a card number of 12 to 19 digits')
      .meta({ pattern: '^[0-9]{12,19}$', description: 'Cards: required.' }),
  ),
  expiry_month: optional(formed(/^(0[1-9]|1[0-2])$/, 'must be a month, 01 to 12')),
  expiry_year: optional(formed(/^\d{4}$/, 'must be a year of four digits')),
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
      .refine(isIban, 'must be an IBAN with right check digits')
      .meta({ description: 'Spaces and small letters are accepted.' }),
  ),
  bic: optional(
    z
      .string()
      .refine(isBic, 'must be a BIC of 8 or 11 characters')
      .meta({ description: 'Required with an IBAN outside the SEPA area.' }),
  ),
  sort_code: optional(formed(/^\d{6}$/, 'must be six digits')),
  account_number: optional(formed(/^\d{8}$/, 'must be eight digits')),
  address_line1: optional(filled(text(ADDRESS_LINE_LENGTH_MAX))),
  city: optional(filled(text(CITY_LENGTH_MAX))),
  postal_code: optional(filled(text(POSTAL_CODE_LENGTH_MAX))),
  last4: optional(
    formed(/^[0-9A-Z]{4}$/, 'must be four characters').meta({
      description: 'Has to agree with the number.',
    }),
  ),
  scheme: optional(
    z.enum(CARD_SCHEMES).meta({ description: 'Cards only. Has to agree with the number.' }),
  ),
  country: optional(Country),
  email: optional(z.email().max(EMAIL_LENGTH_MAX)),
  reference: optional(Reference).meta({ description: 'Your own identifier.' }),
  parent_payment_reference: optional(Reference).meta({ description: 'Stored, not interpreted.' }),
});

/**
 * Rules for each field by itself, then for the fields together. The second set runs also when the
 * first has found faults, so that an answer names them all.
 * @see docs/api.md#recipients
 */
const CreateRecipient = Fields.superRefine(
  (given, ctx) => {
    const atFault = new Set(ctx.issues.map(({ path }) => path?.[0]));
    if (atFault.has('type')) return;
    for (const { field, message } of recipientFaults(soundOf(given, atFault))) {
      if (!atFault.has(field)) ctx.addIssue({ code: 'custom', path: [field], message });
    }
  },
  { when: ({ value }) => typeof value === 'object' && value !== null },
).meta({ id: 'CreatePayoutRecipient' });
type CreateRecipient = z.infer<typeof Fields>;

/** Blanks the fields at fault, which count as given but may hold a value of any kind. */
function soundOf(given: CreateRecipient, atFault: ReadonlySet<unknown>): GivenRecipient {
  const blanked = Object.keys(given).filter((field) => atFault.has(field));
  return { ...given, ...Object.fromEntries(blanked.map((field) => [field, ''])) };
}

/** @see docs/api.md#recipients */
const Recipient = z
  .object({
    id: z.uuid(),
    object: z.literal('payout_recipient'),
    type: z.enum(TYPES),
    scheme: z.enum(CARD_SCHEMES).nullable().meta({
      description: 'Null for bank accounts, and for cards that no payout goes to.',
    }),
    last4: z.string(),
    created_at: Timestamp,
    deleted: z
      .literal(true)
      .optional()
      .meta({ description: 'Only where what identifies the recipient was deleted.' }),
  })
  .meta({ id: 'PayoutRecipient' });

export const createRecipient = endpoint({
  method: 'post',
  path: '/v1/payout-recipients',
  operation: 'createRecipient',
  summary: 'Create a payout recipient',
  description:
    'What identifies the person and the account is encrypted on arrival and never returned.',
  scope: 'payouts:write',
  creates: true,
  body: CreateRecipient,
  success: { status: 201, description: 'The recipient.', schema: Recipient },
  codes: [],
});

export const deleteRecipient = endpoint({
  method: 'delete',
  path: '/v1/payout-recipients/{id}',
  operation: 'deleteRecipient',
  summary: 'Delete a payout recipient',
  description:
    'Deletes what identifies the person and the account, for good. Past payouts keep the id. A ' +
    'repeat answers the same.',
  scope: 'payouts:write',
  params: ById,
  success: { status: 200, description: 'The recipient, deleted.', schema: Recipient },
  codes: ['recipient_not_found'],
});

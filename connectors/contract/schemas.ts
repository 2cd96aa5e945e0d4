import { z } from 'zod';
import { isIban } from '../../src/domain/banks/iban';
import { DISPUTE_ID } from '../../src/domain/dispute/dispute';
import { Evidence } from '../../src/domain/dispute/evidence';
import { isCreditorReference } from '../../src/domain/payment/creditor-reference';
import type { ConnectorActivities, Outdated } from './activities';
import { Details } from './recipients';

const Id = z.uuid();
const MinorUnits = z.int().min(1).meta({ description: 'Minor units: 10.50 is 1050.' });
const Currency = z.string().meta({ description: 'ISO 4217.' });
const Time = z.iso.datetime({ offset: true });
const BankReference = z.string().min(1).max(200);
const InstructionId = z.string().meta({ description: 'The idempotency key, too.' });
const KnownReference = z.string().nullable().meta({ description: 'What the bank has answered.' });
const DocumentVersion = z.int().meta({ description: 'Version of the document that says this.' });

/** Final refusal of an instruction. */
export const Refusal = z.object({
  code: z
    .string()
    .regex(/^[A-Za-z][A-Za-z0-9_.-]{0,39}$/)
    .meta({
      description:
        '1 to 40 characters: a letter, then letters, digits, underscores, dots and hyphens.',
    }),
  message: z.string().min(1).max(500).meta({
    description: '1 to 500 characters of any kind. Merchants read it: no personal data.',
  }),
});

const Opened = z.object({ outcome: z.literal('opened'), bank_reference: BankReference });
const Instructions = z.object({
  iban: z
    .string()
    .regex(/^[A-Z]{2}\d{2}[A-Z0-9]{11,30}$/)
    .refine(isIban, 'must have valid check digits'),
  account_holder: z.string().min(1).max(70),
  bic: z
    .string()
    .regex(/^[A-Z0-9]{4}[A-Z]{2}[A-Z0-9]{2}(?:[A-Z0-9]{3})?$/)
    .nullable(),
  reference: z
    .string()
    .regex(/^RF\d{2}[0-9A-Z]{1,21}$/)
    .refine(isCreditorReference, 'must have valid check digits')
    .meta({ description: 'Creditor reference of ISO 11649.' }),
  amount: MinorUnits.meta({ description: 'The amount of the payment.' }),
});
const Accepted = z.object({ outcome: z.literal('accepted'), bank_reference: BankReference });
const Paid = z.object({ outcome: z.enum(['submitted', 'sent']), bank_reference: BankReference });
const Confirmed = z.object({ outcome: z.literal('accepted') });
const NotFound = z.object({ outcome: z.literal('not_found') });

const DISPUTE = {
  instruction_id: InstructionId,
  dispute_id: z.string().regex(DISPUTE_ID),
  payment_id: Id,
  bank_dispute_id: z.string().meta({ description: 'What the bank calls it.' }),
};

type Refused = { outcome: 'declined' | 'refused' };

type Schemas = {
  [N in keyof Required<ConnectorActivities>]: {
    instruction: z.ZodType<
      Parameters<Required<ConnectorActivities>[N]>[0] & { activity: N },
      object
    >;
    answer: z.ZodType<
      Exclude<Awaited<ReturnType<Required<ConnectorActivities>[N]>>, Outdated | Refused>
    >;
    /** Whether 422 with a `Refusal` is an answer. */
    isRefusable: boolean;
  };
};

/** @see docs/connectors.md#instructions-over-http */
export const ACTIVITIES = {
  openSession: {
    instruction: z.object({
      activity: z.literal('openSession'),
      payment_id: Id,
      amount: MinorUnits,
      currency: Currency,
      method: z.string(),
      country: z.string().nullable(),
      livemode: z.boolean(),
      return_url: z.url(),
      expires_at: Time,
    }),
    answer: z.union([
      Opened.extend({
        session_url: z
          .url({ protocol: /^https?$/ })
          .max(2_048)
          .meta({ pattern: '^https?:' }),
      }),
      Opened.extend({ instructions: Instructions }),
    ]),
    isRefusable: true,
  },
  closeSession: {
    instruction: z.object({
      activity: z.literal('closeSession'),
      payment_id: Id,
      bank_reference: KnownReference,
    }),
    answer: z.object({ outcome: z.enum(['closed', 'already_authorized']) }),
    isRefusable: false,
  },
  voidPayment: {
    instruction: z.object({
      activity: z.literal('voidPayment'),
      payment_id: Id,
      instruction_id: InstructionId,
      bank_reference: KnownReference,
    }),
    answer: z.discriminatedUnion('outcome', [
      z.object({ outcome: z.literal('voided') }),
      z.object({
        outcome: z.literal('already_settled'),
        amount: MinorUnits.optional(),
        currency: Currency.optional(),
      }),
    ]),
    isRefusable: false,
  },
  reversePayment: {
    instruction: z.object({
      activity: z.literal('reversePayment'),
      payment_id: Id,
      instruction_id: InstructionId,
      amount: MinorUnits,
      currency: Currency,
    }),
    answer: Accepted,
    isRefusable: true,
  },
  sendRefund: {
    instruction: z.object({
      activity: z.literal('sendRefund'),
      refund_id: Id,
      version: DocumentVersion,
      payment_id: Id,
      payment_bank_reference: KnownReference,
      amount: MinorUnits,
      currency: Currency,
      method: z.string(),
      livemode: z.boolean(),
    }),
    answer: Accepted,
    isRefusable: true,
  },
  lookUpRefund: {
    instruction: z.object({ activity: z.literal('lookUpRefund'), refund_id: Id }),
    answer: z.discriminatedUnion('outcome', [Accepted, NotFound]),
    isRefusable: true,
  },
  sendPayout: {
    instruction: z.object({
      activity: z.literal('sendPayout'),
      payout_id: Id,
      version: DocumentVersion,
      amount: MinorUnits,
      currency: Currency,
      method: z.string().meta({ description: 'The rail.' }),
      livemode: z.boolean(),
      reference: z
        .string()
        .nullable()
        .meta({ description: 'Text of the merchant for the recipient’s statement.' }),
      recipient: Details,
    }),
    answer: Paid,
    isRefusable: true,
  },
  lookUpPayout: {
    instruction: z.object({ activity: z.literal('lookUpPayout'), payout_id: Id }),
    answer: z.discriminatedUnion('outcome', [Paid, NotFound]),
    isRefusable: true,
  },
  submitEvidence: {
    instruction: z.object({
      activity: z.literal('submitEvidence'),
      ...DISPUTE,
      version: DocumentVersion,
      livemode: z.boolean(),
      evidence: Evidence,
    }),
    answer: Confirmed,
    isRefusable: true,
  },
  lookUpEvidence: {
    instruction: z.object({ activity: z.literal('lookUpEvidence'), ...DISPUTE }),
    answer: z.discriminatedUnion('outcome', [Confirmed, NotFound]),
    isRefusable: true,
  },
  acceptDispute: {
    instruction: z.object({
      activity: z.literal('acceptDispute'),
      ...DISPUTE,
      version: DocumentVersion,
      livemode: z.boolean(),
    }),
    answer: Confirmed,
    isRefusable: true,
  },
  lookUpAcceptance: {
    instruction: z.object({ activity: z.literal('lookUpAcceptance'), ...DISPUTE }),
    answer: z.discriminatedUnion('outcome', [Confirmed, NotFound]),
    isRefusable: true,
  },
  cancelPayout: {
    instruction: z.object({ activity: z.literal('cancelPayout'), payout_id: Id }),
    answer: z.object({ outcome: z.enum(['cancelled', 'too_late', 'unknown']) }),
    isRefusable: false,
  },
} satisfies Schemas;

export type ActivityName = keyof typeof ACTIVITIES;

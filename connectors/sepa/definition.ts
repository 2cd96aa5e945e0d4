import { createHash } from 'node:crypto';
import { z } from 'zod';
import { isDuplicateKey } from '../../src/base/mongo';
import {
  buildCreditorReference,
  REFERENCE_DIGITS,
} from '../../src/domain/payment/creditor-reference';
import { INSTANT_RAIL, SEPA_CONNECTOR, type SepaBook } from '../../src/service/banks/sepa/book';
import { VARIABLES } from '../../src/variables';
import type { SessionInstruction } from '../contract/activities';
import { defineConnector, type Report } from '../kit';
import { addLine, cancelLine, lookUpLine } from './lines';
import {
  BIC,
  buildTextRefusal,
  findTransferFaults,
  parseAddress,
  parseDebtorIban,
  parseDebtorName,
} from './pain001';

const readable = <T>(
  parse: (text: string) => T | undefined,
  must: string,
  variable: z.ZodType<string> = z.string(),
) =>
  variable.transform((text, ctx) => {
    const value = parse(text);
    if (value !== undefined) return value;
    ctx.addIssue({ code: 'custom', message: must });
    return z.NEVER;
  });

const { SEPA_CUT_OFF, ...variables } = VARIABLES.pick({
  SEPA_CUT_OFF: true,
  SEPA_POLL_SECONDS: true,
  SEPA_FILE_MIN: true,
  SEPA_VERIFIED_DIR: true,
  SEPA_INSTANT: true,
  SEPA_INSTANT_SECONDS: true,
  SEPA_INSTANT_FINAL: true,
  SEPA_INSTANT_OVERDUE_SECONDS: true,
}).shape;

const settings = {
  SEPA_OUT_DIR: z.string().min(1),
  SEPA_IN_DIR: z.string().min(1),
  SEPA_IBAN: readable(parseDebtorIban, 'must be an IBAN with valid check digits'),
  SEPA_BIC: z.string().regex(BIC, 'must be a BIC in upper case').optional(),
  SEPA_NAME: readable(parseDebtorName, 'must be a name of at most 70 Latin characters'),
  SEPA_ADDRESS: readable(
    parseAddress,
    'must be an address as `Street 1, 1015 CJ Town, NL`, in Latin characters',
  ).optional(),
  /** Minutes of the day. */
  SEPA_CUT_OFF: readable(
    (text) => {
      const [, hours, minutes] = /^([01]\d|2[0-3]):([0-5]\d)$/.exec(text) ?? [];
      return hours === undefined ? undefined : Number(hours) * 60 + Number(minutes);
    },
    'must be a time as 15:00',
    SEPA_CUT_OFF,
  ),
  ...variables,
};

const NOT_IN_EUR = {
  code: 'currency_not_supported',
  message: 'A SEPA transfer is in EUR.',
};
const NOT_REVERSED = {
  code: 'not_supported',
  message: 'The connector sends no transfer back: an operator does.',
};

export interface SepaParts {
  book: SepaBook;
  /** Frees the payouts of a file that cannot have left. @returns whether it was one */
  putBack: (file_id: string) => Promise<boolean>;
  work: (
    delivered: string | null,
  ) => Promise<{ reports: Report[]; cursor: string | null; more: boolean }>;
}

/**
 * @param instant `SEPA_INSTANT`
 * @see docs/sepa.md
 */
export function defineSepa(getParts: () => SepaParts, instant: boolean) {
  return defineConnector({
    name: SEPA_CONNECTOR,
    serves: ['sepa_credit_transfer', 'multibanco', ...(instant ? ([INSTANT_RAIL] as const) : [])],
    settings,

    sendPayout: async (payout, { recipient, reference, now }) => {
      const payee = { details: await recipient(), reference: await reference() };
      const faults = findTransferFaults(payee, payout.amount);
      if (faults.length > 0) return { outcome: 'refused', ...buildTextRefusal(faults) };
      const { book } = getParts();
      await addLine(book, payout, now());
      const found = await lookUpLine(book, payout.payout_id);
      if (found.outcome === 'not_found') throw new Error('The payout is not in the book.');
      return found;
    },

    lookUpPayout: ({ payout_id }) => lookUpLine(getParts().book, payout_id),
    cancelPayout: async ({ payout_id }) => {
      const { book, putBack } = getParts();
      const line = await book.lines.findOne({ _id: payout_id, state: 'in_file' });
      if (line?.file_id) await putBack(line.file_id);
      return await cancelLine(book, payout_id);
    },

    openSession: async (payment, { settings: own, now }) => {
      const { amount, currency } = payment;
      if (currency !== 'EUR') return { outcome: 'declined', ...NOT_IN_EUR };
      const reference = await addPayment(getParts().book, payment, now());
      const { SEPA_IBAN: iban, SEPA_NAME: account_holder, SEPA_BIC: bic = null } = own;
      const instructions = { iban, account_holder, bic, reference, amount };
      return { outcome: 'opened', bank_reference: reference, instructions };
    },

    /**
     * Closes a payment. A transfer can't be stopped: one that comes later is late funds. Credits that
     * are being reported, and the whole amount, came before.
     */
    closeSession: async ({ payment_id: _id }) => {
      const payment = await getParts().book.payments.findOne({ _id });
      if (payment === null || payment.credits.length === 0) return { outcome: 'closed' };
      const isWhole = payment.credits.some(
        ({ amount, currency }) => amount === payment.amount && currency === payment.currency,
      );
      return { outcome: payment.unreported || isWhole ? 'already_authorized' : 'closed' };
    },
    /** The report, not the answer, says how much came, so that it counts once. */
    voidPayment: async ({ payment_id: _id }) => {
      const payment = await getParts().book.payments.findOne({ _id });
      const hasMoney = payment !== null && payment.credits.length > 0;
      return { outcome: hasMoney ? 'already_settled' : 'voided' };
    },
    reversePayment: async () => ({ outcome: 'refused', ...NOT_REVERSED }),

    poll: { seconds: 5, read: (cursor) => getParts().work(cursor) },
  });
}

export type SepaDefinition = ReturnType<typeof defineSepa>;

/** Two payments have the same reference once in 10^16. */
const TRIES = 5;

/** Repeats have the same reference. */
async function addPayment(
  { payments }: SepaBook,
  { payment_id: _id, amount, currency }: SessionInstruction,
  now: Date,
): Promise<string> {
  for (let attempt = 0; attempt < TRIES; attempt += 1) {
    const reference = makeReference(_id, attempt);
    const state = { credits: [], unreported: false, report_batch: null };
    try {
      await payments.insertOne({ _id, reference, amount, currency, opened_at: now, ...state });
      return reference;
    } catch (error) {
      if (!isDuplicateKey(error)) throw error;
    }
    const stored = await payments.findOne({ _id });
    if (stored !== null) return stored.reference;
  }
  throw new Error('No creditor reference is free.');
}

/** Derives a reference that says nothing of the payment. */
export function makeReference(payment_id: string, attempt: number): string {
  const hash = createHash('sha256').update(`${payment_id}:${attempt}`).digest('hex');
  const digits = String(BigInt(`0x${hash}`) % 10n ** BigInt(REFERENCE_DIGITS));
  return buildCreditorReference(digits.padStart(REFERENCE_DIGITS, '0'));
}

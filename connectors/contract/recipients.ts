import { z } from 'zod';
import type { RecipientDetails } from '../../src/domain/recipient';
import type { Sealer } from '../../src/keys/seal';
import type { PayoutStore } from '../../src/store/payouts';
import { type RecipientStore, recipientOwner } from '../../src/store/recipients';

const nullable = z.string().nullable();

const Details = z.object({
  type: z.enum(['card', 'bank_account']),
  first_name: z.string(),
  last_name: z.string(),
  card_number: nullable,
  expiry_month: nullable,
  expiry_year: nullable,
  date_of_birth: nullable,
  iban: nullable,
  bic: nullable,
  sort_code: nullable,
  account_number: nullable,
  address_line1: nullable,
  city: nullable,
  postal_code: nullable,
  country: nullable,
  email: nullable,
  reference: nullable,
  parent_payment_reference: nullable,
}) satisfies z.ZodType<RecipientDetails>;

export interface RecipientOpenerDeps {
  recipients: Pick<RecipientStore, 'get'>;
  sealer: Pick<Sealer, 'open'>;
}

/**
 * Opens the details of a recipient for the activity that instructs the bank. They belong in that
 * instruction only: never in a result, a log line or an error.
 * @returns a function that throws SealError, or Error when there is no such recipient
 */
export function createRecipientOpener({ recipients, sealer }: RecipientOpenerDeps) {
  return async (recipient_id: string): Promise<RecipientDetails> => {
    const recipient = await recipients.get(recipient_id);
    if (recipient === null) throw new Error('There is no such recipient.');
    return parsed(await sealer.open(recipient.sealed, recipientOwner(recipient_id)));
  };
}

/**
 * Reads the text for the recipient's statement, where the rail carries one. It is the merchant's
 * own, so it stands in no instruction. @see docs/api.md#payouts
 * @returns a function that throws Error when there is no such payout
 */
export function createReferenceReader({ payouts }: { payouts: Pick<PayoutStore, 'get'> }) {
  return async (payout_id: string): Promise<string | null> => {
    const payout = await payouts.get(payout_id);
    if (payout === null) throw new Error('There is no such payout.');
    return payout.reference;
  };
}

/** Parses the details; the parser's own error would quote them. */
function parsed(text: string): RecipientDetails {
  try {
    return Details.parse(JSON.parse(text));
  } catch {
    throw new Error('The details of the recipient are not what this version writes.');
  }
}

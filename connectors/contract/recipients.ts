import { z } from 'zod';
import type { Logger } from '../../src/base/log';
import { isUnsent } from '../../src/domain/payout/payout';
import type { RecipientDetails } from '../../src/domain/payout/recipient';
import type { Encrypter } from '../../src/encryption/encrypter';
import type { PayoutStore } from '../../src/store/payouts';
import { type RecipientStore, recipientOwner } from '../../src/store/recipients';
import { RecipientDeleted } from './recipient-deleted';

const nullable = z.string().nullable();

export const Details = z.object({
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

export interface RecipientDecrypterDeps {
  payouts: Pick<PayoutStore, 'get'>;
  recipients: Pick<RecipientStore, 'get'>;
  encrypter: Pick<Encrypter, 'decrypt'>;
  connector: string;
  log: Pick<Logger, 'info'>;
}

export { RecipientDeleted };

/**
 * Decrypts the recipient for the activity that instructs the bank. Details must never enter a
 * result, a log line or an error.
 * @returns function of a payout id, which throws RecipientDeleted, DecryptionError, or Error if
 *   payout or recipient do not belong to this connector and merchant
 */
export function createRecipientDecrypter(deps: RecipientDecrypterDeps) {
  const { payouts, recipients, encrypter, connector, log } = deps;
  return async (payout_id: string): Promise<RecipientDetails> => {
    const payout = await payouts.get(payout_id);
    if (payout === null) throw new Error('There is no such payout.');
    if (payout.connector !== connector || !isUnsent(payout.status)) {
      throw new Error('The payout is not one that this connector has to send.');
    }
    const { account_id, livemode, recipient_id } = payout;
    const recipient = await recipients.get(recipient_id);
    const isOwn = recipient?.account_id === account_id && recipient.livemode === livemode;
    if (recipient === null || !isOwn) throw new Error('There is no such recipient.');
    if (recipient.ciphertext === null) throw new RecipientDeleted();
    log.info({ payout_id, recipient_id }, 'recipient opened');
    const text = await encrypter.decrypt(recipient.ciphertext, recipientOwner(recipient_id));
    try {
      return Details.parse(JSON.parse(text));
    } catch {
      // The parser's own error would quote the details.
      throw new Error('The details of the recipient are not what this version writes.');
    }
  };
}

/**
 * Reads the text for the recipient's statement. @see docs/api.md#payouts
 * @returns function of a payout id, which throws Error for an unknown payout
 */
export function createReferenceReader({ payouts }: { payouts: Pick<PayoutStore, 'get'> }) {
  return async (payout_id: string): Promise<string | null> => {
    const payout = await payouts.get(payout_id);
    if (payout === null) throw new Error('There is no such payout.');
    return payout.reference;
  };
}

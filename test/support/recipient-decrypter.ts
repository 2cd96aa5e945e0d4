import { createRecipientDecrypter } from '../../connectors/contract/recipients';
import type { Encrypter } from '../../src/encryption/encrypter';
import type { RecipientStore } from '../../src/store/recipients';
import { storedPayout } from '../api/payout-setting';

/** Opens a recipient by its own id, as the connector of a payout to it would. */
export function recipientDecrypter(
  recipients: Pick<RecipientStore, 'get'>,
  encrypter: Pick<Encrypter, 'decrypt'>,
) {
  const connector = 'sandbox';
  const get = async (recipient_id: string) => {
    const { account_id = 'nobody' } = (await recipients.get(recipient_id)) ?? {};
    return storedPayout({ account_id }, { recipient_id, connector, status: 'created' });
  };
  const log = { info: () => undefined };
  return createRecipientDecrypter({ payouts: { get }, recipients, encrypter, connector, log });
}

import { createRecipientOpener } from '../../connectors/contract/recipients';
import type { Sealer } from '../../src/keys/seal';
import type { RecipientStore } from '../../src/store/recipients';
import { storedPayout } from '../api/payout-setting';

/** Opens a recipient by its own id, as the connector of a payout to it would. */
export function recipientOpener(
  recipients: Pick<RecipientStore, 'get'>,
  sealer: Pick<Sealer, 'open'>,
) {
  const connector = 'sandbox';
  const get = async (recipient_id: string) => {
    const { account_id = 'nobody' } = (await recipients.get(recipient_id)) ?? {};
    return storedPayout({ account_id }, { recipient_id, connector, status: 'created' });
  };
  const log = { info: () => undefined };
  return createRecipientOpener({ payouts: { get }, recipients, sealer, connector, log });
}

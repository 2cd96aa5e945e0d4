import { randomUUID } from 'node:crypto';
import { createEncrypter } from '../../src/encryption/encrypter';
import type { followKeyFile } from '../../src/encryption/service-keys';
import type { Stores } from '../../src/store';
import { endpointOwner } from '../../src/store/endpoints';

/** Opens merchants that have an endpoint and no account: their deliveries need nothing else. */
export function createMerchants(
  { endpoints }: Pick<Stores, 'endpoints'>,
  keys: ReturnType<typeof followKeyFile>,
) {
  const encrypter = createEncrypter(keys.seal);
  return async (url: string, secret = 'whsec_unused'): Promise<string> => {
    const account_id = `acct_${randomUUID()}`;
    const ciphertext = await encrypter.encrypt(secret, endpointOwner(account_id, false));
    await endpoints.set({ account_id, livemode: false, url, ciphertext, now: new Date(0) });
    return account_id;
  };
}

import { randomUUID } from 'node:crypto';
import { createEncrypter } from '../../src/encryption/encrypter';
import type { followKeyFile } from '../../src/encryption/service-keys';
import type { Stores } from '../../src/store';
import { secretOwner } from '../../src/store/endpoints';
import { toEndpointId } from './documents';

/** Opens merchants that have an endpoint and no account: their deliveries need nothing else. */
export function createMerchants(
  { endpoints }: Pick<Stores, 'endpoints'>,
  keys: ReturnType<typeof followKeyFile>,
) {
  const encrypter = createEncrypter(keys.seal);
  return async (url: string, secret = 'whsec_unused'): Promise<string> => {
    const account_id = `acct_${randomUUID()}`;
    const key = { account_id, livemode: false, endpoint_id: toEndpointId(account_id) };
    const ciphertext = await encrypter.encrypt(secret, secretOwner(key));
    await endpoints.set({ ...key, url, ciphertext, now: new Date(0) });
    return account_id;
  };
}

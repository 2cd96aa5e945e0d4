import { DecryptionError, type Encrypted, type Encrypter } from '../encryption/encrypter';
import { type ConnectorKeyDocument, connectorKeyOwner } from '../store/connector-keys';

const SECRETS_MAX = 1_000;

/** Error of a key whose secret this process's key file can't decrypt. */
export class UnreadableKey extends Error {
  override readonly name = 'UnreadableKey';
}

/** Creates a reader of connectors' secrets, with a cache; it throws UnreadableKey. */
export function createSecretReader(encrypter: Pick<Encrypter, 'decrypt'>) {
  const secrets = new Map<Encrypted, string>();
  return async ({ _id, sealed }: ConnectorKeyDocument): Promise<string> => {
    const cachedSecret = secrets.get(sealed);
    if (cachedSecret !== undefined) return cachedSecret;
    const secret = await decryptSecret(encrypter, _id, sealed);
    if (secrets.size >= SECRETS_MAX) secrets.clear();
    secrets.set(sealed, secret);
    return secret;
  };
}

async function decryptSecret(
  encrypter: Pick<Encrypter, 'decrypt'>,
  id: string,
  ciphertext: Encrypted,
): Promise<string> {
  try {
    return await encrypter.decrypt(ciphertext, connectorKeyOwner(id));
  } catch (error) {
    if (!(error instanceof DecryptionError)) throw error;
    throw new UnreadableKey(`The secret of ${id} can not be opened with this KEYS_FILE.`);
  }
}

import type {
  CallbackSignature,
  SignedCallback,
  VerificationFault,
} from '../domain/callback/signature';
import type { Encrypter } from '../encryption/encrypter';
import type { Stores } from '../store';
import { isSignatureValid } from './mac';
import { createSecretReader } from './secrets';

export interface CallbackCheckDeps {
  stores: { connectorKeys: Pick<Stores['connectorKeys'], 'get'> };
  encrypter: Pick<Encrypter, 'decrypt'>;
}

/**
 * Creates a function that returns the fault of a callback's signature, or undefined. It reads the
 * key each time, so a revocation takes effect at once.
 * @see docs/connectors.md#prove-who-sends
 * @returns a function that throws UnreadableKey if the secret could not be decrypted
 */
export function createCallbackCheck({ stores, encrypter }: CallbackCheckDeps) {
  const readSecret = createSecretReader(encrypter);
  return async (
    callback: SignedCallback,
    signature: CallbackSignature,
  ): Promise<VerificationFault | undefined> => {
    const key = await stores.connectorKeys.get(signature.key_id);
    if (key === null || key.connector !== callback.connector) return 'unknown_key';
    if (key.revoked_at !== null) return 'revoked_key';
    return isSignatureValid(await readSecret(key), callback, signature) ? undefined : 'mac_differs';
  };
}

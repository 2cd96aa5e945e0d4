import { createHmac, timingSafeEqual } from 'node:crypto';
import {
  type CallbackSignature,
  callbackText,
  type SignedCallback,
  type VerificationFault,
} from '../domain/banks/callback';
import { cacheDecrypted, DecryptionError, type Encrypter } from '../encryption/encrypter';
import type { Stores } from '../store';
import { type ConnectorKeyDocument, connectorKeyOwner } from '../store/keys';
import { verifySignature } from '../webhooks/attempt';

export interface ConnectorKey {
  key_id: string;
  /** The HMAC key is the whole text, including `cnsec_`. */
  secret: string;
}

/** Equal callbacks have equal signatures under one key. @see docs/connectors.md#prove-who-sends */
export function signCallback(
  { key_id, secret }: ConnectorKey,
  callback: SignedCallback,
): CallbackSignature {
  return { key_id, v1: hmac(secret, callback).toString('hex') };
}

export function isSignatureValid(
  secret: string,
  callback: SignedCallback,
  { v1 }: CallbackSignature,
): boolean {
  const [ours, theirs] = [hmac(secret, callback), Buffer.from(v1, 'hex')];
  return ours.length === theirs.length && timingSafeEqual(ours, theirs);
}

function hmac(secret: string, callback: SignedCallback): Buffer {
  return createHmac('sha256', secret).update(callbackText(callback)).digest();
}

/** This process's key file can't decrypt the secret. */
export class UnreadableKey extends Error {
  override readonly name = 'UnreadableKey';
}

export interface CallbackCheckDeps {
  stores: { connectorKeys: Pick<Stores['connectorKeys'], 'get'> };
  encrypter: Pick<Encrypter, 'decrypt'>;
}

/**
 * Creates a function that returns the fault of a signature, if any. It reads the key each time, so
 * that a revocation takes effect at once, and throws UnreadableKey.
 * @see docs/connectors.md#prove-who-sends
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

interface SignedMessage {
  connector: string;
  /** `t=<unix seconds>,v1=<hex HMAC-SHA256 of "t.body">`. */
  header: string | undefined;
  body: string | Buffer;
}

interface SignatureDeps {
  stores: { connectorKeys: Pick<Stores['connectorKeys'], 'current'> };
  encrypter: Pick<Encrypter, 'decrypt'>;
  now: () => Date;
}

/**
 * Creates a function that finds the unrevoked key that signed a message at most 300 seconds ago,
 * and throws UnreadableKey if a key that could not be decrypted may match.
 * @see docs/connectors.md#callbacks-over-http
 */
export function createSignatureCheck({ stores, encrypter, now }: SignatureDeps) {
  const readSecret = createSecretReader(encrypter);
  return async ({ connector, header, body }: SignedMessage): Promise<ConnectorKey | undefined> => {
    const seconds = Math.floor(now().getTime() / 1_000);
    let readError: UnreadableKey | undefined;
    for (const key of await stores.connectorKeys.current(connector)) {
      try {
        const secret = await readSecret(key);
        if (verifySignature({ header, body, secret, now: seconds })) {
          return { key_id: key._id, secret };
        }
      } catch (error) {
        if (!(error instanceof UnreadableKey)) throw error;
        readError = error;
      }
    }
    if (readError === undefined) return undefined;
    throw readError;
  };
}

/** Creates a cached reader, which throws UnreadableKey. */
function createSecretReader(encrypter: Pick<Encrypter, 'decrypt'>) {
  const { decrypt } = cacheDecrypted(encrypter);
  return async ({ _id, ciphertext }: ConnectorKeyDocument): Promise<string> => {
    try {
      return await decrypt(ciphertext, connectorKeyOwner(_id));
    } catch (error) {
      if (!(error instanceof DecryptionError)) throw error;
      throw new UnreadableKey(`The secret of ${_id} can not be opened with this KEYS_FILE.`);
    }
  };
}

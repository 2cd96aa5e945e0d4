import type { Encrypter } from '../encryption/encrypter';
import type { Stores } from '../store';
import { signPayload, verifySignature } from '../webhooks/signature';
import type { ConnectorKey } from './mac';
import { createSecretReader, UnreadableKey } from './secrets';

export interface SignedMessage {
  connector: string;
  /** `t=<unix seconds>,v1=<hex HMAC-SHA256 of "t.body">`. */
  header: string | undefined;
  /** Raw bytes received. */
  body: string | Buffer;
}

export interface SignatureDeps {
  stores: { connectorKeys: Pick<Stores['connectorKeys'], 'current'> };
  encrypter: Pick<Encrypter, 'decrypt'>;
  now: () => Date;
}

/** Signs like a connector. The key is the whole secret as text, including `cnsec_`. */
export const signMessage: (secret: string, body: string | Buffer, atSeconds: number) => string =
  signPayload;

/**
 * Creates a function that finds the connector's unrevoked key that made a message's signature, at
 * most 300 seconds ago. An unknown connector has no key.
 * @see docs/connectors.md#callbacks-over-http
 * @returns a function that throws UnreadableKey if a key that could not be decrypted may match
 */
export function createSignatureCheck({ stores, encrypter, now }: SignatureDeps) {
  const readSecret = createSecretReader(encrypter);
  return async (message: SignedMessage): Promise<ConnectorKey | undefined> => {
    const { connector, header, body } = message;
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

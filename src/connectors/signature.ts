import type { Sealer } from '../keys/seal';
import type { Stores } from '../store';
import { signPayload, verifySignature } from '../webhooks/signature';
import type { ConnectorKey } from './mac';
import { createSecretReader, UnreadableKey } from './secrets';

/** Message as it came from one who says to be a connector. */
export interface SignedMessage {
  connector: string;
  /** The `Connector-Signature` header: `t=<unix seconds>,v1=<hex HMAC-SHA256 of "t.body">`. */
  header: string | undefined;
  /** The raw bytes received. */
  body: string | Buffer;
}

export interface SignatureDeps {
  stores: { connectorKeys: Pick<Stores['connectorKeys'], 'current'> };
  sealer: Pick<Sealer, 'open'>;
  now: () => Date;
}

/** Signs as a connector does. The key is the whole secret as text, its `cnsec_` included. */
export const signMessage: (secret: string, body: string | Buffer, atSeconds: number) => string =
  signPayload;

/**
 * Makes the check of who sent a message: it is signed under one of the connector's keys that is not
 * revoked, within 300 seconds. An unknown connector has no key.
 * @see docs/connectors.md#callbacks-over-http
 * @returns a function that gives the key that fits, undefined where none does; it throws
 *   UnreadableKey when one that could not be opened may be the one
 */
export function createSignatureCheck({ stores, sealer, now }: SignatureDeps) {
  const secretOf = createSecretReader(sealer);
  return async (message: SignedMessage): Promise<ConnectorKey | undefined> => {
    const { connector, header, body } = message;
    const seconds = Math.floor(now().getTime() / 1_000);
    let unreadable: UnreadableKey | undefined;
    for (const key of await stores.connectorKeys.current(connector)) {
      try {
        const secret = await secretOf(key);
        if (verifySignature({ header, body, secret, now: seconds })) {
          return { key_id: key._id, secret };
        }
      } catch (error) {
        if (!(error instanceof UnreadableKey)) throw error;
        unreadable = error;
      }
    }
    if (unreadable === undefined) return undefined;
    throw unreadable;
  };
}

import { SealError, type Sealed, type Sealer } from '../keys/seal';
import type { Stores } from '../store';
import { type ConnectorKeyDocument, connectorKeyOwner } from '../store/connector-keys';
import { signPayload, verifySignature } from '../webhooks/signature';

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

/** Secrets that a process keeps open, which spares opening them for each message. */
const OPENED_MAX = 1_000;

/** Error of a key whose secret the key file of this process does not open. */
export class UnreadableKey extends Error {
  override readonly name = 'UnreadableKey';
}

/** Signs as a connector does. The key is the whole secret as text, its `cnsec_` included. */
export const signMessage: (secret: string, body: string | Buffer, atSeconds: number) => string =
  signPayload;

/**
 * Makes the check of who sent a message: it is signed under one of the connector's keys that is not
 * revoked, within 300 seconds. An unknown connector has no key.
 * @see docs/connectors.md#callbacks-over-http
 * @returns a function that gives the key's id, undefined where nothing fits; it throws UnreadableKey
 *   when a key that could not be opened may be the one
 */
export function createSignatureCheck({ stores, sealer, now }: SignatureDeps) {
  const opened = new Map<Sealed, string>();
  const open = async ({ _id, sealed }: ConnectorKeyDocument): Promise<string> => {
    const known = opened.get(sealed);
    if (known !== undefined) return known;
    const secret = await sealer.open(sealed, connectorKeyOwner(_id));
    if (opened.size >= OPENED_MAX) opened.clear();
    opened.set(sealed, secret);
    return secret;
  };
  return async ({ connector, header, body }: SignedMessage): Promise<string | undefined> => {
    const seconds = Math.floor(now().getTime() / 1_000);
    let unreadable: string | undefined;
    for (const key of await stores.connectorKeys.current(connector)) {
      try {
        const secret = await open(key);
        if (verifySignature({ header, body, secret, now: seconds })) return key._id;
      } catch (error) {
        if (!(error instanceof SealError)) throw error;
        unreadable = key._id;
      }
    }
    if (unreadable === undefined) return undefined;
    throw new UnreadableKey(`The secret of ${unreadable} can not be opened with this KEYS_FILE.`);
  };
}

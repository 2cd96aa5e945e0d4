import { SealError, type Sealed, type Sealer } from '../keys/seal';
import { type ConnectorKeyDocument, connectorKeyOwner } from '../store/connector-keys';

/** Secrets that a process keeps open, which spares opening them for each message. */
const OPENED_MAX = 1_000;

/** Error of a key whose secret the key file of this process does not open. */
export class UnreadableKey extends Error {
  override readonly name = 'UnreadableKey';
}

/**
 * Makes the reader of connectors' secrets, which remembers those that it has opened.
 * @returns a function that throws UnreadableKey where the key file does not open the secret
 */
export function createSecretReader(sealer: Pick<Sealer, 'open'>) {
  const opened = new Map<Sealed, string>();
  return async ({ _id, sealed }: ConnectorKeyDocument): Promise<string> => {
    const known = opened.get(sealed);
    if (known !== undefined) return known;
    const secret = await opensOrFails(sealer, _id, sealed);
    if (opened.size >= OPENED_MAX) opened.clear();
    opened.set(sealed, secret);
    return secret;
  };
}

async function opensOrFails(
  sealer: Pick<Sealer, 'open'>,
  id: string,
  sealed: Sealed,
): Promise<string> {
  try {
    return await sealer.open(sealed, connectorKeyOwner(id));
  } catch (error) {
    if (!(error instanceof SealError)) throw error;
    throw new UnreadableKey(`The secret of ${id} can not be opened with this KEYS_FILE.`);
  }
}

import type { CallbackMac, SenderFault, ToldCallback } from '../domain/callback-mac';
import type { Sealer } from '../keys/seal';
import type { Stores } from '../store';
import { macFits } from './mac';
import { createSecretReader } from './secrets';

export interface SenderCheckDeps {
  stores: { connectorKeys: Pick<Stores['connectorKeys'], 'get'> };
  sealer: Pick<Sealer, 'open'>;
}

/**
 * Makes the check of who sent a callback: its mac is of exactly these facts, under a key of its
 * connector that is not revoked now. The key is read each time, so a revoked one is dead at once.
 * @see docs/connectors.md#prove-who-sends
 * @returns a function that gives the reason why the sender is not known, undefined when it is; it
 *   throws UnreadableKey when the secret could not be opened
 */
export function createSenderCheck({ stores, sealer }: SenderCheckDeps) {
  const secretOf = createSecretReader(sealer);
  return async (told: ToldCallback, mac: CallbackMac): Promise<SenderFault | undefined> => {
    const key = await stores.connectorKeys.get(mac.key_id);
    if (key === null || key.connector !== told.connector) return 'unknown_key';
    if (key.revoked_at !== null) return 'revoked_key';
    return macFits(await secretOf(key), told, mac) ? undefined : 'mac_differs';
  };
}

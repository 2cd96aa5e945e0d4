import { FIRST_KEY, readKeys } from '../config';
import { assertNever } from '../domain/assert';
import { addKey, removeKey } from '../keys/file';
import type { RingName } from '../keys/ring';
import type { Stores } from '../store';
import { CliFailure } from './failure';
import { changing, checkRetirable, type KeyFileDeps, locked, OF_ALL, settled } from './key-changes';

/** Rings whose keys seal nothing: they derive the links of pages, and mark requests. */
export const LINK_RINGS = ['pay_token', 'fingerprint'] as const satisfies readonly RingName[];
export type LinkRing = (typeof LINK_RINGS)[number];

export interface LinkKeyDeps extends KeyFileDeps {
  stores: Pick<Stores, 'payments' | 'crypto_payments' | 'idempotency'>;
}

/** Keys of one ring, with what each is still needed for. */
export interface ShownRing {
  current: string;
  /** The newest last. `in_use`: pages that may still be opened, or idempotency keys that count. */
  keys: { kid: string; in_use: number }[];
}

/** Counts what each key of a ring is still needed for. */
export async function showLinkKeys(deps: LinkKeyDeps, ring: LinkRing): Promise<ShownRing> {
  const { current, keys } = readKeys(deps.keysFile)[ring];
  const shown = Object.keys(keys).map(async (kid) => ({
    kid,
    in_use: await inUse(deps, ring, kid),
  }));
  return { current, keys: await Promise.all(shown) };
}

/**
 * Makes a new key the current one of a ring. Nothing is written anew: links and marks of the others
 * go on until they are retired.
 * @returns its name
 * @throws CliFailure `keys_file_busy`, `keys_file_not_written`
 */
export async function rotateLinkKeys(deps: LinkKeyDeps, ring: LinkRing): Promise<string> {
  return await locked(deps, async () => {
    const { current } = readKeys(deps.keysFile)[ring];
    await deps.audit({ act: 'keys.rotated', ...OF_ALL, target: ring, before: { current } });
    return changing(() => addKey(deps.keysFile, ring, deps.now()));
  });
}

/**
 * Removes a key that nothing needs any more. Its links lead nowhere from then on.
 * @returns the keys that are left
 * @throws CliFailure `sealing_key_not_found`, `sealing_key_current`, `sealing_key_in_use`,
 *   `keys_file_busy`, `keys_file_not_written`
 */
export async function retireLinkKey(
  deps: LinkKeyDeps,
  ring: LinkRing,
  kid: string,
): Promise<string[]> {
  return await locked(deps, async () => {
    const held = readKeys(deps.keysFile)[ring];
    checkRetirable(held, kid, `keys rotate --ring ${ring}`);
    await refuseInUse(deps, ring, kid);
    await settled(deps);
    await refuseInUse(deps, ring, kid);
    await deps.audit({ act: 'keys.retired', ...OF_ALL, target: `${ring}/${kid}` });
    changing(() => removeKey(deps.keysFile, ring, kid));
    return Object.keys(held.keys).filter((other) => other !== kid);
  });
}

async function refuseInUse(deps: LinkKeyDeps, ring: LinkRing, kid: string): Promise<void> {
  const count = await inUse(deps, ring, kid);
  if (count === 0) return;
  const what =
    ring === 'pay_token' ? 'pages can be opened by its links' : 'idempotency keys are marked by it';
  throw new CliFailure('sealing_key_in_use', `${kid} is in use: ${count} ${what}.`);
}

/** Claims come first, so that one that becomes a payment meanwhile is counted as that. */
async function inUse({ stores, now }: LinkKeyDeps, ring: LinkRing, kid: string): Promise<number> {
  const { payments, crypto_payments, idempotency } = stores;
  const named = kid === FIRST_KEY ? undefined : kid;
  switch (ring) {
    case 'fingerprint':
      return await idempotency.markedBy(named, now());
    case 'pay_token': {
      const accepted = await idempotency.linkedBy(named);
      const at = now().toISOString();
      const written = [payments.linkedBy(named, at), crypto_payments.linkedBy(named, at)];
      return (await Promise.all(written)).reduce((total, each) => total + each, accepted);
    }
    default:
      return assertNever(ring);
  }
}

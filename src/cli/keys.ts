import { readKeys } from '../config';
import type { Environment } from '../domain/task-queues';
import { addKey, removeKey } from '../keys/file';
import { addPair, publishPairs, readPairs, removePair } from '../keys/recipient-files';
import { RECIPIENT_RINGS } from '../keys/recipient-rings';
import { CliFailure } from './failure';
import { changing, checkRetirable, type KeyFileDeps, locked, OF_ALL, settled } from './key-changes';
import { currentKeys, sealersOf } from './key-sealers';
import { type Held, heldByKeys, heldByOthers, NOTHING_HELD, resealAll } from './reseal';
import type { SealedStores } from './resealing';

export interface KeyDeps extends KeyFileDeps {
  stores: SealedStores;
}

/** Result of a rotation. */
export interface Resealing {
  /** The current key. */
  kid: string;
  resealed: number;
  /** Number of values that other keys have sealed: 0 when the rotation is complete. */
  remaining: number;
}

export interface ShownKeys {
  current: string;
  /** Current keys of the rings that recipients have of their own. */
  recipients?: Record<Environment, string>;
  /** Keys of the file, the newest last, and then keys that values need and the file lacks. */
  keys: ({ kid: string } & Held)[];
}

/** Counts of the values that each key has sealed. */
export async function showKeys(deps: KeyDeps): Promise<ShownKeys> {
  const { current, keys } = readKeys(deps.keysFile).seal;
  const held = await heldByKeys(deps.stores, sealersOf(deps).sealer);
  const kids = new Set([...Object.keys(keys), ...pairNames(deps), ...held.keys()]);
  const own = deps.keysDir === undefined ? {} : { recipients: ownKeys(deps.keysDir) };
  return {
    current,
    ...own,
    keys: [...kids].map((kid) => ({ kid, ...(held.get(kid) ?? NOTHING_HELD) })),
  };
}

function ownKeys(dir: string): Record<Environment, string> {
  return { sandbox: readPairs(dir, 'sandbox').current, live: readPairs(dir, 'live').current };
}

function pairNames({ keysDir: dir }: KeyDeps): string[] {
  if (dir === undefined) return [];
  const rings = [readPairs(dir, 'sandbox'), readPairs(dir, 'live')];
  return rings.flatMap(({ keys }) => Object.keys(keys));
}

/**
 * Makes a new key the current one, and seals with it the values of the others.
 * @param force begin although an earlier rotation is unfinished
 * @param ring environment whose recipients have a ring of their own; the key file's when not given
 * @throws CliFailure `rotation_unfinished`, `keys_file_busy`, `keys_file_not_written`
 */
export async function rotateKeys(
  deps: KeyDeps,
  force: boolean,
  ring?: Environment,
): Promise<Resealing> {
  return await locked(deps, async () => {
    const before = currentKeys(deps);
    const left = heldByOthers(await heldByKeys(deps.stores, sealersOf(deps).sealer), before);
    if (left > 0 && !force) {
      throw new CliFailure(
        'rotation_unfinished',
        `The last rotation is not complete: other keys than ${before.kid} still hold ${left} ` +
          'values. `keys reseal` goes on with it.',
      );
    }
    const current = ring === undefined ? before.kid : sealersOf(deps).recipients[ring].kid;
    const target = ring === undefined ? null : RECIPIENT_RINGS[ring];
    await deps.audit({ act: 'keys.rotated', ...OF_ALL, target, before: { current } });
    const kid = changing(() =>
      ring === undefined
        ? addKey(deps.keysFile, 'seal', deps.now())
        : addPair(dirOf(deps), ring, deps.now()),
    );
    deps.progress(`${kid} is the current key`);
    return { ...(await reseal(deps)), kid };
  });
}

/** Goes on with a rotation. @throws CliFailure `keys_file_busy` */
export async function resealKeys(deps: KeyDeps): Promise<Resealing> {
  return await locked(deps, () => reseal(deps));
}

/**
 * Removes a key that holds nothing.
 * @returns the keys of its ring that are left
 * @throws CliFailure `sealing_key_not_found`, `sealing_key_current`, `sealing_key_in_use`,
 *   `keys_file_busy`, `keys_file_not_written`
 */
export async function retireKey(deps: KeyDeps, kid: string): Promise<string[]> {
  return await locked(deps, async () => {
    const own = ringNamedIn(deps, kid);
    const { current, keys } =
      own === undefined ? readKeys(deps.keysFile).seal : readPairs(dirOf(deps), own);
    const rotate = own === undefined ? 'keys rotate' : `keys rotate --ring ${RECIPIENT_RINGS[own]}`;
    checkRetirable({ current, keys }, kid, rotate);
    finishPairs(deps);
    await refuseInUse(deps, kid);
    await settled(deps);
    await refuseInUse(deps, kid);
    await deps.audit({ act: 'keys.retired', ...OF_ALL, target: kid });
    changing(() =>
      own === undefined ? removeKey(deps.keysFile, 'seal', kid) : removePair(dirOf(deps), own, kid),
    );
    return Object.keys(keys).filter((other) => other !== kid);
  });
}

/** Ring of recipients whose key a name is; undefined for the key file's, or without such rings. */
function ringNamedIn({ keysDir }: KeyDeps, kid: string): Environment | undefined {
  if (keysDir === undefined) return undefined;
  if (kid.startsWith(`${RECIPIENT_RINGS.live}:`)) return 'live';
  return kid.startsWith(`${RECIPIENT_RINGS.sandbox}:`) ? 'sandbox' : undefined;
}

function dirOf({ keysDir }: KeyDeps): string {
  if (keysDir !== undefined) return keysDir;
  throw new CliFailure('keys_dir_missing', 'Recipients have no ring of their own: set KEYS_DIR.');
}

async function refuseInUse(deps: KeyDeps, kid: string): Promise<void> {
  const held = (await heldByKeys(deps.stores, sealersOf(deps).sealer)).get(kid);
  if (held === undefined) return;
  throw new CliFailure(
    'sealing_key_in_use',
    `${kid} still holds ${held.recipients} recipients, ${held.endpoints} webhook endpoints, ` +
      `${held.claims} recipients not written yet, ${held.users} second factors, ` +
      `${held.connector_keys} connector keys and ${held.payer_keys} keys of payers. ` +
      '`keys reseal` moves them to the current key.',
  );
}

/** Ends a rotation of recipients' rings that was cut off between its files, before it is waited for. */
function finishPairs({ keysDir }: KeyDeps): void {
  if (keysDir !== undefined) changing(() => publishPairs(keysDir));
}

async function reseal(deps: KeyDeps): Promise<Resealing> {
  finishPairs(deps);
  await settled(deps);
  const { stores, now, progress } = deps;
  const sealers = sealersOf(deps);
  const resealed = await resealAll({ stores, ...sealers, now, progress });
  const remaining = heldByOthers(await heldByKeys(stores, sealers.sealer), currentKeys(deps));
  return { kid: sealers.kid, resealed, remaining };
}

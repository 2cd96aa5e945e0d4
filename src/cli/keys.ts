import { statSync } from 'node:fs';
import { readKeys } from '../config';
import { addSealingKey, lockKeyFile, removeSealingKey } from '../keys/file';
import { followKeys, LOOK_EVERY_MS } from '../keys/ring';
import { createSealer } from '../keys/seal';
import { StackFailure } from '../os/failure';
import type { Audit } from '../store/audit';
import { reasonOf } from '../temporal/in-time';
import { CliFailure } from './failure';
import {
  type Held,
  heldByKeys,
  heldByOthers,
  NOTHING_HELD,
  resealAll,
  type SealedStores,
} from './reseal';

/**
 * Longest write of a running process: two tries, each of 2 s for a connection, 2 s to find the
 * database and 5 s to hear from it. @see src/mongo.ts
 */
const WRITE_MS_MAX = 18_000;

/**
 * Time after which nothing sealed with an earlier key is written any more: every process has read
 * the file by then, and the values that it had sealed before are stored or given up.
 */
const SETTLED_MS = LOOK_EVERY_MS + WRITE_MS_MAX;

/** Owner of a line about the installation. */
const OF_ALL = { account_id: null, livemode: null } as const;

export interface KeyDeps {
  stores: SealedStores;
  audit: Audit;
  /** Path of a usable key file. */
  keysFile: string;
  now: () => Date;
  wait: (ms: number) => Promise<void>;
  progress: (line: string) => void;
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
  /** Keys of the file, the newest last, and then keys that values need and the file lacks. */
  keys: ({ kid: string } & Held)[];
}

/** Counts of the values that each key has sealed. */
export async function showKeys({ stores, keysFile }: KeyDeps): Promise<ShownKeys> {
  const { current, keys } = readKeys(keysFile).seal;
  const held = await heldByKeys(stores, sealerOf(keysFile));
  const kids = new Set([...Object.keys(keys), ...held.keys()]);
  return { current, keys: [...kids].map((kid) => ({ kid, ...(held.get(kid) ?? NOTHING_HELD) })) };
}

/**
 * Makes a new key the current one, and seals with it the values of the others.
 * @param force begin although an earlier rotation is unfinished
 * @throws CliFailure `rotation_unfinished`, `keys_file_busy`, `keys_file_not_written`
 */
export async function rotateKeys(deps: KeyDeps, force: boolean): Promise<Resealing> {
  return await locked(deps, async () => {
    const { current } = readKeys(deps.keysFile).seal;
    const left = heldByOthers(await heldByKeys(deps.stores, sealerOf(deps.keysFile)), current);
    if (left > 0 && !force) {
      throw new CliFailure(
        'rotation_unfinished',
        `The last rotation is not complete: other keys than ${current} still hold ${left} ` +
          'values. `keys reseal` goes on with it.',
      );
    }
    await deps.audit({ act: 'keys.rotated', ...OF_ALL, target: null, before: { current } });
    const kid = changing(() => addSealingKey(deps.keysFile, deps.now()));
    deps.progress(`${kid} is the current key`);
    return await reseal(deps);
  });
}

/** Goes on with a rotation. @throws CliFailure `keys_file_busy` */
export async function resealKeys(deps: KeyDeps): Promise<Resealing> {
  return await locked(deps, () => reseal(deps));
}

/**
 * Removes a key that holds nothing.
 * @returns the keys that are left
 * @throws CliFailure `sealing_key_not_found`, `sealing_key_current`, `sealing_key_in_use`,
 *   `keys_file_busy`, `keys_file_not_written`
 */
export async function retireKey(deps: KeyDeps, kid: string): Promise<string[]> {
  return await locked(deps, async () => {
    const { current, keys } = readKeys(deps.keysFile).seal;
    if (!Object.hasOwn(keys, kid)) {
      throw new CliFailure('sealing_key_not_found', `There is no key ${kid} in the key file.`);
    }
    if (kid === current) {
      const message = `${kid} is the current key: \`keys rotate\` makes another one.`;
      throw new CliFailure('sealing_key_current', message);
    }
    await refuseInUse(deps, kid);
    await settled(deps);
    await refuseInUse(deps, kid);
    await deps.audit({ act: 'keys.retired', ...OF_ALL, target: kid });
    changing(() => removeSealingKey(deps.keysFile, kid));
    return Object.keys(keys).filter((other) => other !== kid);
  });
}

async function refuseInUse({ stores, keysFile }: KeyDeps, kid: string): Promise<void> {
  const held = (await heldByKeys(stores, sealerOf(keysFile))).get(kid);
  if (held === undefined) return;
  throw new CliFailure(
    'sealing_key_in_use',
    `${kid} still holds ${held.recipients} recipients, ${held.endpoints} webhook endpoints, ` +
      `${held.claims} recipients not written yet, ${held.users} second factors, ` +
      `${held.connector_keys} connector keys and ${held.payer_keys} keys of payers. ` +
      '`keys reseal` moves them to the current key.',
  );
}

async function reseal(deps: KeyDeps): Promise<Resealing> {
  await settled(deps);
  const { stores, keysFile, now, progress } = deps;
  const kid = readKeys(keysFile).seal.current;
  const sealer = sealerOf(keysFile);
  const resealed = await resealAll({ stores, sealer, kid, now, progress });
  const remaining = heldByOthers(await heldByKeys(stores, sealer), kid);
  return { kid, resealed, remaining };
}

/** Waits until no process seals with an earlier key, by the time of the file itself. */
async function settled({ keysFile, now, wait, progress }: KeyDeps): Promise<void> {
  const age = Math.max(0, now().getTime() - statSync(keysFile).mtimeMs);
  const left = Math.ceil(SETTLED_MS - age);
  if (left <= 0) return;
  progress(
    `waiting ${Math.ceil(left / 1_000)} s: until then a running process may still store what it ` +
      'sealed with the keys as they were',
  );
  await wait(left);
}

function sealerOf(keysFile: string) {
  return createSealer(followKeys(keysFile));
}

async function locked<T>({ keysFile }: KeyDeps, work: () => Promise<T>): Promise<T> {
  const release = changing(() => lockKeyFile(keysFile));
  try {
    return await work();
  } finally {
    release();
  }
}

/** Runs a change of the file, and turns its failures into the command line's. */
function changing<T>(change: () => T): T {
  try {
    return change();
  } catch (error) {
    if (error instanceof StackFailure) throw new CliFailure('keys_file_busy', error.message);
    const message = `The key file can not be changed: ${reasonOf(error)}`;
    throw new CliFailure('keys_file_not_written', message);
  }
}

import { randomBytes } from 'node:crypto';
import {
  closeSync,
  existsSync,
  fchmodSync,
  fchownSync,
  fstatSync,
  fsyncSync,
  openSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { z } from 'zod';
import { FIRST_KEY } from '../config';
import { StackFailure } from '../os/failure';
import { tryLock } from '../os/lock';
import type { RingName } from './ring';

/**
 * Finds the service's key file, or makes it at the first start (mode 0600). Without it, values that
 * were sealed can't be opened any more.
 * @throws StackFailure when there is data from before and the file is gone
 */
export function keysFile(dataDir: string): string {
  const path = join(dataDir, 'keys.json');
  if (!existsSync(path)) {
    if (existsSync(join(dataDir, 'mongodb'))) {
      throw new StackFailure(
        `${path} is gone, but there is data that was sealed with it.\n` +
          'Put the file back from your backup, or start afresh with another DATA_DIR.',
      );
    }
    writeKeys(path, {
      pay_token: newKey(),
      fingerprint: newKey(),
      seal: { current: 'k1', keys: { k1: newKey() } },
    });
  }
  return path;
}

/**
 * Locks the file while keys are changed or values sealed anew: another process would seal with a
 * key that this one may be about to retire. A lock whose process was killed does not count.
 * @returns a function that gives the lock back
 * @throws StackFailure when another process is at it
 */
export function lockKeyFile(path: string): () => void {
  const { held, release } = tryLock(`${realpathSync(path)}.lock`);
  if (held === undefined) return release;
  throw new StackFailure(`Process ${held.pid} on ${held.host} is changing the keys of ${path}.`);
}

const Ring = z.looseObject({ current: z.string(), keys: z.record(z.string(), z.string()) });
type Ring = z.infer<typeof Ring>;

/** File with its unknown fields, which a change leaves as they are. */
const KeyFile = z.looseObject({
  pay_token: z.union([z.string(), Ring]),
  fingerprint: z.union([z.string(), Ring]),
  seal: Ring,
});

/**
 * Adds a key to a ring, current from now on; the others stay, for what there is of them.
 * @returns its name: the day, and a suffix that no other key of that day has
 */
export function addKey(path: string, name: RingName, now: Date): string {
  const file = readKeyFile(path);
  const ring = ringOf(file[name]);
  const kid = newKid(now);
  const next = { ...ring, current: kid, keys: { ...ring.keys, [kid]: newKey() } };
  writeKeys(path, { ...file, [name]: next });
  return kid;
}

/** Name of a new key: the day, and a suffix that no other key of that day has. */
export function newKid(now: Date): string {
  const day = now.toISOString().slice(0, 'YYYY-MM-DD'.length).replaceAll('-', '');
  return `k${day}-${randomBytes(4).toString('hex')}`;
}

/** Removes a key for good, never the current one: what it sealed or signed is lost. */
export function removeKey(path: string, name: RingName, kid: string): void {
  const file = readKeyFile(path);
  const ring = ringOf(file[name]);
  if (ring.current === kid) throw new Error(`${kid} is the current key.`);
  const { [kid]: _removed, ...keys } = ring.keys;
  writeKeys(path, { ...file, [name]: { ...ring, keys } });
}

/** A key that stands alone is the first of its ring. */
function ringOf(value: string | Ring): Ring {
  return typeof value === 'string' ? { current: FIRST_KEY, keys: { [FIRST_KEY]: value } } : value;
}

function readKeyFile(path: string): z.infer<typeof KeyFile> {
  return KeyFile.parse(JSON.parse(readFileSync(path, 'utf8')));
}

function writeKeys(path: string, keys: object): void {
  writeKeyFile(path, `${JSON.stringify(keys, null, 2)}\n`);
}

/**
 * Replaces the file in one step, readable by its owner only. It is on the disk before a key seals
 * anything, since a power failure that took the key would take its values along.
 */
export function writeKeyFile(path: string, text: string, mode = 0o600): void {
  const target = existsSync(path) ? realpathSync(path) : path;
  const next = `${target}.${process.pid}.next`;
  const file = openSync(next, 'w', mode);
  try {
    fchmodSync(file, mode);
    keepOwner(file, target);
    writeFileSync(file, text);
    fsyncSync(file);
    renameSync(next, target);
  } finally {
    closeSync(file);
    rmSync(next, { force: true });
  }
  syncFolder(dirname(target));
}

/** Keeps the file's owner: changed by root, it must still be the service's. */
function keepOwner(file: number, target: string): void {
  const owner = statSync(target, { throwIfNoEntry: false });
  const mine = fstatSync(file);
  if (owner === undefined || (owner.uid === mine.uid && owner.gid === mine.gid)) return;
  fchownSync(file, owner.uid, owner.gid);
}

function syncFolder(path: string): void {
  const folder = openSync(path, 'r');
  try {
    fsyncSync(folder);
  } finally {
    closeSync(folder);
  }
}

function newKey(): string {
  return randomBytes(32).toString('base64url');
}

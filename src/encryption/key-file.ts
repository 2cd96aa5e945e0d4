import { isUtf8 } from 'node:buffer';
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
import { dirname } from 'node:path';
import { z } from 'zod';
import { OperationalError } from '../base/errors';
import { tryLock } from '../base/file-lock';

export const KEY_BYTES = 32;

export const NOT_RANDOM =
  'must be random bytes, not text or a pattern: docs/operations.md says how to make one';

/** Random bytes, or the steps between them, have fewer distinct values about once in 10^11 keys. */
const DISTINCT_MIN = 19;

/** Whether bytes may be random: not text, nor a repeated byte, word or step. */
export function mayBeRandom(key: Buffer): boolean {
  const text = key.toString('base64url');
  const steps = key.map((byte, index) => byte - (key[index - 1] ?? 0)).subarray(1);
  // A key in one case is often words.
  const isOneCase = text === text.toLowerCase() || text === text.toUpperCase();
  const isText = isUtf8(key) && !/[\p{Cc}\p{Cn}]/u.test(key.toString());
  return (
    [key, steps].every((bytes) => new Set(bytes).size >= DISTINCT_MIN) && !isOneCase && !isText
  );
}

export function newRandomKey(): Buffer {
  for (;;) {
    const key = randomBytes(KEY_BYTES);
    if (mayBeRandom(key)) return key;
  }
}

export function createKeyFile(path: string): void {
  const seal = { current: 'k1', keys: { k1: newKey() } };
  writeKeys(path, { pay_token: newKey(), fingerprint: newKey(), seal });
}

/**
 * Locks the file while keys change or values are re-encrypted: another process could encrypt with a
 * key that is about to be retired.
 * @returns a function that releases the lock
 * @throws OperationalError when another process has the lock
 */
export function lockKeyFile(path: string): () => void {
  const { holder, release } = tryLock(`${realpathSync(path)}.lock`);
  if (holder === undefined) return release;
  throw new OperationalError(
    `Process ${holder.pid} on ${holder.host} is changing the keys of ${path}.`,
  );
}

const StoredKeyFile = z.looseObject({
  seal: z.looseObject({ current: z.string(), keys: z.record(z.string(), z.string()) }),
});

/** Adds a key, which becomes current. @returns its name */
export function addKey(path: string, now: Date): string {
  const { seal, ...others } = readStoredKeys(path);
  const kid = newKid(now);
  const keys = { ...seal.keys, [kid]: newKey() };
  writeKeys(path, { ...others, seal: { ...seal, current: kid, keys } });
  return kid;
}

/** Values that the key encrypted are lost. */
export function removeKey(path: string, kid: string): void {
  const { seal, ...others } = readStoredKeys(path);
  if (seal.current === kid) throw new Error(`${kid} is the current key.`);
  const { [kid]: _removed, ...keys } = seal.keys;
  writeKeys(path, { ...others, seal: { ...seal, keys } });
}

function readStoredKeys(path: string): z.infer<typeof StoredKeyFile> {
  return StoredKeyFile.parse(JSON.parse(readFileSync(path, 'utf8')));
}

function writeKeys(path: string, keys: object): void {
  writeKeyFile(path, `${JSON.stringify(keys, null, 2)}\n`);
}

function newKey(): string {
  return newRandomKey().toString('base64url');
}

export function newKid(now: Date): string {
  const day = now.toISOString().slice(0, 'YYYY-MM-DD'.length).replaceAll('-', '');
  return `k${day}-${randomBytes(4).toString('hex')}`;
}

/**
 * Replaces a key file in one step. It is on the disk before a key encrypts a value, which a power
 * failure would otherwise lose.
 */
export function writeKeyFile(path: string, text: string, mode = 0o600): void {
  const target = existsSync(path) ? realpathSync(path) : path;
  const next = `${target}.${process.pid}.next`;
  const file = openSync(next, 'w', mode);
  try {
    fchmodSync(file, mode);
    // The service must still read the file after a change by root.
    const owner = statSync(target, { throwIfNoEntry: false });
    const { uid, gid } = fstatSync(file);
    if (owner && (owner.uid !== uid || owner.gid !== gid)) fchownSync(file, owner.uid, owner.gid);
    writeFileSync(file, text);
    fsyncSync(file);
    renameSync(next, target);
  } finally {
    closeSync(file);
    rmSync(next, { force: true });
  }
  const folder = openSync(dirname(target), 'r');
  try {
    fsyncSync(folder);
  } finally {
    closeSync(folder);
  }
}

const ANYBODY_READS = 0o004;
const GROUP_READS = 0o040;

function findReaders(path: string): 'everybody' | 'its group' | undefined {
  const { mode, uid } = statSync(path);
  if (mode & ANYBODY_READS) return 'everybody';
  // A mounted secret has another owner, and the process reads it through its group.
  if (mode & GROUP_READS && uid === process.getuid?.()) return 'its group';
  return undefined;
}

/** @throws Error when the file is world-readable */
export function refuseWorldReadable(path: string): void {
  if (findReaders(path) !== 'everybody') return;
  throw new Error(`Everybody may read ${path}: chmod 600 (or 440 for a mounted secret).`);
}

export interface WarningLog {
  warn: (facts: object, message: string) => void;
}

export function warnOfReaders(path: string, log: WarningLog): void {
  const readers = findReaders(path);
  if (readers !== undefined) log.warn({ path, readers }, 'others can read the key file');
}

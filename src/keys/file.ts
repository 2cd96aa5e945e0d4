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
import { StackFailure } from '../os/failure';
import { tryLock } from '../os/lock';

/**
 * The path of the service's key file, made at the first start (mode 0600). Whoever loses it can
 * no longer open what was sealed with it.
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
    writeKeyFile(path, {
      pay_token: newKey(),
      fingerprint: newKey(),
      seal: { current: 'k1', keys: { k1: newKey() } },
    });
  }
  return path;
}

/**
 * For as long as keys are changed, or values sealed anew: another one at it would seal with a key
 * that the first may be about to retire. A lock whose process was killed does not count.
 * @returns what gives the lock back
 * @throws StackFailure when another process is at it
 */
export function lockKeyFile(path: string): () => void {
  const { held, release } = tryLock(`${realpathSync(path)}.lock`);
  if (held === undefined) return release;
  throw new StackFailure(`Process ${held.pid} on ${held.host} is changing the keys of ${path}.`);
}

/** What a change leaves as it is, it need not know. */
const KeyFile = z.looseObject({
  seal: z.looseObject({ current: z.string(), keys: z.record(z.string(), z.string()) }),
});

/**
 * A new sealing key, current from now on; the others stay, to open what they sealed.
 * @returns its name: the day, and what no other key of that day has
 */
export function addSealingKey(path: string, now: Date): string {
  const file = readKeyFile(path);
  const day = now.toISOString().slice(0, 'YYYY-MM-DD'.length).replaceAll('-', '');
  const kid = `k${day}-${randomBytes(4).toString('hex')}`;
  const seal = { ...file.seal, current: kid, keys: { ...file.seal.keys, [kid]: newKey() } };
  writeKeyFile(path, { ...file, seal });
  return kid;
}

/** Ends a key for good: what it sealed is lost. The current one stays. */
export function removeSealingKey(path: string, kid: string): void {
  const file = readKeyFile(path);
  if (file.seal.current === kid) throw new Error(`${kid} is the current key.`);
  const { [kid]: _removed, ...keys } = file.seal.keys;
  writeKeyFile(path, { ...file, seal: { ...file.seal, keys } });
}

function readKeyFile(path: string): z.infer<typeof KeyFile> {
  return KeyFile.parse(JSON.parse(readFileSync(path, 'utf8')));
}

/**
 * Replaced in one step, for its owner only, and on the disk before anything is sealed with it: a
 * key that a power failure took back would take what it sealed along.
 */
function writeKeyFile(path: string, keys: object): void {
  const target = existsSync(path) ? realpathSync(path) : path;
  const next = `${target}.${process.pid}.next`;
  const file = openSync(next, 'w', 0o600);
  try {
    fchmodSync(file, 0o600);
    keepOwner(file, target);
    writeFileSync(file, `${JSON.stringify(keys, null, 2)}\n`);
    fsyncSync(file);
    renameSync(next, target);
  } finally {
    closeSync(file);
    rmSync(next, { force: true });
  }
  syncFolder(dirname(target));
}

/** Changed by root, say, it must still be the service's own. */
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

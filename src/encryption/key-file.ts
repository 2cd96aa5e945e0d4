import { readFileSync, realpathSync } from 'node:fs';
import { z } from 'zod';
import { OperationalError } from '../base/errors';
import { tryLock } from '../base/file-lock';
import { newRandomKey } from './random-key';
import { newKid, writeKeyFile } from './write-key-file';

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

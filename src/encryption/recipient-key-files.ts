import { createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { ENVIRONMENTS } from '../domain/environment';
import type { EncryptionKeys } from './key-ring';
import {
  getKeyRingName,
  type Holder,
  keyRingPath,
  listHolders,
  parsePairs,
} from './recipient-pairs';
import { newKid, writeKeyFile } from './write-key-file';

const PUBLIC_MODE = 0o644;

/**
 * Creates only what is missing.
 * @param more holders besides those that share the key ring of an environment
 * @returns paths of the files that were written
 */
export function createRecipientKeyRings(
  dir: string,
  now: Date,
  more: readonly Holder[] = [],
): string[] {
  return [...ENVIRONMENTS, ...more].flatMap((holder) => createRecipientKeyRing(dir, holder, now));
}

/** @returns paths of the files that were written */
export function createRecipientKeyRing(dir: string, holder: Holder, now: Date): string[] {
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  const path = keyRingPath(dir, holder, 'private');
  if (existsSync(path)) return publish(dir, holder);
  const { kid, key } = newPair(holder, now);
  writePairs(path, { current: kid, keys: { [kid]: key } });
  return [path, ...publish(dir, holder)];
}

/**
 * Repairs a rotation that stopped between the two files: the API would encrypt with a pair that is
 * about to be removed.
 */
export function publishPairs(dir: string): void {
  for (const holder of listHolders(dir)) publish(dir, holder);
}

/** @throws Error when the file is missing or invalid */
export function readPairs(dir: string, holder: Holder): EncryptionKeys {
  const text = readFileSync(keyRingPath(dir, holder, 'private'), 'utf8');
  return parsePairs(text, holder, 'private');
}

/** Adds a pair, which becomes current. @returns its name */
export function addPair(dir: string, holder: Holder, now: Date): string {
  const { keys } = readPairs(dir, holder);
  const { kid, key } = newPair(holder, now);
  // Connectors need the private key before the API encrypts with the public one.
  writePairs(keyRingPath(dir, holder, 'private'), {
    current: kid,
    keys: { ...keys, [kid]: key },
  });
  publish(dir, holder);
  return kid;
}

/** Values that the pair encrypted are lost. */
export function removePair(dir: string, holder: Holder, kid: string): void {
  const { current, keys } = readPairs(dir, holder);
  if (current === kid) throw new Error(`${kid} is the current key.`);
  const { [kid]: _removed, ...remaining } = keys;
  writePairs(keyRingPath(dir, holder, 'private'), { current, keys: remaining });
  publish(dir, holder);
}

/** @returns path of a written file */
function publish(dir: string, holder: Holder): string[] {
  const { current, keys } = readPairs(dir, holder);
  const path = keyRingPath(dir, holder, 'public');
  const parts = Object.entries(keys).flatMap(([kid, key]) =>
    Buffer.isBuffer(key) ? [] : [[kid, createPublicKey(key)] as const],
  );
  const text = serializeKeys({ current, keys: Object.fromEntries(parts) });
  if (existsSync(path) && readFileSync(path, 'utf8') === text) return [];
  writeKeyFile(path, text, PUBLIC_MODE);
  return [path];
}

function writePairs(path: string, keyRing: EncryptionKeys): void {
  writeKeyFile(path, serializeKeys(keyRing));
}

function serializeKeys({ current, keys }: EncryptionKeys): string {
  const jwks = Object.entries(keys).flatMap(([kid, key]) =>
    Buffer.isBuffer(key) ? [] : [[kid, key.export({ format: 'jwk' })] as const],
  );
  return `${JSON.stringify({ current, keys: Object.fromEntries(jwks) }, null, 2)}\n`;
}

function newPair(holder: Holder, now: Date): { kid: string; key: KeyObject } {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  return { kid: `${getKeyRingName(holder)}:${newKid(now)}`, key: privateKey };
}

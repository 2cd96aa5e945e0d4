import { createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { ENVIRONMENTS, type Env } from '../domain/environment';
import type { EncryptionKeys } from './key-ring';
import { keyRingPath, parsePairs, RECIPIENT_KEY_RINGS } from './recipient-keys';
import { newKid, writeKeyFile } from './write-key-file';

const PUBLIC_MODE = 0o644;

/**
 * Creates missing key rings and their public files; existing keys stay.
 * @returns paths of the files that were written
 */
export function createRecipientKeyRings(dir: string, now: Date): string[] {
  return ENVIRONMENTS.flatMap((environment) => createRecipientKeyRing(dir, environment, now));
}

/** @returns paths of the files that were written */
export function createRecipientKeyRing(dir: string, environment: Env, now: Date): string[] {
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  const path = keyRingPath(dir, environment, 'private');
  if (existsSync(path)) return publish(dir, environment);
  const { kid, key } = newPair(environment, now);
  writePairs(path, { current: kid, keys: { [kid]: key } });
  return [path, ...publish(dir, environment)];
}

/**
 * Writes the public files again when they differ, after a rotation that stopped between the two:
 * otherwise the API would encrypt with a pair that is about to be removed.
 */
export function publishPairs(dir: string): void {
  for (const environment of ENVIRONMENTS) publish(dir, environment);
}

/** @throws Error when the file is missing or invalid */
export function readPairs(dir: string, environment: Env): EncryptionKeys {
  const text = readFileSync(keyRingPath(dir, environment, 'private'), 'utf8');
  return parsePairs(text, environment, 'private');
}

/** Adds a pair, which becomes current; the others still decrypt. @returns its name */
export function addPair(dir: string, environment: Env, now: Date): string {
  const { keys } = readPairs(dir, environment);
  const { kid, key } = newPair(environment, now);
  // Connectors need the private key before the API encrypts with the public one.
  writePairs(keyRingPath(dir, environment, 'private'), {
    current: kid,
    keys: { ...keys, [kid]: key },
  });
  publish(dir, environment);
  return kid;
}

/** Removes a pair that is not current; values that it encrypted are lost. */
export function removePair(dir: string, environment: Env, kid: string): void {
  const { current, keys } = readPairs(dir, environment);
  if (current === kid) throw new Error(`${kid} is the current key.`);
  const { [kid]: _removed, ...remaining } = keys;
  writePairs(keyRingPath(dir, environment, 'private'), { current, keys: remaining });
  publish(dir, environment);
}

/** @returns path of a written file */
function publish(dir: string, environment: Env): string[] {
  const { current, keys } = readPairs(dir, environment);
  const path = keyRingPath(dir, environment, 'public');
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

function newPair(environment: Env, now: Date): { kid: string; key: KeyObject } {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  return { kid: `${RECIPIENT_KEY_RINGS[environment]}:${newKid(now)}`, key: privateKey };
}

import { createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { ENVIRONMENTS, type Environment } from '../domain/task-queues';
import type { EncryptionKeys } from './key-ring';
import { keyRingPath, parsePairs, RECIPIENT_KEY_RINGS } from './recipient-keys';
import { newKid, writeKeyFile } from './write-key-file';

/** File mode of public keys, which every encrypting process may read. */
const PUBLIC_MODE = 0o644;

/**
 * Creates the missing key rings of recipients in a directory, and their public files. Existing keys
 * are kept, so it can be repeated after a crash.
 * @returns paths of the files that were written
 */
export function createRecipientKeyRings(dir: string, now: Date): string[] {
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  return ENVIRONMENTS.flatMap((environment) => {
    const path = keyRingPath(dir, environment, 'private');
    if (existsSync(path)) return publish(dir, environment);
    const { kid, key } = newPair(environment, now);
    writePairs(path, { current: kid, keys: { [kid]: key } });
    return [path, ...publish(dir, environment)];
  });
}

/**
 * Writes the public files that do not match the private ones, which happens when a rotation stops
 * between the two: the API would continue to encrypt with a pair that is about to be removed.
 */
export function publishPairs(dir: string): void {
  for (const environment of ENVIRONMENTS) publish(dir, environment);
}

/** Reads the private keys of a key ring. @throws Error when the file is missing or invalid */
export function readPairs(dir: string, environment: Environment): EncryptionKeys {
  return parsePairs(
    readFileSync(keyRingPath(dir, environment, 'private'), 'utf8'),
    environment,
    'private',
  );
}

/**
 * Adds a pair to a key ring, which becomes current; the others remain for the values that they encrypted.
 * @returns its name
 */
export function addPair(dir: string, environment: Environment, now: Date): string {
  const { keys } = readPairs(dir, environment);
  const { kid, key } = newPair(environment, now);
  // The connectors must have the private key before the API encrypts with the public one.
  writePairs(keyRingPath(dir, environment, 'private'), {
    current: kid,
    keys: { ...keys, [kid]: key },
  });
  publish(dir, environment);
  return kid;
}

/** Removes a pair for good, never the current one: values that it encrypted are lost. */
export function removePair(dir: string, environment: Environment, kid: string): void {
  const { current, keys } = readPairs(dir, environment);
  if (current === kid) throw new Error(`${kid} is the current key.`);
  const { [kid]: _removed, ...remaining } = keys;
  writePairs(keyRingPath(dir, environment, 'private'), { current, keys: remaining });
  publish(dir, environment);
}

/** Writes the public keys of a key ring, unless they exist. @returns path of a written file */
function publish(dir: string, environment: Environment): string[] {
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

function newPair(environment: Environment, now: Date): { kid: string; key: KeyObject } {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  return { kid: `${RECIPIENT_KEY_RINGS[environment]}:${newKid(now)}`, key: privateKey };
}

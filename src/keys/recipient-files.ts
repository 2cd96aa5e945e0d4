import { createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { ENVIRONMENTS, type Environment } from '../domain/task-queues';
import { newKid, writeKeyFile } from './file';
import { parsePairs, RECIPIENT_RINGS, ringPath } from './recipient-rings';
import type { SealingKeys } from './ring';

/** Mode of what may be given to every process that seals. */
const PUBLIC_MODE = 0o644;

/**
 * Makes the rings of recipients that a folder lacks, and writes their public parts where these are
 * not those of the private ones. Killed and repeated, it goes on.
 * @returns paths of the files that were written
 */
export function makeRecipientRings(dir: string, now: Date): string[] {
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  return ENVIRONMENTS.flatMap((environment) => {
    const path = ringPath(dir, environment, 'private');
    if (existsSync(path)) return publish(dir, environment);
    const { kid, key } = newPair(environment, now);
    writePairs(path, { current: kid, keys: { [kid]: key } });
    return [path, ...publish(dir, environment)];
  });
}

/**
 * Writes the public parts of the rings that are not those of the private ones, as after a rotation that
 * was cut off between the two: whoever seals would go on with a pair that is about to be removed.
 */
export function publishPairs(dir: string): void {
  for (const environment of ENVIRONMENTS) publish(dir, environment);
}

/** Reads the private parts of a ring. @throws Error when they are missing or no ring */
export function readPairs(dir: string, environment: Environment): SealingKeys {
  return parsePairs(
    readFileSync(ringPath(dir, environment, 'private'), 'utf8'),
    environment,
    'private',
  );
}

/**
 * Adds a pair to a ring, current from now on; the others stay, to open their values.
 * @returns its name
 */
export function addPair(dir: string, environment: Environment, now: Date): string {
  const { keys } = readPairs(dir, environment);
  const { kid, key } = newPair(environment, now);
  // Whoever opens has it before anybody seals with it.
  writePairs(ringPath(dir, environment, 'private'), {
    current: kid,
    keys: { ...keys, [kid]: key },
  });
  publish(dir, environment);
  return kid;
}

/** Removes a pair for good, never the current one: values that it sealed are lost. */
export function removePair(dir: string, environment: Environment, kid: string): void {
  const { current, keys } = readPairs(dir, environment);
  if (current === kid) throw new Error(`${kid} is the current key.`);
  const { [kid]: _removed, ...left } = keys;
  writePairs(ringPath(dir, environment, 'private'), { current, keys: left });
  publish(dir, environment);
}

/** Writes the public parts of a ring, unless they stand. @returns path of the file, if written */
function publish(dir: string, environment: Environment): string[] {
  const { current, keys } = readPairs(dir, environment);
  const path = ringPath(dir, environment, 'public');
  const parts = Object.entries(keys).flatMap(([kid, key]) =>
    Buffer.isBuffer(key) ? [] : [[kid, createPublicKey(key)] as const],
  );
  const text = textOf({ current, keys: Object.fromEntries(parts) });
  if (existsSync(path) && readFileSync(path, 'utf8') === text) return [];
  writeKeyFile(path, text, PUBLIC_MODE);
  return [path];
}

function writePairs(path: string, ring: SealingKeys): void {
  writeKeyFile(path, textOf(ring));
}

function textOf({ current, keys }: SealingKeys): string {
  const jwks = Object.entries(keys).flatMap(([kid, key]) =>
    Buffer.isBuffer(key) ? [] : [[kid, key.export({ format: 'jwk' })] as const],
  );
  return `${JSON.stringify({ current, keys: Object.fromEntries(jwks) }, null, 2)}\n`;
}

function newPair(environment: Environment, now: Date): { kid: string; key: KeyObject } {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  return { kid: `${RECIPIENT_RINGS[environment]}:${newKid(now)}`, key: privateKey };
}

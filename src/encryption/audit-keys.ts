import {
  createPrivateKey,
  createPublicKey,
  hkdfSync,
  type KeyObject,
  sign,
  verify,
} from 'node:crypto';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { AUDIT_WRITERS, type AuditWriter } from '../domain/operators/audit-log';
import { newRandomKey, refuseWorldReadable, writeKeyFile } from './key-file';
import { followFile } from './key-ring';
import { Key32, parseJson } from './service-keys';

const PUBLIC_MODE = 0o644;

/** Key of one process, which only that process and who creates keys may read. */
const KeyFile = z.object({ key: Key32.transform((key) => key.toString('base64url')) });

/** Public halves, oldest first: the last one is in use, and the earlier ones verify older lines. */
const PublicKeys = z.partialRecord(
  z.enum(AUDIT_WRITERS),
  z.array(z.object({ public_key: z.string(), created_at: z.string() })),
);
export type AuditPublicKeys = z.infer<typeof PublicKeys>;

/**
 * Creates only what is missing: a process whose file was removed gets another key.
 * @param writers processes that get a key, by default all
 * @returns paths of the files that were written
 */
export function createAuditKeys(
  dir: string,
  now: Date,
  writers: readonly AuditWriter[] = AUDIT_WRITERS,
): string[] {
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  const written = listMissing(dir, writers);
  for (const path of written) {
    const file = { key: newRandomKey().toString('base64url') };
    writeKeyFile(path, `${JSON.stringify(file, null, 2)}\n`);
  }
  // Also the halves that an interrupted creation left out.
  const keys = findPublicKeys(dir, now, writers);
  if (keys === undefined) return written;
  writeKeyFile(publicPath(dir), `${JSON.stringify(keys, null, 2)}\n`, PUBLIC_MODE);
  return [...written, publicPath(dir)];
}

/** Lists paths of the files that `createAuditKeys` would write. */
export function listUnwrittenAuditKeys(dir: string): string[] {
  const unwritten = listMissing(dir, AUDIT_WRITERS);
  const isPublished = unwritten.length === 0 && findPublicKeys(dir, new Date()) === undefined;
  return isPublished ? [] : [...unwritten, publicPath(dir)];
}

function listMissing(dir: string, writers: readonly AuditWriter[]): string[] {
  return writers.map((writer) => auditKeyPath(dir, writer)).filter((path) => !existsSync(path));
}

/** @returns all public halves; undefined where none is missing */
function findPublicKeys(
  dir: string,
  now: Date,
  writers: readonly AuditWriter[] = AUDIT_WRITERS,
): AuditPublicKeys | undefined {
  const before = existsSync(publicPath(dir)) ? readAuditPublicKeys(dir) : {};
  const after = writers.map((writer) => {
    const keys = before[writer] ?? [];
    const { key } = parseKeyFile(readFileSync(auditKeyPath(dir, writer), 'utf8'));
    const public_key = derivePublicKey(key);
    if (keys.at(-1)?.public_key === public_key) return [writer, keys] as const;
    return [writer, [...keys, { public_key, created_at: now.toISOString() }]] as const;
  });
  if (after.every(([writer, keys]) => keys === before[writer])) return undefined;
  return { ...before, ...Object.fromEntries(after) };
}

/**
 * Follows the key of a process.
 * @returns what signs the hash of a line
 * @throws Error when the file is missing, invalid or world-readable
 */
export function followAuditKey(dir: string, writer: AuditWriter): (hash: string) => string {
  const path = auditKeyPath(dir, writer);
  if (!existsSync(path)) throw missing(path);
  refuseWorldReadable(path);
  const file = followFile(path, parseKeyFile);
  return (hash) => signAs(file.latest().key, hash);
}

/** @throws Error when the file is missing or invalid */
export function readAuditPublicKeys(dir: string): AuditPublicKeys {
  const path = publicPath(dir);
  if (!existsSync(path)) throw missing(path);
  return PublicKeys.parse(parseJson(readFileSync(path, 'utf8')));
}

export function auditKeyPath(dir: string, writer: AuditWriter): string {
  return join(dir, `audit.${writer}.json`);
}

function publicPath(dir: string): string {
  return join(dir, 'audit.public.json');
}

function missing(path: string): Error {
  return new Error(`${path} is missing (KEYS_DIR): \`keys split\` creates it.`);
}

/** @throws Error that never quotes the text */
function parseKeyFile(text: string): z.infer<typeof KeyFile> {
  return KeyFile.parse(parseJson(text));
}

/** A new use of such a key needs a new label. */
const LABEL = 'audit-line-v1';
/** PKCS #8 of an Ed25519 key, before its 32 bytes. */
const PREFIX = Buffer.from('302e020100300506032b657004220420', 'hex');
const SEED_BYTES = 32;

/**
 * Derives the key pair of an operator or a process, whose key is random: who has only the public
 * half signs nothing.
 */
function deriveKey(secret: string): KeyObject {
  const seed = Buffer.from(hkdfSync('sha256', secret, '', LABEL, SEED_BYTES));
  return createPrivateKey({ key: Buffer.concat([PREFIX, seed]), format: 'der', type: 'pkcs8' });
}

/** @returns the public half, as stored */
export function derivePublicKey(secret: string): string {
  const key = createPublicKey(deriveKey(secret));
  return key.export({ format: 'der', type: 'spki' }).toString('base64url');
}

/** @param secret key of an operator or a process */
export function signAs(secret: string, text: string): string {
  return sign(null, Buffer.from(text), deriveKey(secret)).toString('base64url');
}

/** @param publicKey as `derivePublicKey` returned it */
export function isSignedBy(publicKey: string, text: string, signature: string): boolean {
  const key = { key: Buffer.from(publicKey, 'base64url'), format: 'der', type: 'spki' } as const;
  return verify(null, Buffer.from(text), key, Buffer.from(signature, 'base64url'));
}

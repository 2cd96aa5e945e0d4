/**
 * Hashes of what the clients' types are made from and of the types themselves. `npm run clients` stores
 * them, and a test compares: the types are stale when the OpenAPI document has changed.
 */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { reduceDocument } from './reduce.mjs';

const at = (path) => fileURLToPath(new URL(path, import.meta.url));

export const TYPESCRIPT = at('../typescript/src/schema.ts');
export const PYTHON = at('../python/src/durable_payments/types.py');
export const LOCK = at('types.lock.json');

const GENERATORS = ['main.mjs', 'package-lock.json', 'requirements.txt'].map(at);

/** Document with the shapes that the clients know. */
export function readReduced() {
  const document = JSON.parse(readFileSync(at('../openapi.json'), 'utf8'));
  return JSON.stringify(reduceDocument(document));
}

export function hashAll() {
  return {
    document: hash(readReduced()),
    generators: hash(GENERATORS.map((path) => readFileSync(path, 'utf8')).join('\0')),
    typescript: hash(readFileSync(TYPESCRIPT, 'utf8')),
    python: hash(readFileSync(PYTHON, 'utf8')),
  };
}

function hash(text) {
  return createHash('sha256').update(text).digest('hex');
}

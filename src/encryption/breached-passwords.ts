import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { normalizePassword } from './password';

let passwords: ReadonlySet<string> | undefined;

/**
 * Finds a password in the shipped list, also repeated or between digits and signs: guessing
 * programs try those first.
 * @see docs/dashboard.md#sign-in
 */
export function isBreachedPassword(password: string): boolean {
  if (passwords === undefined) {
    const path = require.resolve('@zxcvbn-ts/language-common/src/passwords.json');
    passwords = new Set(z.array(z.string()).parse(JSON.parse(readFileSync(path, 'utf8'))));
  }
  const text = normalizePassword(password).toLowerCase();
  const word = text.replace(/^[^\p{L}]+|[^\p{L}]+$/gu, '');
  const [, repeated] = /^(.+?)\1+$/su.exec(text) ?? [];
  return [text, word, repeated].some((each) => each !== undefined && passwords?.has(each));
}

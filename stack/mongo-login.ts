import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { z } from 'zod';
import { readJson, replaceFile } from './state-file';

const Passwords = z.object({
  operator: z.string(),
  api: z.string(),
  worker: z.string(),
  sandbox_bank: z.string(),
  sepa: z.string(),
});
type Passwords = z.infer<typeof Passwords>;

/** Those of before the SEPA connector, too. */
const StoredPasswords = Passwords.partial({ sepa: true });

export type MongoUser = keyof Passwords;

export interface MongoLogin {
  passwords: Passwords;
  /** Key of the replica set's members, which the server requires even for one node. */
  keyFile: string;
}

/**
 * Reads the login from the data directory (mode 0600), or creates it if it is missing or damaged.
 */
export function mongoLogin(dataDir: string): MongoLogin {
  const path = join(dataDir, 'mongodb-login.json');
  const keyFile = join(dataDir, 'mongodb.key');
  // A set of one node may have a new key at each start.
  replaceFile(keyFile, `${secret()}\n`);
  const stored = readJson(path, StoredPasswords);
  if (stored?.sepa !== undefined) return { passwords: { ...stored, sepa: stored.sepa }, keyFile };
  const made = { operator: secret(), api: secret(), worker: secret(), sandbox_bank: secret() };
  const passwords: Passwords = { ...made, ...stored, sepa: secret() };
  replaceFile(path, `${JSON.stringify(passwords, null, 2)}\n`);
  return { passwords, keyFile };
}

/** Generates digits that need no escape in a URL. */
function secret(): string {
  return randomBytes(32).toString('hex');
}

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

export type MongoUser = keyof Passwords;

export interface MongoLogin {
  passwords: Passwords;
  /** The server requires a key even for one node. */
  keyFile: string;
}

/** Replaces a missing or damaged login (mode 0600). */
export function mongoLogin(dataDir: string): MongoLogin {
  const path = join(dataDir, 'mongodb-login.json');
  const keyFile = join(dataDir, 'mongodb.key');
  // A set of one node may have a new key at each start.
  replaceFile(keyFile, `${secret()}\n`);
  const stored = readJson(path, Passwords);
  if (stored !== undefined) return { passwords: stored, keyFile };
  const passwords: Passwords = {
    operator: secret(),
    api: secret(),
    worker: secret(),
    sandbox_bank: secret(),
    sepa: secret(),
  };
  replaceFile(path, `${JSON.stringify(passwords, null, 2)}\n`);
  return { passwords, keyFile };
}

function secret(): string {
  return randomBytes(32).toString('hex');
}

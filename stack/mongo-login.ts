import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { replaceFile } from './state-file';

/** Passwords of the users of a MongoDB that the launcher starts. */
const Passwords = z.object({
  operator: z.string(),
  api: z.string(),
  worker: z.string(),
  sandbox_bank: z.string(),
});
type Passwords = z.infer<typeof Passwords>;

/** User of a MongoDB that the launcher starts: a process, or `operator`, who may do everything. */
export type MongoUser = keyof Passwords;

/** Login at a server of the launcher's own. */
export interface MongoLogin {
  passwords: Passwords;
  /** File by which the members of the set know each other; the server wants one for its one node. */
  keyFile: string;
}

/**
 * Finds the login that is kept in the data folder (mode 0600), or makes it: at the first start, and
 * where the file is lost or damaged.
 */
export function mongoLogin(dataDir: string): MongoLogin {
  const path = join(dataDir, 'mongodb-login.json');
  const keyFile = join(dataDir, 'mongodb.key');
  // A set of one node may have another one at each start.
  replaceFile(keyFile, `${secret()}\n`);
  const storedPasswords = existsSync(path) ? parsePasswords(readFileSync(path, 'utf8')) : undefined;
  if (storedPasswords !== undefined) return { passwords: storedPasswords, keyFile };
  const passwords: Passwords = {
    operator: secret(),
    api: secret(),
    worker: secret(),
    sandbox_bank: secret(),
  };
  replaceFile(path, `${JSON.stringify(passwords, null, 2)}\n`);
  return { passwords, keyFile };
}

function parsePasswords(text: string): Passwords | undefined {
  try {
    return Passwords.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}

/** Makes digits that need no escape in an address. */
function secret(): string {
  return randomBytes(32).toString('hex');
}

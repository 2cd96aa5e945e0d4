import { statSync } from 'node:fs';

const ANYBODY_READS = 0o004;
const GROUP_READS = 0o040;

/** Finds who beside its owner may read a file; undefined where nobody should be told of it. */
function readersOf(path: string): 'everybody' | 'its group' | undefined {
  const { mode, uid } = statSync(path);
  if (mode & ANYBODY_READS) return 'everybody';
  // A mounted secret is another user's, and comes to a process by its group alone.
  if (mode & GROUP_READS && uid === process.getuid?.()) return 'its group';
  return undefined;
}

/** @throws Error where everybody on the machine may read the file */
export function refuseOpenToAll(path: string): void {
  if (readersOf(path) !== 'everybody') return;
  throw new Error(`Everybody may read ${path}: chmod 600 (or 440 for a mounted secret).`);
}

/** Tells of a key file that others may read; it is used all the same, as ever. */
export function warnOfReaders(
  path: string,
  log: { warn: (facts: object, message: string) => void },
): void {
  const readers = readersOf(path);
  if (readers !== undefined) log.warn({ path, readers }, 'the key file is for others to read');
}

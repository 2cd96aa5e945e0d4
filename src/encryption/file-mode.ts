import { statSync } from 'node:fs';

const ANYBODY_READS = 0o004;
const GROUP_READS = 0o040;

function findReaders(path: string): 'everybody' | 'its group' | undefined {
  const { mode, uid } = statSync(path);
  if (mode & ANYBODY_READS) return 'everybody';
  // A mounted secret has another owner, and the process reads it through its group.
  if (mode & GROUP_READS && uid === process.getuid?.()) return 'its group';
  return undefined;
}

/** @throws Error when the file is world-readable */
export function refuseWorldReadable(path: string): void {
  if (findReaders(path) !== 'everybody') return;
  throw new Error(`Everybody may read ${path}: chmod 600 (or 440 for a mounted secret).`);
}

export interface WarningLog {
  warn: (facts: object, message: string) => void;
}

export function warnOfReaders(path: string, log: WarningLog): void {
  const readers = findReaders(path);
  if (readers !== undefined) log.warn({ path, readers }, 'others can read the key file');
}

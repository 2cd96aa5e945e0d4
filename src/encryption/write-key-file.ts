import { randomBytes } from 'node:crypto';
import {
  closeSync,
  existsSync,
  fchmodSync,
  fchownSync,
  fstatSync,
  fsyncSync,
  openSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname } from 'node:path';

export function newKid(now: Date): string {
  const day = now.toISOString().slice(0, 'YYYY-MM-DD'.length).replaceAll('-', '');
  return `k${day}-${randomBytes(4).toString('hex')}`;
}

/**
 * Replaces a key file in one step. It is on the disk before a key encrypts a value, which a power
 * failure would otherwise lose.
 */
export function writeKeyFile(path: string, text: string, mode = 0o600): void {
  const target = existsSync(path) ? realpathSync(path) : path;
  const next = `${target}.${process.pid}.next`;
  const file = openSync(next, 'w', mode);
  try {
    fchmodSync(file, mode);
    keepOwner(file, target);
    writeFileSync(file, text);
    fsyncSync(file);
    renameSync(next, target);
  } finally {
    closeSync(file);
    rmSync(next, { force: true });
  }
  syncFolder(dirname(target));
}

/** The service must still read the file after a change by root. */
function keepOwner(file: number, target: string): void {
  const owner = statSync(target, { throwIfNoEntry: false });
  const stats = fstatSync(file);
  if (owner === undefined || (owner.uid === stats.uid && owner.gid === stats.gid)) return;
  fchownSync(file, owner.uid, owner.gid);
}

function syncFolder(path: string): void {
  const folder = openSync(path, 'r');
  try {
    fsyncSync(folder);
  } finally {
    closeSync(folder);
  }
}

import { access } from 'node:fs/promises';
import { extname, join } from 'node:path';
import { encodeIdentifier } from '../../../domain/shape';

/** Limit below that of file systems, 255: a suffix may follow. */
const NAME_BYTES_MAX = 200;

/** Finds a name that is free in a folder: banks use theirs again. @param sha256 of the content */
export async function chooseName(
  folder: string,
  received: string,
  sha256: string,
): Promise<string> {
  const isLong = Buffer.byteLength(received) > NAME_BYTES_MAX;
  const name = isLong ? sha256.slice(0, 32) : received;
  if (!(await exists(join(folder, name)))) return name;
  const extension = extname(name);
  const base = `${name.slice(0, name.length - extension.length)}-${sha256.slice(0, 8)}`;
  for (let copy = 1; ; copy += 1) {
    const candidate = `${base}${copy === 1 ? '' : `-${copy}`}${extension}`;
    if (!(await exists(join(folder, candidate)))) return candidate;
  }
}

export async function exists(path: string): Promise<boolean> {
  try {
    await access(path);
    return true;
  } catch {
    return false;
  }
}

const SHOWN_MAX = 200;

/** Writes the bank's name of a file, or its path, for an operator's terminal: the rest as `%XX`. */
export function presentName(name: string): string {
  return encodeIdentifier(name).slice(0, SHOWN_MAX);
}

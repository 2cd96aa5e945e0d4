import { access } from 'node:fs/promises';
import { extname, join } from 'node:path';

/** Finds a name that is free in a folder: banks use theirs again. @param sha256 of the content */
export async function chooseName(folder: string, name: string, sha256: string): Promise<string> {
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

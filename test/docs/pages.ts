import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

export const ROOT = join(__dirname, '../..');

/** Directories of the project, without what is fetched, built or run here. */
const DIRECTORIES = [
  ...['activities', 'bench', 'clients', 'connectors', 'docs'],
  ...['src', 'stack', 'test', 'worker', 'workflows'],
];

/** Folders within a client. */
const BUILT = /\/(?:node_modules|dist|\.venv)\//;

/** Lists the files of the project whose name ends in one of `endings`, by their path from the root. */
export function filesEndingIn(...endings: string[]): string[] {
  const inDirectories = DIRECTORIES.flatMap((directory) =>
    readdirSync(join(ROOT, directory), { recursive: true, encoding: 'utf8' }).map((name) =>
      join(directory, name),
    ),
  );
  const names = [...readdirSync(ROOT), ...inDirectories].filter((name) => !BUILT.test(name));
  return names.filter((name) => endings.some((ending) => name.endsWith(ending)));
}

export function readText(path: string): string {
  return readFileSync(join(ROOT, path), 'utf8');
}

/** Reads a page without its code blocks. */
export function readProse(path: string): string {
  return readText(path).replace(/^ *(```|~~~)[\s\S]*?^ *\1 *$/gm, '');
}

/** Lists the anchors that a page's headings have on the forge. */
export function listAnchors(path: string): string[] {
  const seen = new Map<string, number>();
  return [...readProse(path).matchAll(/^#{1,6} +(.+?) *$/gm)].map(([, heading = '']) => {
    const text = heading.toLowerCase().replace(/[^\p{L}\p{N}\s_-]/gu, '');
    const anchor = text.replace(/\s/g, '-');
    const count = seen.get(anchor) ?? 0;
    seen.set(anchor, count + 1);
    return count === 0 ? anchor : `${anchor}-${count}`;
  });
}

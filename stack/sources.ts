import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';

const FOLDERS = ['src', 'workflows', 'activities', 'worker', 'connectors', 'stack'];

export function listSources(root: string): Map<string, number> {
  const times = new Map<string, number>();
  for (const folder of FOLDERS.filter((each) => existsSync(join(root, each)))) {
    for (const name of readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })) {
      if (!/\.tsx?$/.test(name)) continue;
      const source = join(folder, name);
      const { mtimeMs } = statSync(join(root, source), { throwIfNoEntry: false }) ?? {};
      if (mtimeMs !== undefined) times.set(source, mtimeMs);
    }
  }
  return times;
}

export function staleSource(root: string): string | undefined {
  for (const [source, changedAt] of listSources(root)) {
    const compiled = join(root, 'dist', source.replace(/\.tsx?$/, '.js'));
    const { mtimeMs } = statSync(compiled, { throwIfNoEntry: false }) ?? {};
    if (mtimeMs === undefined || mtimeMs < changedAt) return source;
  }
  return undefined;
}

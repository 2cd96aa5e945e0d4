import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';

const Lock = z.object({
  packages: z.record(
    z.string(),
    z.object({
      version: z.string().optional(),
      resolved: z.string().optional(),
      integrity: z.string().optional(),
      optionalDependencies: z.record(z.string(), z.string()).optional(),
    }),
  ),
});

const text = readFileSync(join(__dirname, '../package-lock.json'), 'utf8');
const { packages } = Lock.parse(JSON.parse(text));

/** Whether a package finds another one as Node does: next to it, or in a folder further up. */
function finds(path: string, name: string): boolean {
  const inside = path === '' ? '' : `${path}/`;
  if (packages[`${inside}node_modules/${name}`] !== undefined) return true;
  if (path === '') return false;
  return finds(path.replace(/\/?node_modules\/(@[^/]+\/)?[^/]+$/, ''), name);
}

test('the lock file has the binaries of every platform, without which npm ci refuses it', () => {
  const missing = Object.entries(packages).flatMap(([path, { optionalDependencies = {} }]) =>
    Object.entries(optionalDependencies)
      .filter(([name]) => !finds(path, name))
      .map(([name, version]) => `${name}@${version} of ${path}`),
  );
  expect(missing).toEqual([]);
});

const SYSTEMS = ['linux-x64', 'linux-arm64', 'darwin-x64', 'darwin-arm64', 'win32-x64'];
/** Endings of packages for Linux with glibc, with musl, and for Windows. */
const VARIANTS: Record<string, string[]> = { linux: ['-gnu', '-musl'], win32: ['-msvc'] };

test.each(SYSTEMS)('the compiler of tests and the password hash run on %s', (system) => {
  const [os = ''] = system.split('-');
  const variants = (VARIANTS[os] ?? ['']).map((ending) => `${system}${ending}`);
  const names = variants.flatMap((each) => [`@swc/core-${each}`, `@node-rs/argon2-${each}`]);
  for (const name of names) expect(packages).toHaveProperty([`node_modules/${name}`]);
});

test('the lock file holds a hash of every package, and no address of a registry', () => {
  const installed = Object.entries(packages).filter(([path]) => path !== '');
  expect(installed.filter(([, { integrity }]) => integrity === undefined)).toEqual([]);
  expect(installed.filter(([, { resolved }]) => resolved !== undefined)).toEqual([]);
});

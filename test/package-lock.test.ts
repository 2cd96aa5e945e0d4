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

test.each([
  'linux-x64-gnu',
  'linux-x64-musl',
  'linux-arm64-gnu',
  'linux-arm64-musl',
  'darwin-x64',
  'darwin-arm64',
  'win32-x64-msvc',
])('the compiler of tests and the password hash run on %s', (platform) => {
  expect(packages).toHaveProperty([`node_modules/@swc/core-${platform}`]);
  expect(packages).toHaveProperty([`node_modules/@node-rs/argon2-${platform}`]);
});

test('the lock file holds a hash of every package, and no address of a registry', () => {
  const installed = Object.entries(packages).filter(([path]) => path !== '');
  expect(installed.filter(([, { integrity }]) => integrity === undefined)).toEqual([]);
  expect(installed.filter(([, { resolved }]) => resolved !== undefined)).toEqual([]);
});

import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize, relative } from 'node:path';

const ROOT = join(__dirname, '..');
const FOLDERS = ['src', 'workflows', 'activities', 'worker', 'connectors', 'stack', 'bench'];

interface ImportLine {
  from: string;
  /** Repository path without ending for our own files, else the package's name. */
  to: string;
  typeOnly: boolean;
}

function files(): string[] {
  return FOLDERS.flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => /\.tsx?$/.test(name))
      .map((name) => join(folder, name)),
  );
}

const STATEMENT = /^(?:import|export)\s+(type\s+)?(?:([^;'"]*?)\s+from\s+)?['"]([^'"]+)['"]/gm;

function importsOf(file: string): ImportLine[] {
  const text = readFileSync(join(ROOT, file), 'utf8');
  return [...text.matchAll(STATEMENT)].map(([, type, names, target = '']) => ({
    from: file,
    to: target.startsWith('.') ? normalize(join(dirname(file), target)) : target,
    typeOnly: type !== undefined || allTypes(names ?? ''),
  }));
}

/** `import { type A, type B }` loads nothing either. */
function allTypes(names: string): boolean {
  const inside = /^\{([\s\S]*)\}$/.exec(names.trim())?.[1];
  if (inside === undefined) return false;
  const each = inside.split(',').map((name) => name.trim());
  return each.filter((name) => name !== '').every((name) => name.startsWith('type '));
}

const lines = files().flatMap(importsOf);

function offenders(inFolder: RegExp, mayNot: (line: ImportLine) => boolean): string[] {
  return lines
    .filter((line) => inFolder.test(line.from) && mayNot(line))
    .map(({ from, to }) => `${from} → ${to}`);
}

const within = (folder: string) => (to: string) => !relative(folder, to).startsWith('..');

test('the walk sees the imports that there are', () => {
  expect(lines.length).toBeGreaterThan(200);
  expect(lines.some(({ typeOnly }) => typeOnly)).toBe(true);
});

test('the domain is pure: it imports itself, zod, IBAN checks and the lossless JSON reader', () => {
  const allowed = (to: string) =>
    within('src/domain')(to) || ['zod', 'ibantools', 'src/json'].includes(to);
  expect(offenders(/^src\/domain\//, ({ to }) => !allowed(to))).toEqual([]);
});

test('workflows load the domain and the workflow SDK; of the rest they know only types', () => {
  const allowed = ({ to, typeOnly }: ImportLine) =>
    typeOnly ||
    within('src/domain')(to) ||
    within('workflows')(to) ||
    to === '@temporalio/workflow' ||
    to === '@temporalio/common';
  expect(offenders(/^workflows\//, (line) => !allowed(line))).toEqual([]);
});

test('activities never load workflows', () => {
  expect(offenders(/^activities\//, ({ to }) => within('workflows')(to))).toEqual([]);
});

test('stores load only the domain, the database and their like', () => {
  const allowed = ({ to, typeOnly }: ImportLine) =>
    typeOnly ||
    within('src/domain')(to) ||
    within('src/store')(to) ||
    ['mongodb', 'zod', 'src/mongo', 'src/keys/seal', 'src/ledger/book'].includes(to) ||
    to.startsWith('node:crypto');
  expect(offenders(/^src\/store\//, (line) => !allowed(line))).toEqual([]);
});

test('the API has one door to Temporal, and never calls a bank', () => {
  const door = /^src\/(api|pages)\//;
  expect(offenders(door, ({ to, typeOnly }) => !typeOnly && to.startsWith('@temporalio'))).toEqual(
    [],
  );
  const bank = ({ to, typeOnly }: ImportLine) =>
    !typeOnly && (within('connectors/sandbox-bank')(to) || within('workflows')(to));
  expect(offenders(door, bank)).toEqual([]);
});

test('the product does not load its tests or benchmarks', () => {
  const product = /^(src|workflows|activities|worker|connectors)\//;
  expect(
    offenders(product, ({ to }) => ['test', 'bench', 'stack'].some((room) => within(room)(to))),
  ).toEqual([]);
});

import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';

const PACKAGES = {
  dependencies: { '@temporalio/client': '*', commander: '*', koa: '*', preact: '*', zod: '*' },
  devDependencies: { 'fast-check': '*' },
};

/** Imports that a rule refuses, each by the rule, the file and what it imports. */
const PLANTED: [rule: string, file: string, target: string, kind?: 'type'][] = [
  ['domain-is-pure', 'src/domain/a.ts', 'node:fs'],
  ['domain-is-pure', 'src/domain/b.ts', '../base/log', 'type'],
  ['workflows-load-only-the-domain', 'workflows/a.ts', '../activities/payments'],
  ['workflows-know-types-of-activities', 'workflows/b.ts', '../src/store/rows', 'type'],
  ['the-contract-is-types', 'activities/a.ts', '../connectors/contract/activities'],
  ['connectors-stand-alone', 'connectors/bank/a.ts', '../../activities/payments'],
  ['the-example-knows-the-kit', 'connectors/example/a.ts', '../contract/activities', 'type'],
  ['stores-load-the-database', 'src/store/a.ts', '../base/log'],
  ['entry-points-call-the-service', 'src/dashboard/a.ts', '../store/rows', 'type'],
  ['entry-points-call-the-service', 'src/api/a.ts', '../ledger/book'],
  ['entry-points-call-the-service', 'src/pages/a.ts', '../ledger-check/verify'],
  ['entry-points-call-the-service', 'src/cli/a.ts', '../ledger/book'],
  ['service-has-no-entry-point', 'src/service/a.ts', 'koa', 'type'],
  ['service-has-no-entry-point', 'src/service/b.ts', 'commander'],
  ['service-has-no-entry-point', 'src/service/c.ts', 'preact'],
  ['one-client-of-temporal', 'src/api/b.ts', '@temporalio/client'],
  ['one-client-of-temporal', 'src/pages/b.tsx', '@temporalio/client'],
  ['product-needs-no-tools', 'src/a.ts', 'fast-check'],
  ['imports-exist', 'src/b.ts', './nowhere'],
  ['packages-are-listed', 'src/c.ts', 'typescript'],
  ['no-circles', 'src/d.ts', './e'],
  ['imports-point-downward', 'activities/b.ts', '../workflows/payment', 'type'],
  ['imports-point-downward', 'src/cli/b.ts', '../../activities/payments'],
  ['imports-point-downward', 'src/ledger/a.ts', '../store/rows', 'type'],
  ['imports-point-downward', 'worker/a.ts', '../stack/main'],
  ['imports-point-downward', 'src/f.ts', '../test/some'],
  ['clients-stand-alone', 'clients/typescript/src/a.ts', '../../../src/base/log', 'type'],
  ['clients-stand-alone', 'clients/typescript/src/b.ts', 'zod'],
  ['clients-are-for-merchants', 'src/api/c.ts', '../../clients/typescript/src/code', 'type'],
];

let codebase: string;

beforeEach(() => {
  codebase = mkdtempSync(join(tmpdir(), 'imports-'));
  symlinkSync(resolve('node_modules'), join(codebase, 'node_modules'));
  plant('package.json', JSON.stringify(PACKAGES));
});
afterEach(() => rmSync(codebase, { recursive: true }));

function plant(file: string, text: string): void {
  mkdirSync(dirname(join(codebase, file)), { recursive: true });
  writeFileSync(join(codebase, file), text);
}

test('every rule of imports refuses an import that is planted against it, and no other rule does', () => {
  const { forbidden } = jest.requireActual<{ forbidden: { name: string }[] }>(
    resolve('.dependency-cruiser.js'),
  );
  const rules = new Set(forbidden.map(({ name }) => name));
  expect(new Set(PLANTED.map(([rule]) => rule))).toEqual(rules);
  for (const [, file, target] of PLANTED) {
    if (/^\.{1,2}\/(?!nowhere)/.test(target)) plant(`${join(dirname(file), target)}.ts`, '');
  }
  for (const [, file, target, kind] of PLANTED) {
    plant(file, `import ${kind === 'type' ? 'type {} from ' : ''}'${target}'; const p = 1;`);
  }
  plant('src/e.ts', "import type {} from './d';");
  const tool = resolve('tools/lint-imports.mjs');
  const lint = spawnSync(process.execPath, [tool], { cwd: codebase, encoding: 'utf8' });
  expect(lint.status).toBe(1);
  const refused = [...lint.stderr.matchAll(/^(\S+: \S+) → /gm)].map(([, found]) => found);
  const expected = PLANTED.map(([rule, file]) => `${rule}: ${file}`);
  expect(refused.toSorted()).toEqual(expected.toSorted());
});

import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';

const LINT = resolve('tools/lint-imports.mjs');
const RULES = resolve('.dependency-cruiser.js');

/** Path of a package, whose name is the first group. */
const PACKAGE = /\S*node_modules\/((?:@[^/]+\/)?[^/]+)\S*/;

/** A small codebase in which every import is allowed. */
const LAWFUL: Record<string, string> = {
  'package.json': JSON.stringify({
    dependencies: {
      '@temporalio/client': '*',
      '@temporalio/workflow': '*',
      commander: '*',
      koa: '*',
      mongodb: '*',
      preact: '*',
      zod: '*',
    },
    devDependencies: { 'fast-check': '*' },
  }),
  'src/base/log.ts': "import 'node:os';",
  'src/base/json.ts': 'export const json = 1;',
  'src/base/mongo.ts': "import 'mongodb';",
  'src/domain/money.ts': "import 'zod'; import '../base/json';",
  'src/ledger/book.ts': "import '../domain/money';",
  'src/ledger-check/verify.ts': "import '../store/rows';",
  'src/store/rows.ts':
    "import 'node:crypto'; import '../ledger/book'; import type {} from '../base/mongo';",
  'src/temporal/client.ts': "import '@temporalio/client'; import '../domain/money';",
  'src/service/refunds.ts':
    "import '../store/rows'; import '../ledger-check/verify'; import '../ledger/book';",
  'src/pages/pay.tsx': 'export const page = <p>Which import fits?</p>;',
  'src/api/app.ts': "import type {} from '@temporalio/client'; import '../temporal/client';",
  'connectors/contract/activities.ts': "import '../../src/base/log';",
  'connectors/kit/index.ts': "import '../contract/activities';",
  'connectors/example/main.ts': "import 'zod'; import '../kit/index';",
  'connectors/bank/main.ts': "import '../contract/activities'; import '../../src/pages/pay';",
  'activities/payments.ts': "import type {} from '../connectors/contract/activities';",
  'workflows/payment.ts':
    "import '@temporalio/workflow'; import { type A } from '../activities/payments';",
  'worker/main.ts': "import '../workflows/payment'; import '../activities/payments';",
  'src/cli/program.ts': "import '../base/log';",
  'src/cli/main.ts': "import './program'; import '../../worker/main';",
  'clients/typescript/src/index.ts': "import 'node:crypto'; import './errors';",
  'clients/typescript/src/errors.ts': 'export const code = 1;',
  'stack/main.ts': "import '../src/base/log'; import '../src/cli/main';",
  'test/some.test.ts':
    "import 'fast-check'; import '../stack/main'; import '../clients/typescript/src';",
};

/** Imports that a rule must refuse: the rule, the file, its text, and what it may not import. */
const PLANTED: [rule: string, file: string, text: string, to: string][] = [
  ['domain-is-pure', 'src/domain/a.ts', "import 'node:fs';", 'fs'],
  ['domain-is-pure', 'src/domain/b.ts', "import type {} from 'mongodb';", 'mongodb'],
  ['domain-is-pure', 'src/domain/c.ts', "export * from '../base/log';", 'src/base/log.ts'],
  [
    'workflows-load-only-the-domain',
    'workflows/a.ts',
    "import { type B, c } from '../activities/payments';",
    'activities/payments.ts',
  ],
  [
    'workflows-load-only-the-domain',
    'workflows/b.ts',
    "import type {} from '../activities/payments'; import '../activities/payments';",
    'activities/payments.ts',
  ],
  [
    'workflows-load-only-the-domain',
    'workflows/c.ts',
    "const later = () => import('../activities/payments');",
    'activities/payments.ts',
  ],
  [
    'workflows-load-only-the-domain',
    'workflows/d.ts',
    "const later = require('../activities/payments');",
    'activities/payments.ts',
  ],
  [
    'workflows-know-types-of-activities',
    'workflows/e.ts',
    "import type {} from '../src/store/rows';",
    'src/store/rows.ts',
  ],
  [
    'the-contract-is-types',
    'activities/a.ts',
    "import '../connectors/contract/activities';",
    'connectors/contract/activities.ts',
  ],
  [
    'connectors-stand-alone',
    'connectors/bank/a.ts',
    "import '../../activities/payments';",
    'activities/payments.ts',
  ],
  [
    'the-example-knows-the-kit',
    'connectors/example/a.ts',
    "import '../contract/activities';",
    'connectors/contract/activities.ts',
  ],
  [
    'the-example-knows-the-kit',
    'connectors/example/b.ts',
    "import type {} from '../../src/domain/money';",
    'src/domain/money.ts',
  ],
  ['stores-load-the-database', 'src/store/a.ts', "import '../base/log';", 'src/base/log.ts'],
  ['stores-load-the-database', 'src/store/b.ts', "import 'node:fs';", 'fs'],
  [
    'entry-points-call-the-service',
    'src/dashboard/a.ts',
    "import type {} from '../store/rows';",
    'src/store/rows.ts',
  ],
  [
    'entry-points-call-the-service',
    'src/api/c.ts',
    "import type {} from '../store/rows'; import '../service/refunds';",
    'src/store/rows.ts',
  ],
  [
    'entry-points-call-the-service',
    'src/api/d.ts',
    "import '../ledger/book';",
    'src/ledger/book.ts',
  ],
  [
    'entry-points-call-the-service',
    'src/pages/b.tsx',
    "import '../ledger-check/verify'; const p = <p />;",
    'src/ledger-check/verify.ts',
  ],
  ['service-has-no-entry-point', 'src/service/a.ts', "import type {} from 'koa';", 'koa'],
  ['service-has-no-entry-point', 'src/service/b.ts', "import 'commander';", 'commander'],
  ['service-has-no-entry-point', 'src/service/c.tsx', "import 'preact';", 'preact'],
  [
    'entry-points-call-the-service',
    'src/cli/b.ts',
    "import '../ledger/book';",
    'src/ledger/book.ts',
  ],
  ['one-client-of-temporal', 'src/api/a.ts', "import '@temporalio/client';", '@temporalio/client'],
  [
    'one-client-of-temporal',
    'src/pages/a.tsx',
    "import '@temporalio/client'; const p = <p />;",
    '@temporalio/client',
  ],
  ['product-needs-no-tools', 'src/a.ts', "import 'fast-check';", 'fast-check'],
  ['imports-exist', 'src/b.ts', "import './nowhere';", './nowhere'],
  ['packages-are-listed', 'src/c.ts', "import 'typescript';", 'typescript'],
  ['no-circles', 'src/d.ts', "import './e';", 'src/e.ts → src/d.ts'],
  [
    'imports-point-downward',
    'activities/b.ts',
    "import type {} from '../workflows/payment';",
    'workflows/payment.ts',
  ],
  [
    'imports-point-downward',
    'src/f.ts',
    "import type {} from '../connectors/contract/activities';",
    'connectors/contract/activities.ts',
  ],
  [
    'imports-point-downward',
    'src/cli/a.ts',
    "import '../../activities/payments';",
    'activities/payments.ts',
  ],
  [
    'imports-point-downward',
    'src/api/b.ts',
    "import '../../connectors/bank/main';",
    'connectors/bank/main.ts',
  ],
  [
    'imports-point-downward',
    'src/ledger/entries.ts',
    "import type {} from '../store/rows';",
    'src/store/rows.ts',
  ],
  ['imports-point-downward', 'worker/a.ts', "import '../stack/main';", 'stack/main.ts'],
  ['imports-point-downward', 'src/g.ts', "import '../test/some.test';", 'test/some.test.ts'],
  [
    'clients-stand-alone',
    'clients/typescript/src/a.ts',
    "import type {} from '../../../src/domain/money';",
    'src/domain/money.ts',
  ],
  ['clients-stand-alone', 'clients/typescript/src/b.ts', "import 'zod';", 'zod'],
  [
    'clients-are-for-merchants',
    'src/api/client.ts',
    "import type {} from '../../clients/typescript/src/errors';",
    'clients/typescript/src/errors.ts',
  ],
];

let codebase: string;

beforeEach(() => {
  codebase = mkdtempSync(join(tmpdir(), 'imports-'));
  symlinkSync(resolve('node_modules'), join(codebase, 'node_modules'));
  for (const [file, text] of Object.entries(LAWFUL)) plant(file, text);
});
afterEach(() => rmSync(codebase, { recursive: true }));

function plant(file: string, text: string): void {
  mkdirSync(dirname(join(codebase, file)), { recursive: true });
  writeFileSync(join(codebase, file), text);
}

function lint() {
  const { status, stdout, stderr } = spawnSync(process.execPath, [LINT], {
    cwd: codebase,
    encoding: 'utf8',
  });
  return { status, stdout, stderr };
}

test('every rule has an import planted against it', () => {
  const { forbidden } = jest.requireActual<{ forbidden: { name: string }[] }>(RULES);
  const planted = PLANTED.map(([rule]) => rule);
  expect(new Set(planted)).toEqual(new Set(forbidden.map(({ name }) => name)));
});

test('lawful imports are left in peace', () => {
  expect(lint()).toEqual({
    status: 0,
    stdout: expect.stringMatching(/^Checked \d+ imports of \d+ files\.\n$/),
    stderr: '',
  });
});

test('every planted import is refused by its rule, and no other', () => {
  for (const [, file, text] of PLANTED) plant(file, text);
  plant('src/e.ts', "import type {} from './d';");
  const { status, stderr } = lint();
  expect(status).toBe(1);
  const lines = stderr.split('\n').filter((line) => line.includes(' → '));
  const refused = lines.map((line) => line.replace(PACKAGE, '$1'));
  const expected = PLANTED.map(([rule, file, , to]) => `${rule}: ${file} → ${to}`);
  expect(refused.toSorted()).toEqual(expected.toSorted());
});

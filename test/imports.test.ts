import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';

const LINT = resolve('tools/lint-imports.mjs');
const RULES = resolve('.dependency-cruiser.js');

/** Path of a package that was found, whose name is the first group. */
const PACKAGE = /\S*node_modules\/((?:@[^/]+\/)?[^/]+)\S*/;

/** A house in small, where every import is lawful. */
const LAWFUL: Record<string, string> = {
  'package.json': JSON.stringify({
    dependencies: {
      '@temporalio/client': '*',
      '@temporalio/workflow': '*',
      mongodb: '*',
      zod: '*',
    },
    devDependencies: { 'fast-check': '*' },
  }),
  'src/log.ts': "import './domain/money';",
  'src/json.ts': 'export const json = 1;',
  'src/mongo.ts': "import 'mongodb';",
  'src/domain/money.ts': "import 'zod'; import '../json';",
  'src/ledger/book.ts': "import '../domain/money';",
  'src/ledger/verify/verify.ts': "import '../../store/rows';",
  'src/store/rows.ts':
    "import 'node:crypto'; import '../ledger/book'; import type {} from '../log';",
  'src/temporal/door.ts': "import '@temporalio/client'; import '../domain/money';",
  'src/pages/pay.tsx': 'export const page = <p>Which import fits?</p>;',
  'src/api/app.ts': "import type {} from '@temporalio/client'; import '../temporal/door';",
  'connectors/contract/activities.ts': "import '../../src/log';",
  'connectors/bank/main.ts': "import '../contract/activities'; import '../../src/pages/pay';",
  'activities/payments.ts': "import type {} from '../connectors/contract/activities';",
  'workflows/payment.ts':
    "import '@temporalio/workflow'; import { type A } from '../activities/payments';",
  'worker/main.ts': "import '../workflows/payment'; import '../activities/payments';",
  'src/cli/program.ts': "import '../log';",
  'src/cli/main.ts': "import './program'; import '../../worker/main';",
  'stack/main.ts': "import '../src/log'; import '../src/cli/main';",
  'test/some.test.ts': "import 'fast-check'; import '../stack/main';",
};

/** Imports that a rule must refuse: the rule, the file, its text, and what it may not import. */
const PLANTED: [rule: string, file: string, text: string, to: string][] = [
  ['domain-is-pure', 'src/domain/a.ts', "import 'node:fs';", 'fs'],
  ['domain-is-pure', 'src/domain/b.ts', "import type {} from 'mongodb';", 'mongodb'],
  ['domain-is-pure', 'src/domain/c.ts', "export * from '../log';", 'src/log.ts'],
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
  ['stores-load-the-database', 'src/store/a.ts', "import '../log';", 'src/log.ts'],
  ['stores-load-the-database', 'src/store/b.ts', "import 'node:fs';", 'fs'],
  ['one-door-to-temporal', 'src/api/a.ts', "import '@temporalio/client';", '@temporalio/client'],
  [
    'one-door-to-temporal',
    'src/pages/a.tsx',
    "import '@temporalio/client'; const p = <p />;",
    '@temporalio/client',
  ],
  ['product-needs-no-tools', 'src/a.ts', "import 'fast-check';", 'fast-check'],
  ['imports-exist', 'src/b.ts', "import './nowhere';", './nowhere'],
  ['packages-are-listed', 'src/c.ts', "import 'typescript';", 'typescript'],
  ['no-circles', 'src/d.ts', "import './e';", 'src/e.ts → src/d.ts'],
  [
    'rooms-stand-on-earlier-ones',
    'activities/b.ts',
    "import type {} from '../workflows/payment';",
    'workflows/payment.ts',
  ],
  [
    'rooms-stand-on-earlier-ones',
    'src/f.ts',
    "import type {} from '../connectors/contract/activities';",
    'connectors/contract/activities.ts',
  ],
  [
    'rooms-stand-on-earlier-ones',
    'src/cli/a.ts',
    "import '../../activities/payments';",
    'activities/payments.ts',
  ],
  [
    'rooms-stand-on-earlier-ones',
    'src/api/b.ts',
    "import '../../connectors/bank/main';",
    'connectors/bank/main.ts',
  ],
  [
    'rooms-stand-on-earlier-ones',
    'src/ledger/postings.ts',
    "import type {} from '../store/rows';",
    'src/store/rows.ts',
  ],
  ['rooms-stand-on-earlier-ones', 'worker/a.ts', "import '../stack/main';", 'stack/main.ts'],
  ['rooms-stand-on-earlier-ones', 'src/g.ts', "import '../test/some.test';", 'test/some.test.ts'],
];

let house: string;

beforeEach(() => {
  house = mkdtempSync(join(tmpdir(), 'imports-'));
  symlinkSync(resolve('node_modules'), join(house, 'node_modules'));
  for (const [file, text] of Object.entries(LAWFUL)) plant(file, text);
});
afterEach(() => rmSync(house, { recursive: true }));

function plant(file: string, text: string): void {
  mkdirSync(dirname(join(house, file)), { recursive: true });
  writeFileSync(join(house, file), text);
}

function lint() {
  const { status, stdout, stderr } = spawnSync(process.execPath, [LINT], {
    cwd: house,
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

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describeProgram, PACKAGE_ROOT, PROGRAM } from '../../../src/base/program';

test('the commands of a checkout are npm scripts', () => {
  expect(PACKAGE_ROOT).toBe(join(__dirname, '../../..'));
  expect(PROGRAM).toEqual({ start: 'npm start', cli: 'npm run -s cli --' });
  const root = mkdtempSync(join(tmpdir(), 'program-'));
  writeFileSync(join(root, 'tsconfig.json'), '{}');
  expect(describeProgram(root, '/elsewhere')).toEqual(PROGRAM);
  rmSync(root, { recursive: true });
});

test('the commands of a package that the working directory has installed begin with npx', () => {
  expect(describeProgram('/shop/node_modules/durable-payments', '/shop')).toEqual({
    start: 'npx durable-payments start',
    cli: 'npx durable-payments cli',
  });
});

test('the commands of a package elsewhere have its path, since npx would not find it', () => {
  expect(describeProgram('/cache/a b/durable-payments', '/shop')).toEqual({
    start: "node '/cache/a b/durable-payments/dist/stack/bin.js' start",
    cli: "node '/cache/a b/durable-payments/dist/src/cli/main.js'",
  });
});

import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { VERSION } from '../../../clients/typescript/src/version';
import { openApiText } from '../../../docs/generate/openapi';

const ROOT = join(__dirname, '../../..');
const textOf = (path: string) => readFileSync(join(ROOT, path), 'utf8');

test('clients/openapi.json is the OpenAPI document: else run `npm run clients`', () => {
  expect(textOf('clients/openapi.json') === openApiText()).toBe(true);
});

test("the clients' types are made from it: else run `npm run clients`", () => {
  const module = pathToFileURL(join(ROOT, 'clients/generate/current.mjs')).href;
  const code = `import('${module}').then(({ hashAll }) => console.log(JSON.stringify(hashAll())))`;
  const { stdout, stderr } = spawnSync(process.execPath, ['-e', code], { encoding: 'utf8' });
  expect(stderr).toBe('');
  expect(JSON.parse(stdout)).toEqual(JSON.parse(textOf('clients/generate/types.lock.json')));
});

test('the version that the client sends is that of its package', () => {
  expect(JSON.parse(textOf('clients/typescript/package.json')).version).toBe(VERSION);
});

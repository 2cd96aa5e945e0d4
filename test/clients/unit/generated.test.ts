import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { VERSION } from '../../../clients/typescript/src/version';
import { openApiText } from '../../../docs/generate/openapi';

const ROOT = join(__dirname, '../../..');
const readText = (path: string) => readFileSync(join(ROOT, path), 'utf8');

test('clients/openapi.json is the OpenAPI document, as `npm run clients` writes it', () => {
  expect(readText('clients/openapi.json') === openApiText()).toBe(true);
});

test('the types of the clients are generated from the OpenAPI document, as `npm run clients` does', () => {
  const module = pathToFileURL(join(ROOT, 'clients/generate/current.mjs')).href;
  const code = `import('${module}').then(({ hashAll }) => console.log(JSON.stringify(hashAll())))`;
  const { stdout, stderr } = spawnSync(process.execPath, ['-e', code], { encoding: 'utf8' });
  expect(stderr).toBe('');
  expect(JSON.parse(stdout)).toEqual(JSON.parse(readText('clients/generate/types.lock.json')));
});

test('the client sends the version of its package', () => {
  expect(JSON.parse(readText('clients/typescript/package.json')).version).toBe(VERSION);
});

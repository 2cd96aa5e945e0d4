/** Writes facts of the code into the docs: `npm run docs`. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fill } from './blocks';
import { CONTRACT_FILE, contractSchemaText } from './contract-schema';
import { openApiText } from './openapi';
import { blocksByPage } from './pages';

/** The compiled file is `dist/docs/generate/main.js`. */
const ROOT = join(__dirname, '../../..');

for (const [page, blocks] of Object.entries(blocksByPage())) {
  update(page, (text) => fill(text, blocks));
}
update('clients/openapi.json', openApiText);
update(CONTRACT_FILE, contractSchemaText);

function update(name: string, write: (text: string) => string): void {
  const path = join(ROOT, name);
  const text = readFileSync(path, 'utf8');
  const current = write(text);
  if (current === text) return;
  writeFileSync(path, current);
  console.log(`${name} is current again.`);
}

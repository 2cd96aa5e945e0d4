/** Writes facts of the code into the docs: `npm run docs`. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fill } from './blocks';
import { blocksByPage } from './pages';

/** The compiled file is `dist/docs/generate/main.js`. */
const ROOT = join(__dirname, '../../..');

for (const [page, blocks] of Object.entries(blocksByPage())) {
  const path = join(ROOT, page);
  const text = readFileSync(path, 'utf8');
  const filled = fill(text, blocks);
  if (filled === text) continue;
  writeFileSync(path, filled);
  console.log(`${page} is current again.`);
}

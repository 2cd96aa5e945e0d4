/** Builds the docs site from the Markdown of the project: `npm run docs:site`. */
import { createHash } from 'node:crypto';
import {
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describePages } from './llms.mjs';
import { listFiles, listPages, ROOT } from './pages.mjs';
import { buildCollection } from './postman.mjs';
import { referencePages, referencePath } from './reference.mjs';

const HERE = dirname(fileURLToPath(import.meta.url));
/** Compiled by `npm run build`, which comes first. */
const { openApiDocument } = createRequire(import.meta.url)('../../dist/src/api/openapi.js');

const OUT = join(ROOT, 'dist/site');
const SOURCE = join(ROOT, 'dist/site-source');
const NEW = join(ROOT, 'dist/site-new');
const HASH = join(ROOT, 'dist/site.sha256');

/** Lists every file that the generator reads, by its path in the site's source. */
function listSources() {
  const api = openApiDocument('http://localhost:8080');
  const pages = { ...listPages(), ...referencePages(api) };
  const json = (value) => `${JSON.stringify(value, null, 2)}\n`;
  return {
    ...pages,
    ...listFiles(),
    'public/llms.txt': describePages(pages),
    'public/openapi.json': json(api),
    'public/postman.json': json(buildCollection(api)),
    '.vitepress/config.mjs': readFileSync(join(HERE, 'config.mjs')),
    '.vitepress/theme/index.mjs': readFileSync(join(HERE, 'theme.mjs')),
    '.vitepress/theme/tabs.mjs': readFileSync(join(HERE, 'tabs.mjs')),
    '.vitepress/theme/style.css': readFileSync(join(HERE, 'style.css')),
    '.vitepress/reference.json': json(
      api.tags.map(({ name }) => ({ text: name, link: `/${referencePath(name)}` })),
    ),
  };
}

function hash(sources) {
  const digest = createHash('sha256');
  for (const [path, content] of Object.entries(sources)) digest.update(`${path}\n`).update(content);
  digest.update(readFileSync(join(ROOT, 'node_modules/vitepress/package.json')));
  return digest.digest('hex');
}

async function main() {
  const sources = listSources();
  const current = hash(sources);
  const isBuilt = existsSync(join(OUT, 'index.html')) && existsSync(HASH);
  if (isBuilt && readFileSync(HASH, 'utf8') === current) return;
  for (const folder of [SOURCE, NEW]) rmSync(folder, { recursive: true, force: true });
  for (const [path, content] of Object.entries(sources)) {
    mkdirSync(dirname(join(SOURCE, path)), { recursive: true });
    writeFileSync(join(SOURCE, path), content);
  }
  cpSync(join(ROOT, 'docs/images'), join(SOURCE, 'images'), { recursive: true });
  process.env.NODE_ENV = 'production';
  const { build } = await import('vitepress');
  await build(SOURCE, { outDir: NEW });
  // A killed build leaves no half of a site.
  rmSync(OUT, { recursive: true, force: true });
  renameSync(NEW, OUT);
  writeFileSync(HASH, current);
}

await main();

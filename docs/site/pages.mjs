/** Reads the Markdown of the project as pages of the site. */
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { basename, dirname, join, posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expandSnippets } from './snippets.mjs';

export const ROOT = join(dirname(fileURLToPath(import.meta.url)), '../..');

const markdownIn = (folder) =>
  readdirSync(join(ROOT, folder)).filter((name) => name.endsWith('.md'));

/** Pages of the site by their path in the project. */
const PAGES = {
  'docs/README.md': 'index.md',
  'README.md': 'overview.md',
  'CHANGELOG.md': 'changelog.md',
  'CONTRIBUTING.md': 'contributing.md',
  'SECURITY.md': 'security-policy.md',
  'clients/typescript/README.md': 'clients/typescript.md',
  'clients/python/README.md': 'clients/python.md',
  ...Object.fromEntries(
    ['docs', 'docs/guides'].flatMap((folder) =>
      markdownIn(folder)
        .filter((name) => name !== 'README.md')
        .map((name) => [`${folder}/${name}`, `${folder.replace(/^docs\/?/, '')}/${name}`]),
    ),
  ),
};

const sitePath = (path) => PAGES[path]?.replace(/^\//, '');
const LINK = /\]\(([^)\s]+)\)/g;
const CODE_BLOCK = /^( *)(```|~~~)[\s\S]*?^\1\2 *$/gm;

export function listPages() {
  return Object.fromEntries(
    Object.keys(PAGES).map((path) => {
      const text = readFileSync(join(ROOT, path), 'utf8');
      return [sitePath(path), expandSnippets(outsideCode(text, (prose) => adapt(prose, path)))];
    }),
  );
}

/** Lists the files that pages link and that are no pages, such as examples. */
export function listFiles() {
  const linked = Object.keys(PAGES).flatMap((path) =>
    [...readFileSync(join(ROOT, path), 'utf8').matchAll(LINK)]
      .map(([, target]) => resolve(target, path).file)
      .filter(isPlainFile),
  );
  return Object.fromEntries(
    linked.map((file) => [`public/${publicPath(file)}`, readFileSync(join(ROOT, file))]),
  );
}

function isPlainFile(file) {
  if (file === undefined || file in PAGES || file.startsWith('docs/images/')) return false;
  return existsSync(join(ROOT, file)) && statSync(join(ROOT, file)).isFile();
}

/** Browsers show plain text, and would run or download the rest. */
const publicPath = (file) => `files/${file.replaceAll('/', '-')}.txt`;

/** Removes markers, closes what the forge shows closed, and leads links to pages of the site. */
function adapt(prose, path) {
  const here = dirname(sitePath(path));
  const closed = prose
    .replace(/<!--[\s\S]*?-->\n?/g, '')
    .replace(/<details>\n<summary>(.*)<\/summary>/g, '::: details $1')
    .replaceAll('</details>', ':::');
  return closed.replace(LINK, (link, target) => {
    const { file, anchor } = resolve(target, path);
    if (file === undefined) return link;
    if (file.startsWith('docs/images/')) return `](${posix.relative(here, file.slice(5))})`;
    if (file in PAGES)
      return `](${posix.relative(here, sitePath(file)) || basename(file)}${anchor})`;
    if (isPlainFile(file)) return `](/docs/${publicPath(file)}){target="_self"}`;
    return link;
  });
}

/** @returns the file in the project; none for an address on the web or on the same page */
function resolve(target, path) {
  if (/^([a-z]+:|#)/.test(target)) return { anchor: '' };
  const [to, anchor] = target.split('#');
  const file = posix.join(dirname(path), to).replace(/\/$/, '');
  return { file, anchor: anchor === undefined ? '' : `#${anchor}` };
}

function outsideCode(text, change) {
  let end = 0;
  let result = '';
  for (const { 0: block, index } of text.matchAll(CODE_BLOCK)) {
    result += change(text.slice(end, index)) + block;
    end = index + block.length;
  }
  return result + change(text.slice(end));
}

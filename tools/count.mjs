/**
 * Counts what a reader has to hold in mind, for each folder of the product: lines, files, files with one
 * importer, functions, and private functions that are called once.
 *
 * Run as `node tools/count.mjs [--list]`; `--list` names the files with one importer and the functions.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { parseArgs } from 'node:util';
import swc from '@swc/core';

const PRODUCT = ['src', 'workflows', 'activities', 'worker', 'connectors', 'stack'];
const OTHERS = ['test', 'bench'];
const { values } = parseArgs({ options: { list: { type: 'boolean', default: false } } });

const tracked = execFileSync('git', ['ls-files', '*.ts', '*.tsx', '*.js', '*.mjs'], {
  encoding: 'utf8',
})
  .split('\n')
  .filter((path) => path !== '' && existsSync(path));
const getFolder = (path) => path.split('/')[0];
const files = tracked.map((path) => read(path));
const byModule = new Map(files.map((file) => [file.path.replace(/\.tsx?$/, ''), file]));
for (const { path, imports } of files) {
  if (!PRODUCT.includes(getFolder(path))) continue;
  for (const from of imports) {
    const to = join(dirname(path), from);
    (byModule.get(to) ?? byModule.get(join(to, 'index')))?.importers.add(path);
  }
}

const rows = [...PRODUCT, ...OTHERS].map((folder) => count(folder));
const product = rows.slice(0, PRODUCT.length);
const total = { folder: 'product' };
for (const key of Object.keys(product[0])) {
  if (key !== 'folder') total[key] = product.reduce((sum, row) => sum + row[key], 0);
}
console.table([...product, total, ...rows.slice(PRODUCT.length)]);
if (values.list) list();

function count(folder) {
  const own = files.filter(({ path }) => getFolder(path) === folder);
  const sum = (get) => own.reduce((all, file) => all + get(file), 0);
  return {
    folder,
    lines: sum(({ lines }) => lines),
    files: own.length,
    'one importer': own.filter(({ importers }) => importers.size === 1).length,
    functions: sum(({ functions }) => functions),
    'called once': sum(({ calledOnce }) => calledOnce.length),
  };
}

function list() {
  for (const { path, importers, calledOnce } of files) {
    if (!PRODUCT.includes(getFolder(path))) continue;
    if (importers.size === 1) console.log(`${path} ← ${[...importers][0]}`);
    for (const name of calledOnce) console.log(`${path}: ${name}`);
  }
}

function read(path) {
  const text = readFileSync(path, 'utf8');
  const imports = [...text.matchAll(/(?:from |import\()'(\.[^']*)'/g)].map((match) => match[1]);
  const counted = [...PRODUCT, ...OTHERS].includes(getFolder(path)) && /\.tsx?$/.test(path);
  const { functions, calledOnce } = counted
    ? readFunctions(path)
    : { functions: 0, calledOnce: [] };
  const lines = text.split('\n').length - 1;
  return { path, lines, imports, importers: new Set(), functions, calledOnce };
}

/** Names of the module's own functions that are mentioned once, and the number of all functions. */
function readFunctions(path) {
  const syntax = { syntax: 'typescript', tsx: path.endsWith('.tsx') };
  const { body } = swc.parseFileSync(path, { ...syntax, target: 'es2022' });
  const declared = body
    .filter(({ type }) => type === 'FunctionDeclaration')
    .map(({ identifier }) => identifier.value);
  const mentions = new Map();
  let functions = 0;
  walk(body, (node) => {
    if (/^(FunctionDeclaration|FunctionExpression|ArrowFunctionExpression)$/.test(node.type)) {
      functions += 1;
    }
    if (node.type === 'Identifier') mentions.set(node.value, (mentions.get(node.value) ?? 0) + 1);
  });
  // Its declaration is one of the two.
  return { functions, calledOnce: declared.filter((name) => mentions.get(name) === 2) };
}

function walk(node, visit) {
  if (Array.isArray(node)) for (const each of node) walk(each, visit);
  else if (typeof node === 'object' && node !== null) {
    if (typeof node.type === 'string') visit(node);
    for (const each of Object.values(node)) walk(each, visit);
  }
}

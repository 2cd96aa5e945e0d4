import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { z } from 'zod';
import { ROOT } from './pages';

const TOOL = pathToFileURL(join(ROOT, 'tools/glossary.mjs')).href;

/** Runs an expression over the tool, which is an ES module, and parses the JSON that it gives. */
function evaluate(expression: string): unknown {
  const code = `import(${JSON.stringify(TOOL)}).then((tool) => console.log(JSON.stringify(${expression})))`;
  const { stdout, stderr } = spawnSync(process.execPath, ['-e', code], {
    cwd: ROOT,
    encoding: 'utf8',
  });
  expect(stderr).toBe('');
  return JSON.parse(stdout);
}

test('no file has a word that the glossary avoids', () => {
  expect(evaluate('tool.findAll()')).toEqual([]);
});

test.each([
  ['a.ts', 'const sealedSecret = 1;', 'sealedSecret'],
  ['a.ts', 'function rowOf(row: Row) {}', 'rowOf'],
  ['a.ts', '// The signal is not heeded.', 'heeded'],
  ['a.ts', "throw new Error('the amount was told to the merchant');", 'told'],
  ['a.md', 'Whoever calls is asked again.', 'whoever'],
])('in %s, %s is found', (path, text, word) => {
  const findings = evaluate(`tool.checkText(${JSON.stringify(path)}, ${JSON.stringify(text)})`);
  expect(findings).toContainEqual(expect.objectContaining({ line: 1, word }));
});

test.each([
  ['a.ts', 'const keyRing = readKeyRing(journalEntries);'],
  ['a.ts', "const dispute = row['clawed_back'];"],
  ['a.md', 'Send `posting` and `mac` as they are.'],
])('in %s, %s is fine', (path, text) => {
  const findings = evaluate(`tool.checkText(${JSON.stringify(path)}, ${JSON.stringify(text)})`);
  expect(findings).toEqual([]);
});

test('the table in CONTRIBUTING lists what to write', () => {
  const page = readFileSync(join(ROOT, 'CONTRIBUTING.md'), 'utf8');
  const rows = evaluate('tool.GLOSSARY.map(({ write }) => write)');
  const missing = z
    .array(z.string())
    .parse(rows)
    .filter((write) => !page.includes(`| ${write} |`));
  expect(missing).toEqual([]);
});

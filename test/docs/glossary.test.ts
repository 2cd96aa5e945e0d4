import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { z } from 'zod';
import { ROOT, readText } from './pages';

/** Evaluates an expression over the tool, which is an ES module, and parses the JSON that it gives. */
function evaluate(expression: string): unknown {
  const tool = pathToFileURL(join(ROOT, 'tools/glossary.mjs')).href;
  const code = `import('${tool}').then((tool) => console.log(JSON.stringify(${expression})))`;
  const run = spawnSync(process.execPath, ['-e', code], { cwd: ROOT, encoding: 'utf8' });
  expect(run.stderr).toBe('');
  return JSON.parse(run.stdout);
}

test('no file has a word that the glossary avoids', () => {
  expect(evaluate('tool.findAll()')).toEqual([]);
});

test.each([
  ['a.ts', `const ${'seal'}edSecret = 1;`, [`${'seal'}edSecret`]],
  ['a.md', `A caller is ${'to'}ld.`, [`${'to'}ld`]],
  ['a.ts', "const dispute = row['clawed_back'];", []],
])('in %s, the text "%s" has the avoided words %j', (path, text, words) => {
  const findings = evaluate(`tool.checkText(${JSON.stringify(path)}, ${JSON.stringify(text)})`);
  expect(findings).toEqual(words.map((word) => expect.objectContaining({ line: 1, word })));
});

test('the glossary in CONTRIBUTING lists every word that the tool recommends', () => {
  const page = readText('CONTRIBUTING.md');
  const words = z.array(z.string()).parse(evaluate('tool.GLOSSARY.map(({ write }) => write)'));
  expect(words.filter((word) => !page.includes(`| ${word} |`))).toEqual([]);
});

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const ROOT = join(__dirname, '..');
const FOLDERS = [
  'src',
  'workflows',
  'activities',
  'worker',
  'connectors',
  'stack',
  'bench',
  'test',
];

/** Doc comments from their first word on, on the line of the opening or on the next one. */
const DOC_COMMENT = /\/\*\*\s*(?:\*(?!\/)\s*)?([^\n]*)/g;

/** Beginnings that leave the reader without a noun or a verb. */
const RIDDLE = /^(?:Of|The same|Whatever|What|Whoever|Who|Where|One)\b/;

function commentsIn(text: string): string[] {
  return [...text.matchAll(DOC_COMMENT)].map(([, words = '']) => words);
}

function sourceFiles(): string[] {
  return FOLDERS.flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => /\.tsx?$/.test(name))
      .map((name) => join(folder, name)),
  );
}

const comments = sourceFiles().flatMap((file) =>
  commentsIn(readFileSync(join(ROOT, file), 'utf8')).map((words) => ({ file, words })),
);

test('the walk sees the comments that there are', () => {
  expect(comments.length).toBeGreaterThan(500);
});

test.each([
  ['on one line', `/** ${'What'} a key may do. */`],
  ['on several lines', '  /**\n   * The same of refunds,\n   * at once.\n   */'],
])('a riddle %s is found', (_name, text) => {
  expect(commentsIn(text).filter((words) => RIDDLE.test(words))).toHaveLength(1);
});

test('a comment may go on with such a word, or begin with a longer one', () => {
  const text = '/** Ones. */ /**\n * Names each fault.\n * What follows is told, too.\n */';
  expect(commentsIn(text).filter((words) => RIDDLE.test(words))).toEqual([]);
});

test('every doc comment begins with a noun or a verb', () => {
  const riddles = comments.filter(({ words }) => RIDDLE.test(words));
  expect(riddles.map(({ file, words }) => `${file}: ${words}`)).toEqual([]);
});

import { filesEndingIn, readText } from './docs/pages';

/** Doc comments from their first word on, on the line of the opening or on the next one. */
const DOC_COMMENT = /\/\*\*\s*(?:\*(?!\/)\s*)?([^\n]*)/g;

/** Beginnings that leave the reader without a noun or a verb. */
const RIDDLE = /^(?:Of|The same|Whatever|What|Who(?:ever)?|Where|One)\b/;

const DIRECTORIES = /^(?:src|workflows|activities|worker|connectors|stack|bench|test)\//;

function readComments(text: string): string[] {
  return [...text.matchAll(DOC_COMMENT)].map(([, words = '']) => words);
}

test('every doc comment begins with a noun or a verb', () => {
  const files = filesEndingIn('.ts', '.tsx').filter((file) => DIRECTORIES.test(file));
  const comments = files.flatMap((file) =>
    readComments(readText(file)).map((words) => ({ file, words })),
  );
  expect(comments.length).toBeGreaterThan(500);
  expect(comments.filter(({ words }) => RIDDLE.test(words))).toEqual([]);
});

test.each([
  [`/** ${'What'} a key may do. */`, true],
  ['  /**\n   * The same of refunds,\n   * at once.\n   */', true],
  ['/** Ones. */ /**\n * Names each fault.\n * What follows is listed, too.\n */', false],
])('the first word alone decides whether %j is a riddle: %s', (text, isRiddle) => {
  expect(readComments(text).some((words) => RIDDLE.test(words))).toBe(isRiddle);
});

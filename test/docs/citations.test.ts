import { anchorsOf, filesEndingIn, textOf } from './pages';

const CODE = filesEndingIn('.ts', '.tsx', '.mjs');

/** Headings of the docs that the code cites, such as `docs/api.md#refunds`. */
function citationsIn(path: string) {
  const cited = [...textOf(path).matchAll(/\b(docs\/[\w-]+\.md)#([\w-]+)/g)];
  return cited.map(([, page = '', anchor = '']) => ({ path, page, anchor }));
}

test('every heading that the code cites exists', () => {
  const cited = CODE.flatMap(citationsIn);
  expect(cited.length).toBeGreaterThan(100);
  expect(cited.filter(({ page, anchor }) => !anchorsOf(page).includes(anchor))).toEqual([]);
});

test('no code cites a document that is not in the project', () => {
  const nowhere = /\b[Ss]pec(ification)? §|\bDecided\b:/;
  expect(CODE.filter((path) => nowhere.test(textOf(path)))).toEqual([]);
});

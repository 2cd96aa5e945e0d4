import { existsSync, readdirSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { runbooks } from '../support/monitoring';
import { filesEndingIn, listAnchors, ROOT, readProse, readText } from './pages';

const PAGES = filesEndingIn('.md');
const CODE = filesEndingIn('.ts', '.tsx', '.mjs');

/** A path in code, without patterns such as `{payment,refund}` or `*`. */
const PATH = /`((?:src|workflows|activities|connectors|worker|stack|bench|docs|test)\/[\w./-]+)`/g;

interface Link {
  page: string;
  target: string;
}

/** Links from pages to files, headings and pictures of the project, without the web. */
const LINKS: Link[] = PAGES.flatMap((page) =>
  [...readProse(page).matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, target = '']) => ({ page, target }))
    .filter(({ target }) => !/^[a-z]+:/.test(target)),
);

function leadsSomewhere({ page, target }: Link): boolean {
  const [path = '', anchor] = target.split('#');
  const file = path === '' ? page : join(dirname(page), path);
  if (!existsSync(join(ROOT, file))) return false;
  return anchor === undefined || listAnchors(file).includes(anchor);
}

test('every link of a page leads to a file, and to a heading where it names one', () => {
  expect(LINKS.length).toBeGreaterThan(30);
  expect(LINKS.filter((link) => !leadsSomewhere(link))).toEqual([]);
  for (const target of ['nowhere.md', '#nowhere', 'webhooks.md#nowhere']) {
    expect(leadsSomewhere({ page: 'docs/api.md', target })).toBe(false);
  }
});

test('the page of alerts has one heading for each alert, to which the alert links', () => {
  const links = runbooks().map(({ alert, page, anchor }) => [alert, `${page}#${anchor}`]);
  const headings = readProse('docs/alerts.md').match(/^### .+$/gm) ?? [];
  const alerts = headings.map((heading) => heading.replace('### ', ''));
  expect(alerts.length).toBeGreaterThan(30);
  expect(links.toSorted()).toEqual(
    alerts.toSorted().map((alert) => [alert, `docs/alerts.md#${alert.toLowerCase()}`]),
  );
});

test('every picture is shown on a page, and all of them stay small', () => {
  const pictures = readdirSync(join(ROOT, 'docs/images'));
  const shown = new Set(LINKS.map(({ target }) => target));
  expect(pictures.filter((name) => !shown.has(`images/${name}`))).toEqual([]);
  const sizes = pictures.map((name) => statSync(join(ROOT, 'docs/images', name)).size);
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(1_500_000);
});

// Each version of the changelog has the same headings.
test.each(PAGES.filter((page) => page !== 'CHANGELOG.md'))(
  'no two headings of %s have the same anchor',
  (page) => {
    expect(listAnchors(page).filter((anchor) => /-\d+$/.test(anchor))).toEqual([]);
  },
);

test('every file that the docs name exists', () => {
  const paths = PAGES.flatMap((page) =>
    [...readProse(page).matchAll(PATH)].map(([, path]) => path),
  );
  expect(paths.length).toBeGreaterThan(30);
  expect(paths.filter((path = '') => !existsSync(join(ROOT, path)))).toEqual([]);
});

test('every heading that the code cites exists', () => {
  const cited = CODE.flatMap((path) =>
    [...readText(path).matchAll(/\bdocs\/([\w-]+\.md#[\w-]+)/g)].map(([, target = '']) => target),
  );
  expect(cited.length).toBeGreaterThan(100);
  const broken = cited.filter((target) => !leadsSomewhere({ page: 'docs/api.md', target }));
  expect(broken).toEqual([]);
});

test('no code cites a document that is not in the project', () => {
  const elsewhere = /\b[Ss]pec(ification)? §|\bDecided\b:/;
  expect(CODE.filter((path) => elsewhere.test(readText(path)))).toEqual([]);
});

test('the list of recorded histories names every file of their folder, and no other', () => {
  const listed = readText('test/replay/README.md').matchAll(
    /`((?:payment|refund|payout|webhook|crypto|schedule|clock)-[\w-]+)`/g,
  );
  const files = readdirSync(join(ROOT, 'test/replay/histories'));
  expect([...listed].map(([, name]) => name).sort()).toEqual(
    files.map((name) => basename(name, '.json')).sort(),
  );
});

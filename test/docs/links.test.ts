import { existsSync, readdirSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { runbooks } from '../support/monitoring';
import { anchorsOf, filesEndingIn, proseOf, ROOT } from './pages';

const PAGES = filesEndingIn('.md');

interface Link {
  page: string;
  target: string;
}

/** Links to files, headings and pictures of the project, without the web. */
function linksOf(page: string): Link[] {
  const links = [...proseOf(page).matchAll(/\]\(([^)\s]+)\)/g)];
  return links
    .map(([, target = '']) => ({ page, target }))
    .filter(({ target }) => !/^[a-z]+:/.test(target));
}

function leadsSomewhere({ page, target }: Link): boolean {
  const [path = '', anchor] = target.split('#');
  const file = path === '' ? page : join(dirname(page), path);
  if (!existsSync(join(ROOT, file))) return false;
  return anchor === undefined || anchorsOf(file).includes(anchor);
}

test('every link between the pages leads to a file, and to a heading where it names one', () => {
  const links = PAGES.flatMap(linksOf);
  expect(links.length).toBeGreaterThan(30);
  expect(links.filter((link) => !leadsSomewhere(link))).toEqual([]);
});

test('every alert leads to its own heading of the page of alerts', () => {
  expect(runbooks().length).toBeGreaterThan(30);
  for (const { alert, page, anchor } of runbooks()) {
    expect({ alert, page, anchor }).toEqual({
      ...{ alert, page: 'docs/alerts.md' },
      anchor: alert.toLowerCase(),
    });
    expect(anchorsOf(page)).toContain(anchor);
  }
  const headings = proseOf('docs/alerts.md').match(/^### .+$/gm) ?? [];
  const named = headings.map((heading) => heading.replace('### ', ''));
  expect(named.toSorted()).toEqual(
    runbooks()
      .map(({ alert }) => alert)
      .toSorted(),
  );
});

test('every picture is shown on a page, and all of them stay small', () => {
  const folder = join(ROOT, 'docs/images');
  const pictures = readdirSync(folder);
  const shown = new Set(PAGES.flatMap(linksOf).map(({ target }) => target));
  expect(pictures.filter((name) => !shown.has(`images/${name}`))).toEqual([]);
  const bytes = pictures.reduce((sum, name) => sum + statSync(join(folder, name)).size, 0);
  expect(bytes).toBeLessThan(1_500_000);
});

test('a link that leads nowhere is reported', () => {
  const page = 'docs/api.md';
  for (const target of ['nowhere.md', '#nowhere', 'webhooks.md#nowhere', '../nowhere']) {
    expect(leadsSomewhere({ page, target })).toBe(false);
  }
  for (const target of ['webhooks.md', '#errors', 'webhooks.md#roll-the-secret', '../LICENSE']) {
    expect(leadsSomewhere({ page, target })).toBe(true);
  }
});

test('no page has two headings with one anchor', () => {
  // Each version of the changelog has the same headings.
  for (const page of PAGES.filter((page) => page !== 'CHANGELOG.md')) {
    const anchors = anchorsOf(page);
    const twice = anchors.filter((anchor) => /-\d+$/.test(anchor));
    expect({ page, twice }).toEqual({ page, twice: [] });
  }
});

test('every file that the docs name exists', () => {
  const named = PAGES.flatMap((page) =>
    [...proseOf(page).matchAll(PATH)].map(([, path = '']) => ({ page, path })),
  );
  expect(named.length).toBeGreaterThan(30);
  expect(named.filter(({ path }) => !existsSync(join(ROOT, path)))).toEqual([]);
});

/** A path in code, without patterns such as `{payment,refund}` or `*`. */
const PATH = /`((?:src|workflows|activities|connectors|worker|stack|bench|docs|test)\/[\w./-]+)`/g;

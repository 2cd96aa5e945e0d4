import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import Koa from 'koa';
import type { Page } from 'playwright-core';
import { z } from 'zod';
import { createDocsSite } from '../../src/pages/docs-site';
import { eventually } from '../support/eventually';
import { useFixture } from '../support/fixture';
import { receiveHttp } from '../webhooks/receiver';
import { look, useBrowser } from './dashboard-visit';

/** Built by `npm run build`. */
const SITE = join(__dirname, '../../dist/site');

const browser = useBrowser();
const site = useFixture(
  async () => {
    const app = new Koa();
    app.use(createDocsSite({ publicUrl: 'http://localhost', folder: SITE }).routes());
    const { port, close } = await receiveHttp(app.callback());
    return { url: `http://localhost:${port}`, close };
  },
  ({ close }) => close(),
);

const read = (path: string) => readFileSync(join(SITE, path), 'utf8');
const PAGES = readdirSync(SITE, { recursive: true, encoding: 'utf8' }).filter((name) =>
  name.endsWith('.html'),
);

/** A page of the site as its scripts leave it; notes what the browser refuses and what leaves the site. */
async function open(path: string): Promise<{ page: Page; faults: string[] }> {
  const page = await (await browser.newContext()).newPage();
  const faults: string[] = [];
  page.on('pageerror', (error) => faults.push(String(error)));
  page.on('console', (message) => {
    if (message.type() === 'error') faults.push(message.text());
  });
  page.on('request', (request) => {
    const address = request.url();
    if (!address.startsWith(site.url) && !address.startsWith('data:')) faults.push(address);
  });
  await page.goto(`${site.url}${path}`);
  await toRun(page);
  return { page, faults };
}

/** The switch of colors has its title from the page's scripts: until then, no page is complete. */
async function toRun(page: Page): Promise<void> {
  await page
    .locator('.VPSwitchAppearance[title]:not([title=""])')
    .first()
    .waitFor({ state: 'attached' });
}

test.each([
  ['docs-home', '/docs/'],
  ['docs-guide', '/docs/guides/first-payment'],
  ['docs-guide-webhooks', '/docs/guides/webhooks'],
  ['docs-api', '/docs/api'],
  ['docs-webhooks', '/docs/webhooks'],
  ['docs-client', '/docs/clients/python'],
  ['docs-reference', '/docs/reference/payments'],
])(
  '%s is accessible at both widths and loads nothing from elsewhere, and no request fails',
  async (name, path) => {
    const { page, faults } = await open(path);
    await page.getByRole('heading', { level: 1 }).waitFor();
    await look(page, name, { isFrame: name === 'docs-home' });
    expect(faults).toEqual([]);
    await page.context().close();
  },
);

test('no element has a style of its own, and code has its colors', async () => {
  const styled = PAGES.flatMap((page) => read(page).match(/<[^>]+\sstyle=[^>]*>/g) ?? []);
  expect(styled).toEqual([]);
  const names = PAGES.flatMap((page) => read(page).match(/(?<=<span class=")code-\w+/g) ?? []);
  const rules = read('code.css');
  expect([...new Set(names)].filter((name) => !rules.includes(`.${name} {`))).toEqual([]);
  const { page, faults } = await open('/docs/webhooks');
  const words = '[...document.querySelectorAll(".vp-doc pre .line > span")]';
  const colors = await page.evaluate(`${words}.map((word) => getComputedStyle(word).color)`);
  expect(new Set(z.array(z.string()).parse(colors)).size).toBeGreaterThan(3);
  expect(faults).toEqual([]);
  await page.context().close();
});

test('the search works without a network', async () => {
  const { page, faults } = await open('/docs/');
  await page.getByRole('button', { name: 'Search' }).first().click();
  await page.getByRole('searchbox').fill('chargeback');
  await page
    .getByRole('option', { name: /Balances/ })
    .first()
    .click();
  await page.waitForURL(/balances/);
  expect(faults).toEqual([]);
  await page.context().close();
});

/**
 * Languages that the groups of tabs show, from the top to the bottom of the page, unless a tab and
 * its text differ.
 */
async function readLanguages(page: Page): Promise<string[] | undefined> {
  const checked = page.locator('.vp-code-group input:checked + label');
  const visible = page.locator('.vp-code-group .blocks > .active');
  const shown = await Promise.all((await visible.all()).map((block) => block.isVisible()));
  const languages = await checked.allTextContents();
  return shown.length === languages.length && shown.every(Boolean) ? languages : undefined;
}

async function toShow(page: Page, languages: string[]): Promise<void> {
  await eventually(languages.join(), async () => {
    return JSON.stringify(await readLanguages(page)) === JSON.stringify(languages);
  });
}

test('all tabs show the chosen language, on other pages and after a reload', async () => {
  const { page, faults } = await open('/docs/guides/first-payment');
  await toShow(page, ['curl', 'curl', 'curl']);
  const last = page.locator('.vp-code-group').last();
  await last.scrollIntoViewIfNeeded();
  const readTop = async () => Math.round((await last.boundingBox())?.y ?? Number.NaN);
  await last.getByText('PHP', { exact: true }).scrollIntoViewIfNeeded();
  const top = await readTop();
  await last.getByText('PHP', { exact: true }).click();
  await toShow(page, ['PHP', 'PHP', 'PHP']);
  // The tabs above have become higher, and the reader sees the same place.
  expect(Math.abs((await readTop()) - top)).toBeLessThanOrEqual(1);
  await page.reload();
  await toRun(page);
  await toShow(page, ['PHP', 'PHP', 'PHP']);
  await page.getByRole('link', { name: 'receive the webhook' }).click();
  await page.waitForURL(/guides\/webhooks/);
  await toShow(page, ['PHP', 'PHP']);
  await page.locator('.vp-code-group').last().getByText('Shell', { exact: true }).click();
  await toShow(page, ['curl', 'Shell']);
  expect(faults).toEqual([]);
  await page.context().close();
});

test('tabs are chosen with the keyboard, and named for screen readers', async () => {
  const { page, faults } = await open('/docs/guides/refund');
  const tabs = page.getByRole('radiogroup', { name: 'Language' });
  await tabs.getByRole('radio', { name: 'curl' }).focus();
  await page.keyboard.press('ArrowRight');
  await toShow(page, ['TypeScript']);
  await page.keyboard.press('ArrowRight');
  await toShow(page, ['Python']);
  const label = tabs.locator('input:focus + label');
  expect(await label.textContent()).toBe('Python');
  const outline = 'getComputedStyle(document.querySelector("input:focus + label")).outlineStyle';
  expect(await page.evaluate(outline)).toBe('solid');
  await look(page, 'docs-tabs');
  expect(faults).toEqual([]);
  await page.context().close();
});

test('every group of tabs has each language once', () => {
  const groups = PAGES.filter((page) => page.startsWith('guides/')).flatMap((page) =>
    [...read(page).matchAll(/<div class="tabs"[^>]*>(.*?)<\/div>/g)].map(([, tabs = '']) =>
      [...tabs.matchAll(/data-title="([^"]+)"/g)].map(([, title]) => title),
    ),
  );
  expect(groups).toHaveLength(10);
  for (const [first, ...rest] of groups) {
    expect(['curl', 'Shell']).toContain(first);
    expect(rest).toEqual(['TypeScript', 'Python', 'PHP']);
  }
});

test('the reference shows limits, rules of optional fields, each kind of balance, and no address of the machine that built it', () => {
  expect(read('reference/payments.html')).toContain('string (uri, up to 2048 characters)');
  expect(read('reference/payouts.html')).toContain('Required with an IBAN outside the SEPA area.');
  expect(read('reference/balances.html')).toMatch(
    /data\[\]\.owed<\/code><\/td>\s*<td[^>]*>integer or string/,
  );
  const reference = PAGES.filter((page) => page.startsWith('reference/'));
  expect(reference.length).toBeGreaterThan(5);
  for (const page of reference) expect(read(page)).not.toMatch(/curl[^\n]*localhost/);
});

test('every link of a page leads to a page and a heading', () => {
  const targets = PAGES.filter((page) => page !== '404.html').flatMap((page) =>
    [...read(page).matchAll(/ (?:href|src)="(\/docs\/[^"]*|#[^"]*)"/g)].map(([, target = '']) =>
      target.startsWith('#') ? `/docs/${page.replace(/\.html$/, '')}${target}` : target,
    ),
  );
  expect(targets.length).toBeGreaterThan(500);
  expect([...new Set(targets)].filter((target) => !leadsSomewhere(target))).toEqual([]);
});

function leadsSomewhere(target: string): boolean {
  const [path = '', anchor] = target.replace('/docs/', '').split('#');
  const page = path === '' ? 'index.html' : `${path}.html`;
  if (!PAGES.includes(page)) return anchor === undefined && isFile(path);
  return anchor === undefined || read(page).includes(` id="${decodeURIComponent(anchor)}"`);
}

function isFile(path: string): boolean {
  return readdirSync(SITE, { recursive: true, encoding: 'utf8' }).includes(path);
}

const Item = z.object({
  item: z.array(
    z.object({ request: z.object({ method: z.string(), url: z.object({ raw: z.string() }) }) }),
  ),
});

test('the reference and the Postman collection have every operation', () => {
  const { paths } = z
    .object({ paths: z.record(z.string(), z.record(z.string(), z.unknown())) })
    .parse(JSON.parse(read('openapi.json')));
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
  );
  const reference = PAGES.filter((page) => page.startsWith('reference/'))
    .map(read)
    .join('\n');
  expect(operations.filter((each) => !reference.includes(`<code>${each}</code>`))).toEqual([]);
  const { item } = z.object({ item: z.array(Item) }).parse(JSON.parse(read('postman.json')));
  const requests = item
    .flatMap((folder) => folder.item)
    .map(({ request }) => `${request.method} ${request.url.raw.replace('{{base_url}}', '')}`);
  const expected = operations.map((each) => each.replace(/\{(\w+)\}/g, ':$1'));
  expect(requests.toSorted()).toEqual(expected.toSorted());
});

test('llms.txt names every page, and each of them exists', async () => {
  const named = [...read('llms.txt').matchAll(/\]\(\/docs\/([^)]+)\)/g)].map(([, path]) => path);
  const pages = PAGES.map((page) => page.replace(/\.html$/, ''));
  expect(pages.filter((page) => !['index', '404', ...named].includes(page))).toEqual([]);
  for (const path of named) {
    const { status } = await fetch(`${site.url}/docs/${path}`);
    expect({ path, status }).toEqual({ path, status: 200 });
  }
});

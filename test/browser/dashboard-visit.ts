import { mkdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import {
  type BrowserContext,
  type BrowserContextOptions,
  chromium as engine,
  type Page,
} from 'playwright-core';
import type { UserDocument } from '../../src/store/users';
import { findFaults } from '../support/axe';
import { PASSWORD } from '../support/dashboard';
import { useFixture } from '../support/fixture';
import { chromium } from '../support/servers';

/** Nothing of its own goes out: this machine may have no network. */
const ARGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

export const SIZES = {
  desktop: { width: 1280, height: 800 },
  phone: { width: 390, height: 844 },
} as const;

/** Longer than any step takes on a busy machine. */
const STEP_MS_MAX = 120_000;

/** A browser for one file's tests. */
export function useBrowser() {
  return useFixture(
    async () => {
      const options = { executablePath: chromium(), args: ARGS, timeout: STEP_MS_MAX };
      const browser = await engine.launch(options);
      return {
        newContext: async (options?: BrowserContextOptions): Promise<BrowserContext> => {
          const context = await browser.newContext(options);
          context.setDefaultTimeout(STEP_MS_MAX);
          return context;
        },
        close: () => browser.close(),
      };
    },
    ({ close }) => close(),
  );
}

/** Collects what the browser logs or throws on a page. */
export function collectNoise(page: Page): string[] {
  const noise: string[] = [];
  page.on('console', (message) => noise.push(message.text()));
  page.on('pageerror', (error) => noise.push(error.message));
  return noise;
}

/** Signs in by the form, as a person does. */
export async function enter(
  context: BrowserContext,
  url: string,
  { email, password = PASSWORD }: Pick<UserDocument, 'email'> & { password?: string },
): Promise<Page> {
  const page = await context.newPage();
  await page.goto(`${url}/dashboard`);
  await walk(page, ['Sign in', { 'E-mail': email, Password: password }]);
  await page.waitForURL(/\/dashboard\/(sandbox|live|sign-in\/(code|password))/);
  return page;
}

/** Values of a form's fields by their labels; whether a box is checked. */
type Values = Readonly<Record<string, string | boolean>>;

/** Names a button or link, or a path; words that the next page has; a name under which it is looked at. */
type Step = readonly [to: string, values?: Values, words?: string | RegExp, picture?: string];

export const PROOF = { Password: PASSWORD };

/** Goes from page to page as a person does: fills a form, presses a button, and waits for the next page. */
export async function walk(page: Page, ...steps: readonly Step[]): Promise<void> {
  for (const [to, values = {}, words, picture] of steps) {
    for (const [label, value] of Object.entries(values)) await fill(page, label, value);
    if (to.startsWith('/')) await page.goto(new URL(to, page.url()).href);
    else await find(page, to, Object.keys(values).length > 0).click();
    if (words !== undefined) await page.getByText(words).first().waitFor();
    if (picture !== undefined) await look(page, picture);
  }
}

/** A form is sent by a button, which scripts rely on. */
function find(page: Page, name: string, isForm: boolean) {
  const button = page.getByRole('button', { name, exact: true });
  const link = page.getByRole('link', { name, exact: true });
  return (isForm ? button : button.or(link)).first();
}

async function fill(page: Page, label: string, value: string | boolean): Promise<void> {
  const field = page.getByLabel(label, { exact: true });
  if (typeof value === 'boolean') return await field.setChecked(value);
  const isChoice = await field.evaluate((element) => element.nodeName === 'SELECT');
  await (isChoice ? field.selectOption(value) : field.fill(value));
}

/** Evidence of a merchant, by the labels of its fields. */
export const EVIDENCE = {
  Explanation: 'The parcel was signed for.\nSee the tracking number.',
  'Shipped on': '2026-03-02',
  Carrier: 'PostNL',
  'Tracking number': '3SABCD0123456',
};

/** Sends evidence by the form of a dispute, and looks at the page that asks to confirm it. */
export async function answerDispute(page: Page, name: string): Promise<void> {
  await walk(
    page,
    ['Send evidence', EVIDENCE, 'It is sent once', name],
    ['Send evidence', {}, 'The evidence is sent. Now the bank decides.'],
  );
}

/** Asserts that nothing of the page is cut off at its width. */
async function expectFits(page: Page, name: string): Promise<void> {
  const wider = await page.evaluate('document.documentElement.scrollWidth - innerWidth');
  expect({ name, ...page.viewportSize(), wider: Number(wider) <= 0 }).toMatchObject({
    wider: true,
  });
}

/** Asserts that nothing of the page is cut off at any size, for texts of other lengths. */
export async function fitAll(page: Page, name: string): Promise<void> {
  for (const viewport of Object.values(SIZES)) {
    await page.setViewportSize(viewport);
    await expectFits(page, name);
  }
}

/**
 * Looks at the page at each size and in both colour schemes: no fault of weight, nothing cut off.
 * Colors are the same at each width but in the frame around all pages, so a narrow page is looked
 * at for them only where it stands for that frame.
 */
export async function look(page: Page, name: string, { isFrame = false } = {}): Promise<void> {
  await page.waitForLoadState();
  const looks = [
    ['desktop', 'light', {}],
    ['desktop', 'dark', OF_COLORS],
    ['phone', 'light', isFrame ? {} : WITHOUT_COLORS],
    ['phone', 'dark', isFrame ? OF_COLORS : undefined],
  ] as const;
  for (const [size, colorScheme, rules] of looks) {
    await page.setViewportSize(SIZES[size]);
    await page.emulateMedia({ colorScheme });
    const faults = rules === undefined ? [] : await findFaults(page, rules);
    expect({ name, size, colorScheme, faults }).toMatchObject({ faults: [] });
    await expectFits(page, name);
    await photograph(page, `${name}-${size}-${colorScheme}`);
  }
  await page.setViewportSize(SIZES.desktop);
  await page.emulateMedia({ colorScheme: 'light' });
}

const COLORS = ['color-contrast', 'link-in-text-block'];
/** Rules that look at colors: what all others look at is the same in the dark. */
const OF_COLORS = { runOnly: COLORS };
const WITHOUT_COLORS = {
  rules: Object.fromEntries(COLORS.map((rule) => [rule, { enabled: false }])),
};

const DOCS = join(__dirname, '../../docs');
/** Height of a picture in the docs at most. */
const DOCS_HEIGHT = 1_000;

/**
 * Keeps a picture where `TEST_SCREENSHOTS` names a folder; of those that the docs show only the top,
 * and no others, where it names their folder.
 */
async function photograph(page: Page, name: string): Promise<void> {
  const folder = process.env['TEST_SCREENSHOTS'];
  if (folder === undefined) return;
  const path = join(folder, `${name}.png`);
  mkdirSync(folder, { recursive: true });
  if (resolve(folder) !== resolve(DOCS, 'images')) {
    await page.screenshot({ path, fullPage: true });
    return;
  }
  if (!readFileSync(join(DOCS, 'dashboard.md'), 'utf8').includes(`(images/${name}.png)`)) return;
  const whole = Number(await page.evaluate('document.documentElement.scrollHeight'));
  const { width = 0 } = page.viewportSize() ?? {};
  const clip = { x: 0, y: 0, width, height: Math.min(whole, DOCS_HEIGHT) };
  await page.screenshot({ path, fullPage: true, clip });
}

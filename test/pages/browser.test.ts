import { mkdirSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core';
import type { PaymentDocument } from '../../src/store/payments';
import { type BankServer, startBankServer } from '../connectors/bank-server';
import * as servers from '../support/servers';
import { type PayServer, startPayServer } from './pay-server';

const PICTURES = process.env['TEST_SCREENSHOTS'] ?? join(tmpdir(), 'durable-payments-pictures');
const DESKTOP = { width: 1280, height: 860 };
const PHONE = { width: 390, height: 844 };

let pay: PayServer;
let bank: BankServer;
let browser: Browser;
beforeAll(async () => {
  mkdirSync(PICTURES, { recursive: true });
  pay = await startPayServer();
  bank = await startBankServer(pay.mongo, pay.database);
  const args = ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu'];
  browser = await chromium.launch({ executablePath: servers.chromium(), args });
});
afterAll(async () => {
  await browser?.close();
  await bank?.stop();
  await pay?.stop();
});

type Options = Parameters<Browser['newContext']>[0];

/** A browser of its own, in which the shop answers (first from another origin, as shops do). */
async function visit<T>(options: Options, work: (page: Page) => Promise<T>): Promise<T> {
  const context: BrowserContext = await browser.newContext({ viewport: DESKTOP, ...options });
  context.setDefaultTimeout(8_000);
  await context.route('https://shop.example/**', (route) => {
    const path = new URL(route.request().url()).pathname;
    return route.fulfill({ contentType: 'text/html', body: `<h1>Shop ${path}</h1>` });
  });
  try {
    return await work(await context.newPage());
  } finally {
    await context.close();
  }
}

/** A payment with a session at the real sandbox bank. */
async function newPayment(change: Partial<PaymentDocument> = {}) {
  const made = await pay.insert(change);
  const { _id, amount, currency, method, country, livemode, expires_at } = made.payment;
  const answer = await bank.bank.activities.openSession({
    payment_id: _id,
    ...{ amount, currency, method, country, livemode, expires_at },
    return_url: `${pay.url}/pay/return/${_id}`,
  });
  if (answer.outcome !== 'opened') throw new Error(answer.message);
  await pay.set(_id, { session_url: answer.session_url });
  return { ...made, id: _id, link: `${pay.url}/pay/${made.token}`, session: answer.session_url };
}

const picture = (page: Page, name: string) =>
  page.screenshot({ path: join(PICTURES, `${name}.png`), fullPage: true });

const sideScroll = (page: Page) =>
  page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);

const button = (page: Page, name: string) => page.getByRole('button', { name });

it('takes a customer from the pay page through the bank to the shop', async () => {
  const { link, id } = await newPayment();
  await visit({}, async (page) => {
    const noise: string[] = [];
    page.on('console', (message) => noise.push(message.text()));
    page.on('pageerror', (error) => noise.push(error.message));
    await page.goto(link);
    await picture(page, 'pay-desktop');
    await button(page, 'Continue to iDEAL').click();
    await page.getByRole('heading', { name: 'Choose your bank' }).waitFor();
    await picture(page, 'bank-selector-desktop');
    await page.getByLabel('Birch Savings').check();
    await button(page, 'Approve payment').click();
    await page.getByRole('heading', { name: /Waiting for the bank/ }).waitFor();
    await picture(page, 'return-desktop');
    await pay.set(id, { status: 'authorized' });
    await page.getByRole('heading', { name: 'Shop /thanks' }).waitFor();
    await page.goto(link);
    await page.getByRole('heading', { name: 'You have paid' }).waitFor();
    await picture(page, 'outcome-desktop');
    expect(noise).toEqual([]);
  });
});

it('goes on from the bank to another origin at once: no policy stops the redirect', async () => {
  const { link, id } = await newPayment();
  await visit({}, async (page) => {
    await page.goto(link);
    await button(page, 'Continue to iDEAL').click();
    await page.getByLabel('Amber Bank').waitFor();
    await pay.set(id, { status: 'settled' });
    await button(page, 'Approve payment').click();
    await page.getByRole('heading', { name: 'Shop /thanks' }).waitFor();
  });
});

it('leads a customer who cancels to the shop', async () => {
  const { link } = await newPayment();
  await visit({}, async (page) => {
    await page.goto(link);
    await button(page, 'Cancel payment').click();
    await page.getByRole('heading', { name: 'Shop /sorry' }).waitFor();
  });
});

it('refuses a second browser and a page that came too late', async () => {
  const { link } = await newPayment();
  await visit({}, async (page) => {
    await page.goto(link);
    await button(page, 'Continue to iDEAL').click();
    await page.getByRole('heading', { name: 'Choose your bank' }).waitFor();
  });
  await visit({}, async (page) => {
    expect((await page.goto(link))?.status()).toBe(410);
    await page.getByRole('heading', { name: 'This link was used already' }).waitFor();
    await picture(page, 'used-desktop');
  });
  const late = await newPayment();
  await visit({ viewport: PHONE }, async (page) => {
    await page.goto(late.link);
    await pay.set(late.id, { expires_at: new Date(Date.now() - 1_000).toISOString() });
    await button(page, 'Continue to iDEAL').click();
    await page.getByRole('heading', { name: 'This payment link has expired' }).waitFor();
    await picture(page, 'expired-phone');
  });
});

it('waits for a slow bank and goes there by itself, with and without JavaScript', async () => {
  for (const javaScriptEnabled of [true, false]) {
    const { link, id, session } = await newPayment();
    await pay.set(id, { status: 'created', session_url: null });
    await visit({ javaScriptEnabled, viewport: PHONE }, async (page) => {
      await page.goto(link);
      await button(page, 'Continue to iDEAL').click();
      await page.getByRole('heading', { name: 'Opening iDEAL' }).waitFor();
      await page.getByRole('progressbar').waitFor();
      if (javaScriptEnabled) await picture(page, 'opening-phone');
      await pay.set(id, { status: 'awaiting_customer', session_url: session });
      await page.getByRole('heading', { name: 'Choose your bank' }).waitFor();
    });
  }
});

it('works without JavaScript from end to end', async () => {
  const { link, id } = await newPayment({ method: 'mbway' });
  await visit({ javaScriptEnabled: false, viewport: PHONE }, async (page) => {
    await page.goto(link);
    await button(page, 'Continue to MB WAY').click();
    await button(page, 'Send to my phone').click();
    await button(page, 'Approve on the phone').click();
    await page.getByRole('heading', { name: /Waiting for the bank/ }).waitFor();
    await pay.set(id, { status: 'authorized' });
    await page.getByRole('heading', { name: 'Shop /thanks' }).waitFor();
  });
});

it('works with the keyboard alone', async () => {
  const { link } = await newPayment();
  await visit({}, async (page) => {
    await page.goto(link);
    const focused = () => page.evaluate(() => document.activeElement?.textContent?.trim());
    const outline = () =>
      page.evaluate(() => getComputedStyle(document.activeElement ?? document.body).outlineStyle);
    await page.keyboard.press('Tab');
    expect(await focused()).toBe('Continue to iDEAL');
    expect(await outline()).toBe('solid');
    await page.keyboard.press('Tab');
    expect(await focused()).toBe('Cancel payment');
    await page.keyboard.press('Shift+Tab');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Choose your bank' }).waitFor();
    await page.keyboard.press('Tab');
    await page.keyboard.press('ArrowDown');
    expect(await page.getByLabel('Birch Savings').isChecked()).toBe(true);
    await page.keyboard.press('Tab');
    expect(await focused()).toBe('Approve payment');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: /Waiting for the bank/ }).waitFor();
  });
});

const METHODS = [
  ['ideal', 'bank-selector'],
  ['mbway', 'wallet'],
  ['visa', 'card'],
  ['multibanco', 'cash-reference'],
  ['paysafecard', 'voucher'],
] as const;

it.each(METHODS)('fits %s into a phone of 360 px, and says whose money moves', async (...row) => {
  const [method, name] = row;
  const { link } = await newPayment({ method, reference: `order-${'1042'.repeat(30)}` });
  await visit({ viewport: { width: 360, height: 740 } }, async (page) => {
    await page.goto(link);
    expect(await sideScroll(page)).toBe(0);
    if (method === 'ideal') await picture(page, 'pay-long-phone');
    await button(page, 'Continue to').click();
    await page.getByText('Sandbox bank: no money moves').waitFor();
    expect(await sideScroll(page)).toBe(0);
    expect(await page.locator('main').count()).toBe(1);
  });
  const again = await newPayment({ method });
  await visit({ viewport: PHONE }, async (page) => {
    await page.goto(again.link);
    await picture(page, `pay-${name}-phone`);
    await page.goto(again.session);
    await picture(page, `bank-${name}-phone`);
    await page.setViewportSize(DESKTOP);
    await picture(page, `bank-${name}-desktop`);
  });
});

it('says what is wrong with a code, and takes the right one', async () => {
  const { link } = await newPayment({ method: 'visa' });
  await visit({ colorScheme: 'dark', viewport: PHONE }, async (page) => {
    await page.goto(link);
    await picture(page, 'pay-dark-phone');
    await button(page, 'Continue to Visa').click();
    await page.getByLabel('One-time code').fill('000000');
    await button(page, 'Confirm payment').click();
    await page.getByRole('alert').waitFor();
    await picture(page, 'bank-card-fault-dark-phone');
    await page.getByLabel('One-time code').fill('123456');
    await button(page, 'Confirm payment').click();
    await page.getByRole('heading', { name: /Waiting for the bank/ }).waitFor();
    await picture(page, 'return-dark-phone');
  });
});

it('is never shown inside a frame', async () => {
  const { link, session } = await newPayment();
  const host: Server = createServer((_request, response) => {
    response.setHeader('Content-Type', 'text/html');
    response.end(`<iframe id="a" src="${link}"></iframe><iframe id="b" src="${session}"></iframe>`);
  });
  await new Promise<void>((resolve) => host.listen(0, '127.0.0.1', resolve));
  const address = host.address();
  const port = typeof address === 'object' ? address?.port : undefined;
  try {
    await visit({}, async (page) => {
      const refused: string[] = [];
      page.on('console', (message) => refused.push(message.text()));
      await page.goto(`http://127.0.0.1:${port}/`);
      await expect(page.frameLocator('#a').locator('main').count()).resolves.toBe(0);
      await expect(page.frameLocator('#b').locator('main').count()).resolves.toBe(0);
      expect(refused.filter((text) => text.includes('frame-ancestors'))).toHaveLength(2);
    });
  } finally {
    host.closeAllConnections();
    host.close();
  }
});

import { randomBytes } from 'node:crypto';
import type { BrowserContextOptions, Page } from 'playwright-core';
import type { CryptoPagePayment } from '../../src/pages/crypto-stage';
import { LANGUAGE_CODES } from '../../src/pages/texts';
import type { PaymentDocument } from '../../src/store/payments';
import { collectNoise, useBrowser } from '../browser/dashboard-visit';
import { instruction, startBankServer } from '../connectors/bank-server';
import { findFaults } from '../support/axe';
import { eventually } from '../support/eventually';
import { useFixture } from '../support/fixture';
import { cryptoPayment, deposit, HALF } from './crypto-payment';
import { usePayServer } from './pay-server';

const browser = useBrowser();
const pay = usePayServer();
const bank = useFixture(
  () => startBankServer(pay.mongo, pay.database),
  ({ stop }) => stop(),
);

const DESKTOP = { width: 1280, height: 860 };
const PHONE = { width: 390, height: 844 };
const SCROLL_WIDTH = 'document.documentElement.scrollWidth - window.innerWidth';
const NARROW = { width: 360, height: 740 };
const CLIPBOARD = { permissions: ['clipboard-read', 'clipboard-write'] };
const readClipboard = (page: Page) => page.evaluate('navigator.clipboard.readText()');

/** Opens a new browser session, in which the shop answers. */
async function visit(options: BrowserContextOptions, work: (page: Page) => Promise<void>) {
  const context = await browser.newContext({ viewport: DESKTOP, ...options });
  await context.route('https://shop.example/**', (route) => {
    const path = new URL(route.request().url()).pathname;
    return route.fulfill({ contentType: 'text/html', body: `<h1>Shop ${path}</h1>` });
  });
  await work(await context.newPage()).finally(() => context.close());
}

/** Stores a payment with a session at the bank. */
async function newPayment(change: Partial<PaymentDocument> = {}) {
  const made = await pay.insert(change);
  const { _id, amount, currency, method, country, livemode, expires_at } = made.payment;
  const input = instruction({
    ...{ payment_id: _id, amount, currency, method, country, livemode, expires_at },
    return_url: `${pay.url}/pay/return/${_id}`,
  });
  const answer = await bank.bank.activities.openSession(input);
  if (answer.outcome !== 'opened') throw new Error(answer.message);
  const session = answer.session_url ?? '';
  await pay.set(_id, { session_url: session });
  return { id: _id, link: `${pay.url}/pay/${made.token}`, session };
}

/** Waits for a heading, which names the page. */
const waitForHeading = (page: Page, name: string | RegExp) =>
  page.getByRole('heading', { name }).waitFor();
const button = (page: Page, name: string) => page.getByRole('button', { name });

describe('a payment at a bank', () => {
  it('works without JavaScript from end to end, also by a slow bank', async () => {
    const { link, id, session } = await newPayment({ method: 'mbway' });
    await pay.set(id, { status: 'created', session_url: null });
    await visit({ javaScriptEnabled: false, viewport: PHONE }, async (page) => {
      await page.goto(link);
      await button(page, 'Continue to MB WAY').click();
      await waitForHeading(page, 'Opening MB WAY');
      await pay.set(id, { status: 'awaiting_customer', session_url: session });
      await button(page, 'Send to my phone').click();
      await button(page, 'Approve on the phone').click();
      await waitForHeading(page, /Waiting for the bank/);
      await pay.set(id, { status: 'authorized' });
      await waitForHeading(page, 'Shop /thanks');
    });
  });

  it('works with the keyboard alone', async () => {
    const { link } = await newPayment();
    await visit({}, async (page) => {
      await page.goto(link);
      const focused = () => page.evaluate(() => document.activeElement?.textContent?.trim());
      const outline = 'getComputedStyle(document.activeElement).outlineStyle';
      await page.keyboard.press('Tab');
      expect(await focused()).toBe('Continue to iDEAL');
      expect(await page.evaluate(outline)).toBe('solid');
      await page.keyboard.press('Tab');
      expect(await focused()).toBe('Cancel payment');
      await page.keyboard.press('Shift+Tab');
      await page.keyboard.press('Enter');
      await waitForHeading(page, 'Choose your bank');
      await page.keyboard.press('Tab');
      await page.keyboard.press('ArrowDown');
      expect(await page.getByLabel('Birch Savings').isChecked()).toBe(true);
      await page.keyboard.press('Tab');
      expect(await focused()).toBe('Approve payment');
      await page.keyboard.press('Enter');
      await waitForHeading(page, /Waiting for the bank/);
    });
  });

  it('fits into a phone of 360 px by each method, and says at the sandbox bank that no money moves and whether a code is right', async () => {
    const reference = `order-${'1042'.repeat(30)}`;
    await visit({ viewport: NARROW }, async (page) => {
      for (const method of ['ideal', 'mbway', 'visa', 'multibanco', 'paysafecard']) {
        await page.goto((await newPayment({ method, reference })).link);
        expect([method, await page.evaluate(SCROLL_WIDTH)]).toEqual([method, 0]);
        await button(page, 'Continue to').click();
        await page.getByText('Sandbox bank: no money moves').waitFor();
        expect([method, await page.evaluate(SCROLL_WIDTH)]).toEqual([method, 0]);
        expect(await page.locator('main').count()).toBe(1);
        if (method !== 'visa') continue;
        await page.getByLabel('One-time code').fill('000000');
        await button(page, 'Confirm payment').click();
        await page.getByRole('alert').waitFor();
        await page.getByLabel('One-time code').fill('123456');
        await button(page, 'Confirm payment').click();
        await page.waitForURL(/\/pay\/return\//);
      }
    });
  });
});

/** Stores a crypto payment. @returns its link, and how to change it */
function openCrypto(change: Partial<CryptoPagePayment> = {}) {
  const token = randomBytes(32).toString('base64url');
  const set = (to: Partial<CryptoPagePayment>) =>
    pay.crypto.set(token, cryptoPayment({ ...change, ...to }));
  set({});
  return { path: `/pay/crypto/${token}`, link: `${pay.url}/pay/crypto/${token}`, set };
}

/** Moves the time of a page, which asks for the state of its payment again. */
const later = (page: Page, ms = 1_000) => page.clock.fastForward(ms);

/** Records the words of buttons and of the status: a copy is announced for two seconds only. */
async function recordWords(page: Page): Promise<() => Promise<string[]>> {
  await page.evaluate(`{
    globalThis.words = [];
    const record = () => {
      for (const button of document.querySelectorAll('button')) words.push('button: ' + button.textContent.trim());
      for (const status of document.querySelectorAll('[role=status]')) words.push('status: ' + status.textContent.trim());
    };
    const changes = { subtree: true, childList: true, characterData: true };
    new MutationObserver(record).observe(document.body, changes);
  }`);
  return () => page.evaluate<string[]>('words');
}

describe('a crypto payment', () => {
  const half = deposit({ amount: HALF });
  const rest = deposit({ transaction_id: `0x${'77'.repeat(32)}`, amount: HALF });

  it('is followed to its end by its page, which copies amount and address', async () => {
    const { link, set } = openCrypto();
    await visit(CLIPBOARD, async (page) => {
      const noise = collectNoise(page);
      await page.clock.install();
      await page.goto(link);
      await waitForHeading(page, '0.02134212 ETH');
      expect(await page.getByRole('timer').textContent()).toMatch(/^2[89]:\d\d$/);
      const words = await recordWords(page);
      await button(page, 'Copy amount').click();
      await eventually('the amount', async () => (await words()).includes('button: Copied'));
      expect(await readClipboard(page)).toBe('0.02134212');
      await button(page, 'Copy address').click();
      const isAnnounced = async () => (await words()).includes('status: Address copied');
      await eventually('the address', isAnnounced);
      expect(await readClipboard(page)).toBe('0x52908400098527886E0F7030069857D2E4169EE7');
      await later(page, 2_000);
      await button(page, 'Copy amount').waitFor();

      set({ deposits: [{ ...half, status: 'pending', confirmations: 1 }] });
      await later(page);
      await waitForHeading(page, 'Part of the amount is here');
      await page.getByText('1 of 3 confirmations').waitFor();
      set({ status: 'underpaid', amount_received: HALF, deposits: [half] });
      await later(page);
      await page.getByText('Confirmed').waitFor();
      await waitForHeading(page, '0.01067106 ETH');
      const confirming = { ...rest, status: 'pending', confirmations: 2 } as const;
      set({ status: 'underpaid', amount_received: HALF, deposits: [half, confirming] });
      await later(page);
      await waitForHeading(page, 'Your payment is being confirmed');
      const amount_received = '31342120000000000';
      set({ status: 'received', amount_received, deposits: [half, rest] });
      await later(page);
      await waitForHeading(page, 'Payment received');
      await page.getByText('0.01 ETH more than was due').waitFor();
      expect(noise).toEqual([]);
    });
  });

  it('has amount and address that one press selects without JavaScript, on the narrowest phone', async () => {
    const { link } = openCrypto({ amount_due: '100000000000000000021' });
    const viewport = { width: 320, height: 600 };
    await visit({ javaScriptEnabled: false, viewport }, async (page) => {
      await page.goto(link);
      for (const text of ['100.000000000000000021', cryptoPayment().address]) {
        await page.getByText(text, { exact: true }).click();
        expect(await page.evaluate('String(getSelection()).trim()')).toBe(text);
      }
      expect(await page.getByRole('button').count()).toBe(0);
      expect(await page.getByRole('link', { name: 'Open in wallet' }).getAttribute('href')).toBe(
        'ethereum:0x52908400098527886E0F7030069857D2E4169EE7@31337?value=100000000000000000021',
      );
      expect(await page.evaluate(SCROLL_WIDTH)).toBe(0);
    });
  });

  it('has a state that changes with its deposits, a time left by the clock of the account, and an unknown one has neither page nor state', async () => {
    const { path, set } = openCrypto();
    const get = (address: string) => pay.ask('GET', address);
    const state = async () => JSON.parse((await get(`${path}/status`)).text);
    const first = await state();
    expect(first).toEqual({
      status: 'awaiting_deposit',
      state: expect.stringMatching(/^[\w-]{16}$/),
      seconds_left: expect.any(Number),
    });
    pay.clock.aheadMs = 600_000;
    const aged = await state();
    pay.clock.aheadMs = 0;
    expect(aged).toMatchObject({ status: first.status, state: first.state });
    expect(first.seconds_left - aged.seconds_left).toBeGreaterThanOrEqual(600);
    set({ deposits: [half] });
    expect((await state()).state).not.toBe(first.state);

    for (const unknown of ['x', 'A'.repeat(43)]) {
      const answer = await get(`/pay/crypto/${unknown}`);
      expect([answer.status, answer.text.includes('no such payment')]).toEqual([404, true]);
      expect((await get(`/pay/crypto/${unknown}/status`)).status).toBe(404);
    }
  });
});

describe('a payment by transfer', () => {
  const INSTRUCTIONS = {
    ...{ iban: 'NL41MOCK0000000001', account_holder: 'Tulip & Sons Flowers', bic: 'MOCKNL2A' },
    ...{ reference: 'RF835390075470345678', amount: 4_950 },
  };

  const openTransfer = async (change: object = { instructions: INSTRUCTIONS }) => {
    const byTransfer = { method: 'multibanco', session_url: null };
    const { token, payment } = await pay.insert({ ...byTransfer, ...change });
    return { token, id: payment._id, path: `/pay/${token}`, link: `${pay.url}/pay/${token}` };
  };

  it('shows the bank details after the button, to the browser that pressed it; a payment at a bank has none', async () => {
    const { path, token } = await openTransfer();
    const first = await pay.ask('GET', path);
    expect(first.text).toContain('Show the bank details');
    expect(first.text).not.toContain('NL41');
    for (const suffix of ['/transfer', '/wait']) {
      const early = await pay.ask('GET', `${path}${suffix}`);
      expect([early.status, early.location]).toEqual([303, path]);
    }
    const { cookie, status, location } = await pay.ask('POST', path);
    expect([status, location]).toEqual([303, `${path}/transfer`]);
    const { text } = await pay.ask('GET', `${path}/transfer`, { cookie });
    for (const shown of [
      ...['NL41 MOCK 0000 0000 01', 'MOCKNL2A', 'Tulip &amp; Sons Flowers'],
      ...['RF83 5390 0754 7034 5678', 'is confirmed when the transfer arrives'],
    ]) {
      expect(text).toContain(shown);
    }
    for (const other of [{}, await pay.open(token)]) {
      expect((await pay.ask('GET', `${path}/transfer`, other)).status).toBe(410);
    }
    const atBank = `/pay/${(await pay.insert()).token}`;
    const opened = await pay.ask('POST', atBank);
    const back = await pay.ask('GET', `${atBank}/transfer`, { cookie: opened.cookie });
    expect([back.status, back.location]).toEqual([303, atBank]);
  });

  it('names no BIC where there is none, and formats amounts as the region does', async () => {
    const { path } = await openTransfer({ instructions: { ...INSTRUCTIONS, bic: null } });
    const { cookie } = await pay.ask('POST', path);
    const { text } = await pay.ask('GET', `${path}/transfer?lang=pt`, { cookie });
    expect(text).not.toContain('BIC');
    expect(text).toContain('data-value="49,50"');
    expect(text).toContain('Transfira exatamente este montante');
  });

  it('has a page that copies each value, and that ends by itself when the transfer arrives', async () => {
    const { link, id } = await openTransfer();
    await visit(CLIPBOARD, async (page) => {
      const noise = collectNoise(page);
      await page.clock.install();
      await page.goto(link);
      await button(page, 'Show the bank details').click();
      await waitForHeading(page, 'Pay by bank transfer');
      for (const [name, value] of [
        ['Amount to pay', '49.50'],
        ['Account holder', INSTRUCTIONS.account_holder],
        ['IBAN', INSTRUCTIONS.iban],
        ['BIC', INSTRUCTIONS.bic],
        ['Reference for the transfer', INSTRUCTIONS.reference],
      ] as const) {
        await button(page, `Copy: ${name}`).click();
        await page.getByText(`Copied: ${name}`).waitFor({ state: 'attached' });
        expect(await readClipboard(page)).toBe(value);
      }
      await later(page, 2_000);
      await eventually('the words of the buttons', async () => {
        return (await page.getByText('Copied', { exact: true }).count()) === 0;
      });
      await pay.set(id, { status: 'settled' });
      await later(page, 15_000);
      await waitForHeading(page, 'You have paid');
      expect(noise).toEqual([]);
    });
  });

  it('is accessible, and fits into a phone of 360 px in each language', async () => {
    const { link } = await openTransfer();
    await visit({ viewport: NARROW }, async (page) => {
      await page.goto(link);
      await button(page, 'Show the bank details').click();
      await page.locator('dl.fields').waitFor();
      expect(await findFaults(page)).toEqual([]);
      for (const language of LANGUAGE_CODES) {
        await page.goto(`${link}/transfer?lang=${language}`);
        await page.locator(`html[lang^=${language}] dl.fields`).waitFor();
        expect([language, await page.evaluate(SCROLL_WIDTH)]).toEqual([language, 0]);
      }
    });
  });

  it('shows details that come later by itself, also without JavaScript', async () => {
    const show = async (javaScriptEnabled: boolean) => {
      const { link, id } = await openTransfer({ status: 'created' });
      await visit({ javaScriptEnabled, viewport: PHONE }, async (page) => {
        await page.goto(link);
        await button(page, 'Continue to Multibanco').click();
        await waitForHeading(page, 'Opening Multibanco');
        await pay.set(id, { status: 'awaiting_customer', instructions: INSTRUCTIONS });
        await waitForHeading(page, 'Pay by bank transfer');
        await page.getByText('RF83 5390 0754 7034 5678').waitFor();
        if (!javaScriptEnabled) expect(await page.getByRole('button').count()).toBe(1);
      });
    };
    await Promise.all([true, false].map(show));
  });
});

test('pages of payments and of the sandbox bank are accessible', async () => {
  const { link, session } = await newPayment();
  const { link: crypto } = openCrypto();
  await visit({}, async (page) => {
    for (const address of [link, session, crypto, `${pay.url}/pay/unknown`]) {
      await page.goto(address);
      await page.getByRole('heading', { level: 1 }).waitFor();
      expect(await findFaults(page)).toEqual([]);
    }
  });
});

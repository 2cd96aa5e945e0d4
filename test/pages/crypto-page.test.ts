import { randomBytes } from 'node:crypto';
import type { Page } from 'playwright-core';
import type { CryptoPagePayment } from '../../src/pages/crypto-stage';
import { eventually } from '../support/http';
import { button, PHONE, picture, useBrowserWorld } from './browser-world';
import { cryptoPayment, deposit, HALF } from './crypto-payment';
import { ask } from './http';

const world = useBrowserWorld();

const open = (change?: Partial<CryptoPagePayment>) => {
  const token = randomBytes(32).toString('base64url');
  const set = (to?: Partial<CryptoPagePayment>) =>
    world.pay.crypto.set(token, cryptoPayment({ ...change, ...to }));
  set();
  return { path: `/pay/crypto/${token}`, link: `${world.pay.url}/pay/crypto/${token}`, set };
};

/** Keeps the words of buttons and of the status: a copy is told for two seconds only. */
async function keepWords(page: Page): Promise<() => Promise<string[]>> {
  await page.evaluate(`{
    globalThis.words = [];
    const keep = () => {
      for (const button of document.querySelectorAll('button')) words.push('button: ' + button.textContent.trim());
      for (const status of document.querySelectorAll('[role=status]')) words.push('status: ' + status.textContent.trim());
    };
    const changes = { subtree: true, childList: true, characterData: true };
    new MutationObserver(keep).observe(document.body, changes);
  }`);
  return () => page.evaluate<string[]>('words');
}

const heading = (page: Page, name: string) => page.getByRole('heading', { name }).waitFor();
const half = deposit({ amount: HALF });
const rest = deposit({ transaction_id: `0x${'77'.repeat(32)}`, amount: HALF });

it('follows a payment to its end by itself, and copies amount and address', async () => {
  const { link, set } = open();
  const permissions = ['clipboard-read', 'clipboard-write'];
  await world.visit({ permissions }, async (page) => {
    const noise: string[] = [];
    page.on('console', (message) => noise.push(message.text()));
    page.on('pageerror', (error) => noise.push(error.message));
    await page.goto(link);
    await heading(page, '0.02134212 ETH');
    const clock = page.getByRole('timer');
    expect(await clock.textContent()).toMatch(/^2[89]:\d\d$/);
    const copied = () => page.evaluate('navigator.clipboard.readText()');
    const words = await keepWords(page);
    await button(page, 'Copy amount').click();
    await eventually('the amount', async () => (await words()).includes('button: Copied'));
    expect(await copied()).toBe('0.02134212');
    await button(page, 'Copy address').click();
    await eventually('the address', async () => (await words()).includes('status: Address copied'));
    expect(await copied()).toBe('0x52908400098527886E0F7030069857D2E4169EE7');
    await button(page, 'Copy amount').waitFor();
    await picture(page, 'crypto-pay-desktop');

    set({ deposits: [{ ...half, status: 'pending', confirmations: 1 }] });
    await heading(page, 'Part of the amount is here');
    await page.getByText('1 of 3 confirmations').waitFor();
    set({ status: 'underpaid', amount_received: HALF, deposits: [half] });
    await page.getByText('Confirmed').waitFor();
    await heading(page, '0.01067106 ETH');
    await picture(page, 'crypto-top-up-desktop');
    const confirming = { ...rest, status: 'pending', confirmations: 2 } as const;
    set({ status: 'underpaid', amount_received: HALF, deposits: [half, confirming] });
    await heading(page, 'Your payment is being confirmed');
    await picture(page, 'crypto-confirming-desktop');
    const amount_received = '31342120000000000';
    set({ status: 'received', amount_received, deposits: [half, rest] });
    await heading(page, 'Payment received');
    await page.getByText('0.01 ETH more than was due').waitFor();
    await picture(page, 'crypto-received-desktop');
    expect(noise).toEqual([]);
  });
});

it('corrects the time left when the clock of the account moves', async () => {
  const { link } = open();
  await world
    .visit({}, async (page) => {
      await page.goto(link);
      const left = async () => (await page.getByRole('timer').textContent()) ?? '';
      expect(await left()).toMatch(/^2\d:\d\d$/);
      world.pay.clock.aheadMs = 600_000;
      await eventually('ten minutes less', async () => /^1\d:\d\d$/.test(await left()));
    })
    .finally(() => {
      world.pay.clock.aheadMs = 0;
    });
});

it('says what to do when it is held, short or over, in the dark on a phone', async () => {
  const over = new Date(Date.now() - 1_000).toISOString();
  const { link, set } = open();
  await world.visit({ viewport: PHONE, colorScheme: 'dark' }, async (page) => {
    await page.goto(link);
    await heading(page, '0.02134212 ETH');
    await picture(page, 'crypto-pay-phone');
    set({ status: 'held', deposits: [deposit({ status: 'held' })] });
    await heading(page, 'Your payment is being checked');
    await picture(page, 'crypto-held-phone');
    set({ status: 'underpaid', amount_received: HALF, deposits: [half], expires_at: over });
    await heading(page, 'Too little came in time');
    await picture(page, 'crypto-short-phone');
    set({ status: 'expired', expires_at: over });
    await heading(page, 'The time to pay is over');
    await picture(page, 'crypto-expired-phone');
  });
});

it('selects amount and address by one press without JavaScript, also on the narrowest phone', async () => {
  const { link } = open({ amount_due: '100000000000000000021' });
  const viewport = { width: 320, height: 600 };
  await world.visit({ javaScriptEnabled: false, viewport }, async (page) => {
    await page.goto(link);
    await picture(page, 'crypto-no-script-phone');
    for (const text of ['100.000000000000000021', cryptoPayment().address]) {
      await page.getByText(text, { exact: true }).click();
      expect(await page.evaluate('String(getSelection()).trim()')).toBe(text);
    }
    expect(await page.getByRole('button').count()).toBe(0);
    expect(await page.getByRole('link', { name: 'Open in wallet' }).getAttribute('href')).toBe(
      'ethereum:0x52908400098527886E0F7030069857D2E4169EE7@31337?value=100000000000000000021',
    );
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(320);
  });
});

it('lets a person play the payer on the sandbox chain, also without JavaScript', async () => {
  const play = await world.newPayer();
  await world.visit({ javaScriptEnabled: false, viewport: PHONE }, async (page) => {
    await page.goto(play);
    await heading(page, 'Play the payer');
    const amount = page.getByLabel('Amount in ETH');
    expect(await amount.inputValue()).toBe('0.02');
    await amount.fill('0.0x');
    await button(page, 'Send').click();
    await page.getByText('Enter a number with up to 18 digits').waitFor();
    await amount.fill('0.005');
    await page
      .getByLabel('What becomes of it')
      .selectOption('The chain undoes it after it has counted');
    await picture(page, 'crypto-payer-phone');
    await button(page, 'Send').click();
    await button(page, 'Send again').waitFor();
    await page.getByText('0.005 ETH').waitFor();
    expect(await amount.inputValue()).toBe('0.015');
    await picture(page, 'crypto-payer-again-phone');
  });
});

it('tells its state, and nothing of a payment that does not exist', async () => {
  const { path, set } = open();
  const state = async () => JSON.parse((await ask(world.pay.url, 'GET', `${path}/status`)).text);
  const first = await state();
  expect(first).toEqual({
    status: 'awaiting_deposit',
    state: expect.stringMatching(/^[\w-]{16}$/),
    seconds_left: expect.any(Number),
  });
  expect(await state()).toMatchObject({ status: first.status, state: first.state });
  set({ deposits: [half] });
  expect((await state()).state).not.toBe(first.state);

  const page = await ask(world.pay.url, 'GET', path);
  expect(page.headers.get('content-security-policy')).toContain("default-src 'none'");
  expect(page.headers.get('cache-control')).toBe('no-store');
  for (const unknown of ['x', 'A'.repeat(43)]) {
    const answer = await ask(world.pay.url, 'GET', `/pay/crypto/${unknown}`);
    expect([answer.status, answer.text.includes('no such payment')]).toEqual([404, true]);
    expect((await ask(world.pay.url, 'GET', `/pay/crypto/${unknown}/status`)).status).toBe(404);
  }
});

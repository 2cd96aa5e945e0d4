import type { Page } from 'playwright-core';
import { button, DESKTOP, PHONE, picture, useBrowserWorld } from './browser-world';

const world = useBrowserWorld();

const sideScroll = (page: Page) =>
  page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);

it('works with the keyboard alone', async () => {
  const { link } = await world.newPayment();
  await world.visit({}, async (page) => {
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
  const { link } = await world.newPayment({ method, reference: `order-${'1042'.repeat(30)}` });
  await world.visit({ viewport: { width: 360, height: 740 } }, async (page) => {
    await page.goto(link);
    expect(await sideScroll(page)).toBe(0);
    if (method === 'ideal') await picture(page, 'pay-long-phone');
    await button(page, 'Continue to').click();
    await page.getByText('Sandbox bank: no money moves').waitFor();
    expect(await sideScroll(page)).toBe(0);
    expect(await page.locator('main').count()).toBe(1);
  });
  const again = await world.newPayment({ method });
  await world.visit({ viewport: PHONE }, async (page) => {
    await page.goto(again.link);
    await picture(page, `pay-${name}-phone`);
    await page.goto(again.session);
    await picture(page, `bank-${name}-phone`);
    await page.setViewportSize(DESKTOP);
    await picture(page, `bank-${name}-desktop`);
  });
});

it('says what is wrong with a code, and takes the right one', async () => {
  const { link } = await world.newPayment({ method: 'visa' });
  await world.visit({ colorScheme: 'dark', viewport: PHONE }, async (page) => {
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

import type { Page } from 'playwright-core';
import { LANGUAGE_CODES, TEXTS } from '../../src/pages/texts';
import type { AccountDocument } from '../../src/store/accounts';
import { eventually, idealPayment } from '../support/http';
import { useAccount, useService } from '../support/service';
import { look, useBrowser } from './dashboard-visit';

// A product of its own: its sandbox bank plays by itself, as for a merchant.
const service = useService({ autoplay: true });
const shop = useAccount(service);
const browser = useBrowser();

const create = async (changes: object = {}) =>
  (await shop.post('/v1/payments', idealPayment({ ...changes }))).body;
const read = async (id: string) => (await shop.get(`/v1/payments/${id}`)).body;

/** A customer's browser in which the shop answers without a network. */
async function customer(): Promise<Page> {
  const page = await (await browser.newContext()).newPage();
  await page.route('https://shop.example/**', (route) =>
    route.fulfill({ contentType: 'text/html', body: '<h1>The shop</h1>' }),
  );
  return page;
}

test('a customer pays on the page, returns to the shop, and the payment settles', async () => {
  const payment = await create();
  const page = await customer();
  await page.goto(payment.redirect_url);
  await page.getByRole('button', { name: /^Continue/ }).click();
  await page.getByRole('button', { name: 'Approve payment' }).click();
  await page.waitForURL('https://shop.example/thanks');
  const settled = await eventually('settlement', async () => {
    const now = await read(payment.id);
    return now.status === 'settled' && now;
  });
  expect(settled.authorized_at < settled.settled_at).toBe(true);
  await page.context().close();
});

test('a customer whose bank declines returns to the shop, and the payment has the reason', async () => {
  const payment = await create({ method: 'visa' });
  const page = await customer();
  await page.goto(payment.redirect_url);
  await page.getByRole('button', { name: /^Continue/ }).click();
  await page.getByRole('button', { name: /decline/i }).click();
  await page.waitForURL('https://shop.example/sorry');
  expect(await read(payment.id)).toMatchObject({
    status: 'failed',
    failure: { code: expect.any(String), message: expect.any(String) },
  });
  await page.context().close();
});

test('the page has every language and the merchant’s color, and leads to the bank', async () => {
  await service
    .collection<AccountDocument>('accounts')
    .updateOne({ _id: shop.account_id }, { $set: { 'brand.sandbox': { accent: '#ffd400' } } });
  const payment = await create({ amount: 123_456_789 });
  const page = await customer();
  for (const code of LANGUAGE_CODES) {
    await page.goto(payment.redirect_url);
    await page.locator('summary').click();
    await page.getByRole('link', { name: TEXTS[code].name, exact: true }).click();
    await page.locator(`html[lang^=${code}]`).waitFor();
    await look(page, `pay-${code}`);
  }
  await page.getByRole('button', { name: 'Continuar para iDEAL' }).click();
  await page.getByRole('button', { name: 'Approve payment' }).click();
  await page.waitForURL('https://shop.example/thanks');
  await page.context().close();
});

test('a customer who cancels on the page cancels the payment', async () => {
  const payment = await create();
  const page = await customer();
  await page.goto(payment.redirect_url);
  await page.getByRole('button', { name: 'Cancel payment' }).click();
  await page.waitForURL('https://shop.example/sorry');
  expect(await read(payment.id)).toMatchObject({
    status: 'cancelled',
    failure: { code: 'cancelled_by_customer' },
  });
  await page.context().close();
});

test('refuses a second browser', async () => {
  const payment = await create();
  const first = await customer();
  await first.goto(payment.redirect_url);
  await first.getByRole('button', { name: /^Continue/ }).click();
  await first.getByRole('button', { name: 'Approve payment' }).waitFor();
  const second = await customer();
  const answer = await second.goto(payment.redirect_url);
  expect(answer?.status()).toBe(410);
  for (const each of [first, second]) await each.context().close();
});

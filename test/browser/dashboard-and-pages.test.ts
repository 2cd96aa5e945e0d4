import { randomUUID } from 'node:crypto';
import type { Locator, Page } from 'playwright-core';
import { LANGUAGE_CODES, TEXTS } from '../../src/pages/texts';
import type { AccountDocument } from '../../src/store/accounts';
import type { PaymentDocument } from '../../src/store/payments';
import { ETHER, openCryptoShop } from '../api/crypto-setting';
import { useShop } from '../api/payout-setting';
import { openUser, PASSWORD } from '../support/dashboard';
import { useInbox } from '../support/hook';
import { eventually, idealPayment } from '../support/http';
import { paymentAt } from '../support/list-rows';
import { scriptedChain } from '../support/scripted-chain';
import { useService } from '../support/service';
import {
  collectNoise,
  enter,
  fitAll,
  look,
  pressWithPassword,
  useBrowser,
} from './dashboard-visit';

// A product of its own: its sandbox bank plays by itself, and its chain is scripted.
const service = useService({ autoplay: true, chain: scriptedChain() });
const shop = useShop(service);
const inbox = useInbox();
const browser = useBrowser();
let page: Page;

beforeAll(async () => {
  await fillMonth(shop.account_id);
  const user = await openUser(service.stores, shop.account_id);
  page = await enter(await browser.newContext(), service.url, user);
});

/** Payments of thirty days, so that lists have pages and the chart has bars. */
async function fillMonth(account_id: string): Promise<void> {
  const now = Date.now();
  const payments = Array.from({ length: 240 }, (_, n) => ({
    ...paymentAt(n, new Date(now - (n + 1) * 3 * 3_600_000).toISOString()),
    ...{ _id: randomUUID(), token_hash: randomUUID(), account_id },
    amount: 900 + ((n * 7_919) % 8_000),
  }));
  const db = service.mongo.db(service.database);
  await db.collection<PaymentDocument>('payments').insertMany(payments);
}

const link = (name: string) => page.getByRole('link', { name, exact: true });
const button = (name: string) => page.getByRole('button', { name, exact: true });
const NAVIGATION = [
  ...['Overview', 'Payments', 'Refunds', 'Disputes', 'Payouts', 'Balances', 'Webhooks'],
  ...['Requests', 'API keys', 'Team', 'Audit log', 'Getting started'],
];

const heading = (name: string | RegExp) => page.getByRole('heading', { name });

test('an owner saves and tests an endpoint, and shows and rolls its secret', async () => {
  await link('Webhooks').click();
  await page.getByLabel('Endpoint URL').fill(inbox.url);
  await button('Save endpoint').click();
  await page.getByText('The endpoint is saved.').waitFor();
  await look(page, 'webhooks');
  await page.getByLabel('Event type', { exact: true }).selectOption('payment.settled');
  await button('Send test event').click();
  await heading('The test was acknowledged').waitFor();
  await page.getByText('HTTP 200').waitFor();
  await look(page, 'webhook-test');
  await link('Back to webhooks').click();
  await pressWithPassword(page, 'Show signing secret');
  await page.getByText(/^whsec_/).waitFor();
  await link('Back to webhooks').click();
  await page.getByLabel('New secret signs').selectOption('24h');
  await button('Roll signing secret').click();
  await page.getByText('in 24 hours').waitFor();
  await look(page, 'webhook-roll');
});

test('a second endpoint is refused, added, shown as failing, enabled and deleted', async () => {
  await link('Webhooks').click();
  await link('Add an endpoint').click();
  await page.getByLabel('Endpoint URL').fill('http://10.0.0.1/');
  await page.getByLabel('Description').fill('Bookkeeping: payouts and refunds, for the accountant');
  await page.getByLabel('payment.settled').uncheck();
  await button('Add endpoint').click();
  await page.getByText('10.0.0.1 is a private address').waitFor();
  await look(page, 'webhook-add-refused');
  const url = `${inbox.url}&${'long'.repeat(20)}`;
  await page.getByLabel('Endpoint URL').fill(url);
  await button('Add endpoint').click();
  await page.getByText(/^whsec_/).waitFor();
  const [, added] = await service.stores.endpoints.list(shop.account_id, false);
  if (added === undefined) throw new Error('There is no second endpoint.');
  const { endpoints } = service.stores;
  await endpoints.update(added, { disabled_reason: 'failing' }, new Date().toISOString());
  await link('Back to webhooks').click();
  await page.getByText('An endpoint failed for five days').waitFor();
  await look(page, 'webhook-endpoints');
  await link(url).click();
  await page.getByText('Every attempt failed for five days').waitFor();
  await look(page, 'webhook-endpoint');
  await button('Enable').click();
  await page.getByText('The endpoint is enabled.').waitFor();
  await pressWithPassword(page, 'Delete endpoint');
  await page.getByText('The endpoint is deleted.').waitFor();
});

test('a payment is found by its reference, refunded, and shows what happened', async () => {
  const reference = 'Order 7 <b>';
  const payment = await shop.settledPayment({ reference });
  await link('Payments').click();
  await page.getByLabel('Search').fill(reference);
  await page.getByLabel('Status').selectOption('settled');
  await button('Apply').click();
  await look(page, 'payments');
  const about = { account_id: shop.account_id, livemode: false, resource_id: payment.id, limit: 5 };
  await eventually('a delivery', async () => {
    const events = await service.stores.events.list(about);
    const ids = events.map(({ _id }) => _id);
    const deliveries = await service.stores.deliveries.forEvents(ids);
    return deliveries.some(({ status }) => status === 'delivered');
  });
  await page.locator(`a[href*="${payment.id}"]`).click();
  await heading('Timeline').waitFor();
  await page.getByText('Webhook attempt 1: HTTP 200').first().waitFor();
  await look(page, 'payment');
  await page.getByLabel('Amount in EUR').fill('4.20');
  await button('Refund').click();
  await look(page, 'payment-refund-asked');
  await button('Refund').click();
  await heading('Refund of €4.20').waitFor();
  expect((await service.stores.payments.get(payment.id))?.refunded).toBe(420);
  await look(page, 'refund');
});

test('payouts, balances, deliveries and the overview show what was done', async () => {
  const { body: payout } = await shop.pay();
  await service.becomes('payouts', payout.id, { status: 'completed' });
  await link('Payouts').click();
  await page.locator(`a[href*="${payout.id}"]`).click();
  await heading('Payout of €10.00').waitFor();
  await look(page, 'payout');
  await link('Balances').click();
  await look(page, 'balances');
  await link('Statement').click();
  await heading('main, EUR').waitFor();
  await look(page, 'statement');
  await page.emulateMedia({ media: 'print' });
  expect(await link('Download CSV').isVisible()).toBe(false);
  await page.emulateMedia({ media: 'screen' });
  await link('Webhooks').click();
  await link('Deliveries').click();
  await look(page, 'deliveries');
  await page.locator('a[href*="/deliveries/evt_"]').first().click();
  await heading('Request body').waitFor();
  await look(page, 'delivery');
  await button('Send again').click();
  await page.getByText('It is being sent again.').waitFor();
  await link('Overview').click();
  await heading('Thirty days').waitFor();
  await look(page, 'overview', { isFrame: true });
});

test('requests are filtered by their status, and show their redacted bodies', async () => {
  const refused = { ...idealPayment({ country: 'DE' }), metadata: { iban: 'NL91ABNA0417164300' } };
  const { body } = await shop.post('/v1/payments', refused);
  expect(body.error.code).toBe('method_requirements_not_met');
  const id: string = body.error.request_id;
  const stored = () => service.stores.requests.find(id, shop.account_id, false);
  await eventually('the request', async () => (await stored()) !== null);
  await link('Requests').click();
  await look(page, 'requests');
  await page.getByLabel('Status').selectOption('refused');
  await button('Apply').click();
  await link('Show all requests').waitFor();
  expect(await page.getByText('201', { exact: true }).count()).toBe(0);
  await page.locator(`a[href$="/requests/${id}"]`).click();
  await heading('Request body').waitFor();
  await heading('Response body').waitFor();
  await page.getByText('country_not_supported').waitFor();
  await look(page, 'request');
  await link('Live').click();
  await page.getByText('There are no requests yet.').waitFor();
  await look(page, 'requests-live');
  await link('Sandbox').click();
});

test('links, filters and pages of a list have one accessible name each, which scripts rely on', async () => {
  const path = (rest: string) => `${service.url}/dashboard/sandbox${rest}`;
  const field = (name: string) => page.getByLabel(name, { exact: true });
  const once = async (...found: Locator[]) => {
    for (const one of found) {
      await one.first().waitFor();
      expect([String(one), await one.count()]).toEqual([String(one), 1]);
    }
  };
  await page.goto(path('/overview'));
  await once(...NAVIGATION.map(link), link('Sandbox'), link('Live'), button('Sign out'));
  expect(await link('Sandbox').getAttribute('aria-current')).toBe('true');
  expect(await link('Live').getAttribute('aria-current')).toBeNull();
  for (const list of ['/refunds', '/payouts', '/webhooks/deliveries', '/payments']) {
    await page.goto(path(list));
    await once(field('Search'), field('Status'), field('From'), field('To'), button('Apply'));
  }
  await look(page, 'payments-all');
  await once(link('Older'));
  expect(await link('Newer').count()).toBe(0);
  await link('Older').click();
  await once(link('Newer'));
  const row = page.getByRole('row').locator('a').first();
  const id = await row.textContent();
  await row.click();
  await heading('Timeline').waitFor();
  expect(new URL(page.url()).pathname).toBe(`/dashboard/sandbox/payments/${id}`);
});

test('a crypto payment shows its deposits, and is settled to a wallet that is registered first', async () => {
  const shop = await openCryptoShop(service);
  const { id } = await shop.pay({ reference: 'order-1001' });
  await shop.deposit(id, `0x${'a1'.repeat(32)}`, ETHER);
  await shop.until(id, 'its receipt', ({ status }) => status === 'received');
  const user = await openUser(service.stores, shop.account_id);
  const own = await enter(await browser.newContext(), service.url, user);
  const follow = (name: string) => own.getByRole('link', { name, exact: true }).click();
  const press = (name: string) => own.getByRole('button', { name, exact: true }).click();
  await follow('Crypto');
  await own.getByLabel('Search').fill('order-1001');
  await own.getByLabel('Coin').selectOption('eth_ethereum');
  await press('Apply');
  await look(own, 'crypto-payments');
  await own.locator(`a[href$="/crypto/payments/${id}"]`).click();
  await own.getByRole('heading', { name: 'Timeline' }).waitFor();
  await look(own, 'crypto-payment');
  await follow('Wallets');
  await own.getByLabel('Address on ethereum').fill('0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed');
  await own.getByRole('button', { name: 'Register wallet' }).nth(1).click();
  await own.getByLabel('Password').fill(PASSWORD);
  await press('Register wallet');
  await own.getByText('The wallet is registered.').waitFor();
  await look(own, 'crypto-wallets');
  await pressWithPassword(own, 'Settle now');
  await own.getByRole('heading', { name: 'Settlement of 1 ETH' }).waitFor();
  await look(own, 'crypto-settlement');
  await follow('Settlements');
  await look(own, 'crypto-settlements');
  await follow('Balances');
  await own.getByText('ETH on ethereum').waitFor();
  await own.context().close();
  expect(await link('Crypto').count()).toBe(0);
});

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
  const noise = collectNoise(page);
  await page.goto(payment.redirect_url);
  await page.getByRole('button', { name: /^Continue/ }).click();
  await page.getByLabel('Birch Savings').check();
  await page.getByRole('button', { name: 'Approve payment' }).click();
  await page.waitForURL('https://shop.example/thanks');
  const settled = await eventually('settlement', async () => {
    const now = await read(payment.id);
    return now.status === 'settled' && now;
  });
  expect(settled.authorized_at < settled.settled_at).toBe(true);
  await page.goto(payment.redirect_url);
  await page.getByRole('heading', { name: 'You have paid' }).waitFor();
  expect(noise).toEqual([]);
  await page.context().close();
});

test('the page of a payment has every language and the merchant’s color', async () => {
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
    await fitAll(page, `pay-${code}`);
  }
  await look(page, 'pay', { isFrame: true });
  await page.getByRole('button', { name: 'Continuar para iDEAL' }).waitFor();
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

import { randomUUID } from 'node:crypto';
import type { Locator, Page } from 'playwright-core';
import { DEFAULT_EVENT_TYPES } from '../../src/domain/events/event';
import { LANGUAGE_CODES, TEXTS } from '../../src/pages/texts';
import type { AccountDocument } from '../../src/store/accounts';
import type { PaymentDocument } from '../../src/store/payments';
import { ETHER, openCryptoShop } from '../api/crypto-setting';
import { useShop } from '../api/payout-setting';
import { openUser } from '../support/dashboard';
import { eventually } from '../support/eventually';
import { buildDispute } from '../support/factories';
import { useInbox } from '../support/hook';
import { idealPayment } from '../support/http';
import { paymentAt } from '../support/list-rows';
import { scriptedChain } from '../support/scripted-chain';
import { useService } from '../support/service';
import {
  answerDispute,
  collectNoise,
  enter,
  fitAll,
  look,
  PROOF,
  useBrowser,
  walk,
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

const named = (role: 'link' | 'button') => (name: string) =>
  page.getByRole(role, { name, exact: true });
const [link, button] = [named('link'), named('button')];
const NAVIGATION = [
  ...['Overview', 'Payments', 'Refunds', 'Disputes', 'Payouts', 'Balances', 'Webhooks'],
  ...['Requests', 'API keys', 'Team', 'Audit log', 'Getting started'],
];
const SANDBOX = '/dashboard/sandbox';

test('an owner saves and tests an endpoint, and shows and rolls its secret', async () => {
  await walk(
    page,
    ['Webhooks'],
    ['Save endpoint', { 'Endpoint URL': inbox.url }, 'The endpoint is saved.', 'webhooks'],
    ['Send test event', { 'Event type': 'payment.settled' }, 'HTTP 200', 'webhook-test'],
    ['Back to webhooks'],
    ['Show signing secret'],
    ['Show signing secret', PROOF, /^whsec_/],
    ['Back to webhooks'],
    [
      'Roll signing secret',
      { 'New secret signs': '24h' },
      'Create a new secret that signs in 24 hours?',
      'webhook-roll',
    ],
  );
});

test('a second endpoint is refused, added, shown as failing, enabled and deleted', async () => {
  const refused = {
    'Endpoint URL': 'http://10.0.0.1/',
    Description: 'Bookkeeping: payouts and refunds, for the accountant',
    'payment.settled': false,
  };
  const url = `${inbox.url}&${'long'.repeat(20)}`;
  await walk(
    page,
    ['Webhooks'],
    ['Add an endpoint'],
    ['Add endpoint', refused, '10.0.0.1 is a private address', 'webhook-add-refused'],
    ['Add endpoint', { 'Endpoint URL': url }, /^whsec_/],
  );
  const [, added] = await service.stores.endpoints.list(shop.account_id, false);
  if (added === undefined) throw new Error('There is no second endpoint.');
  const others = DEFAULT_EVENT_TYPES.filter((type) => type !== 'payment.settled');
  expect(added.enabled_events).toEqual(others);
  const { endpoints } = service.stores;
  await endpoints.update(added, { disabled_reason: 'failing' }, new Date().toISOString());
  await walk(
    page,
    ['Back to webhooks', {}, 'An endpoint failed for five days', 'webhook-endpoints'],
    [url, {}, 'Every attempt failed for five days', 'webhook-endpoint'],
    ['Enable', {}, 'The endpoint is enabled.'],
    ['Delete endpoint'],
    ['Delete endpoint', PROOF, 'The endpoint is deleted.'],
  );
});

test('a payment is found by its reference, refunded, and shows what happened', async () => {
  const reference = 'Order 7 <b>';
  const { id } = await shop.settledPayment({ reference });
  const about = { account_id: shop.account_id, livemode: false, resource_id: id, limit: 5 };
  await eventually('a delivery', async () => {
    const events = await service.stores.events.list(about);
    const ids = events.map(({ _id }) => _id);
    const deliveries = await service.stores.deliveries.forEvents(ids);
    return deliveries.some(({ status }) => status === 'delivered');
  });
  await walk(
    page,
    ['Payments'],
    ['Apply', { Search: reference, Status: 'settled' }, 'Show all payments', 'payments'],
    [id, {}, 'Webhook attempt 1: HTTP 200', 'payment'],
    ['Refund', { 'Amount in EUR': '4.20' }, 'Refund 4.20 to the customer?', 'payment-refund-asked'],
    ['Refund', {}, 'Refund of €4.20', 'refund'],
  );
  expect((await service.stores.payments.get(id))?.refunded).toBe(420);
});

test('payouts, balances, deliveries and the overview show what was done', async () => {
  const { body: payout } = await shop.pay();
  await service.becomes('payouts', payout.id, { status: 'completed' });
  await walk(
    page,
    ['Payouts'],
    [payout.id, {}, 'Payout of €10.00', 'payout'],
    ['Balances', {}, 'Proved until', 'balances'],
    ['Statement', {}, 'main, EUR', 'statement'],
  );
  await page.emulateMedia({ media: 'print' });
  expect(await link('Download CSV').isVisible()).toBe(false);
  await page.emulateMedia({ media: 'screen' });
  await walk(page, ['Webhooks'], ['Deliveries', {}, 'Send failed again', 'deliveries']);
  await page.locator('a[href*="/deliveries/evt_"]').first().click();
  await page.getByText('Request body').waitFor();
  await look(page, 'delivery');
  await walk(page, ['Send again', {}, 'It is being sent again.'], ['Overview', {}, 'Thirty days']);
  await look(page, 'overview', { isFrame: true });
});

test('requests are filtered by their status, and show their redacted bodies', async () => {
  const refused = { ...idealPayment({ country: 'DE' }), metadata: { iban: 'NL91ABNA0417164300' } };
  const { body } = await shop.post('/v1/payments', refused);
  expect(body.error.code).toBe('method_requirements_not_met');
  const id: string = body.error.request_id;
  const stored = () => service.stores.requests.find(id, shop.account_id, false);
  await eventually('the request', async () => (await stored()) !== null);
  await walk(
    page,
    ['Requests', {}, 'What your API keys wrote', 'requests'],
    ['Apply', { Status: 'refused' }, 'Show all requests'],
  );
  expect(await page.getByText('201', { exact: true }).count()).toBe(0);
  await page.locator(`a[href$="/requests/${id}"]`).click();
  await page.getByText('Request body').waitFor();
  await page.getByText('Response body').waitFor();
  await page.getByText('country_not_supported').waitFor();
  await look(page, 'request');
  await walk(page, ['Live', {}, 'There are no requests yet.', 'requests-live'], ['Sandbox']);
});

test('a dispute is found in the overview, answered and won; another one is accepted', async () => {
  const open = async (code: string) => {
    const { id: payment_id } = await shop.settledPayment({ method: 'visa', amount: 4_900 });
    return { payment_id, ...(await buildDispute(shop, { payment_id, code })) };
  };
  await walk(page, ['Disputes', {}, 'There are no disputes yet.', 'disputes-none']);
  const { id, payment_id } = await open('13.1');
  const path = `${SANDBOX}/disputes/${id}`;
  await walk(page, ['Overview', {}, 'Needs attention', 'disputes-due']);
  await page.locator(`a[href$="${path}"]`).click();
  await page.getByText('The customer did not receive goods or services (13.1)').waitFor();
  await look(page, 'dispute');
  await answerDispute(page, 'dispute-evidence-asked');
  await service.becomes('disputes', id, { status: 'under_review' });
  await walk(page, [path, {}, 'Under review', 'dispute-under-review']);
  expect(await button('Send evidence').count()).toBe(0);
  await shop.post(`/v1/sandbox/payments/${payment_id}/simulate`, { event: 'dispute_won' });
  await service.becomes('disputes', id, { status: 'won' });
  await walk(
    page,
    [path, {}, 'The bank decided for you.', 'dispute-won'],
    [payment_id, {}, 'Disputes of this payment', 'payment-disputed'],
  );

  const { id: accepted } = await open('10.4');
  await walk(
    page,
    ['Disputes', {}, accepted, 'disputes'],
    [accepted],
    ['Accept dispute', {}, 'The customer keeps the money', 'dispute-accept-asked'],
    ['Accept dispute', {}, 'The dispute is accepted.'],
  );
  await service.becomes('disputes', accepted, { status: 'accepted' });
  await walk(
    page,
    [`${SANDBOX}/disputes/${accepted}`, {}, 'You accepted it: the customer keeps the money.'],
    ['Disputes'],
    ['Apply', { Status: 'accepted' }, 'Show all disputes'],
  );
  await link(accepted).waitFor();
  expect(await page.getByRole('row').count()).toBe(2);
});

test('links, filters and pages of a list have one accessible name each, which scripts rely on', async () => {
  const field = (name: string) => page.getByLabel(name, { exact: true });
  const once = async (...found: Locator[]) => {
    for (const one of found) {
      await one.first().waitFor();
      expect([String(one), await one.count()]).toEqual([String(one), 1]);
    }
  };
  await walk(page, [`${SANDBOX}/overview`]);
  await once(...NAVIGATION.map(link), link('Sandbox'), link('Live'), button('Sign out'));
  expect(await link('Sandbox').getAttribute('aria-current')).toBe('true');
  expect(await link('Live').getAttribute('aria-current')).toBeNull();
  for (const list of ['/refunds', '/payouts', '/webhooks/deliveries', '/payments']) {
    await walk(page, [`${SANDBOX}${list}`]);
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
  await page.getByRole('heading', { name: 'Timeline', exact: true }).waitFor();
  expect(new URL(page.url()).pathname).toBe(`/dashboard/sandbox/payments/${id}`);
});

test('a crypto payment shows its deposits, and is settled to a wallet that is registered first', async () => {
  const shop = await openCryptoShop(service);
  const { id } = await shop.pay({ reference: 'order-1001' });
  await shop.deposit(id, `0x${'a1'.repeat(32)}`, ETHER);
  await shop.until(id, 'its receipt', ({ status }) => status === 'received');
  const user = await openUser(service.stores, shop.account_id);
  const own = await enter(await browser.newContext(), service.url, user);
  // Labels of the page, whose word is not one of our names.
  const filters = { Search: 'order-1001', ['Coin']: 'eth_ethereum' };
  await walk(
    own,
    ['Crypto'],
    ['Apply', filters, 'Show all crypto payments', 'crypto-payments'],
    [id, {}, 'Timeline', 'crypto-payment'],
    ['Wallets'],
  );
  const address = '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed';
  await own.getByLabel('Address on ethereum').fill(address);
  await own.getByRole('button', { name: 'Register wallet' }).nth(1).click();
  await walk(
    own,
    ['Register wallet', PROOF, 'The wallet is registered.', 'crypto-wallets'],
    ['Settle now'],
    ['Settle now', PROOF, 'Settlement of 1 ETH', 'crypto-settlement'],
    ['Settlements', {}, 'Export CSV', 'crypto-settlements'],
    ['Balances', {}, 'ETH on ethereum'],
  );
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

test('a customer pays on the page, returns to the shop, and the payment settles; another one cancels', async () => {
  const payment = await create();
  const page = await customer();
  const noise = collectNoise(page);
  await page.goto(payment.redirect_url);
  await page.getByRole('button', { name: /^Continue/ }).click();
  await page.getByLabel('Birch Savings').check();
  await page.getByRole('button', { name: 'Approve payment' }).click();
  await page.waitForURL('https://shop.example/thanks');
  await service.becomes('payments', payment.id, { status: 'settled' });
  const settled = await read(payment.id);
  expect(settled.authorized_at < settled.settled_at).toBe(true);
  await page.goto(payment.redirect_url);
  await page.getByRole('heading', { name: 'You have paid' }).waitFor();
  expect(noise).toEqual([]);

  const other = await create();
  await page.goto(other.redirect_url);
  await walk(page, ['Cancel payment']);
  await page.waitForURL('https://shop.example/sorry');
  const failure = { code: 'cancelled_by_customer' };
  expect(await read(other.id)).toMatchObject({ status: 'cancelled', failure });
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

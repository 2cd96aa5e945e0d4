import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { Page } from 'playwright-core';
import { disputeId } from '../../../src/store/disputes';
import { answerDispute, EVIDENCE, enter, look, useBrowser } from '../../browser/dashboard-visit';
import { openUser } from '../../support/dashboard';
import { eventually } from '../../support/eventually';
import { buildAccount, buildPayment } from '../../support/factories';
import { useFixture } from '../../support/fixture';
import { useHook } from '../../support/hook';
import { createRandom } from '../../support/random';
import { useAccount, useService } from '../../support/service';
import { describeWithStripeMock, startStripeMock } from '../../support/stripe-mock';
import { receiveHttps } from '../../webhooks/receiver';
import { postEvent, type Thing } from './fake';
import { judge } from './judge';
import { startStripeWorld } from './product';
import { WEBHOOK_SECRET } from './world';

const DAY_MS = 86_400_000;
const prefix = `stripe-${randomUUID().slice(0, 8)}`;
// A product of its own: its payments go to Stripe.
const service = useService({
  live: { connectors: '', prefix },
  tests: 'stripe=visa|mastercard|ideal|multibanco',
});
// A refund of what is not available yet needs funds.
const account = useFixture(() => buildAccount(service, { funds: 100_000 }));

const world = useFixture(
  () => startStripeWorld({ service, prefix }),
  ({ stop }) => stop(),
);

const begin = async (fields: object = {}): Promise<string> =>
  (await buildPayment(account, { amount: 1_000, method: 'visa', ...fields })).id;
const becomes = (id: string, values: { status?: string; attention?: string }) =>
  service.becomes('payments', id, values);
const listCallbacks = async (id: string) =>
  (await service.stores.callbacks.forResource(id)).map(({ name }) => name).toSorted();

test('the fee of a balance transaction is what the merchant bears', async () => {
  const { account_id } = account;
  await service.stores.accounts.setAcquirerFee(account_id, 'merchant');
  const id = await begin();
  await world.bank.pay(id);
  await becomes(id, { status: 'settled' });
  const [entry] = await service.stores.ledger.forResource(id);
  // 1.5 % and 0.25.
  expect(Number(entry?.fee)).toBe(40);
  await service.stores.accounts.setAcquirerFee(account_id, 'service');
});

test('a settled payment is pending until the day that Stripe names, and pays no refund before', async () => {
  const { bank } = world;
  const shop = await service.account();
  const pay = async (daysAgo: number): Promise<string> => {
    const { id } = await buildPayment(shop, { amount: 1_000, method: 'visa' });
    bank.advance(-daysAgo * DAY_MS);
    await bank.pay(id);
    bank.advance(daysAgo * DAY_MS);
    await becomes(id, { status: 'settled' });
    return id;
  };
  const readMain = async () => (await shop.get('/v1/balances')).body.data[0];
  const refund = async (amount: number) =>
    (await shop.post('/v1/refunds', { payment_id, amount })).status;
  const payment_id = await pay(0);
  expect(await readMain()).toMatchObject({ available: 0, pending: 1_000 });
  expect(await refund(1)).toBe(422);
  await pay(5);
  expect(await readMain()).toMatchObject({ available: 1_000, pending: 1_000 });
  expect([await refund(700), await refund(301)]).toEqual([201, 422]);
  expect(await readMain()).toMatchObject({ available: 300, pending: 1_000 });
  const { body } = await shop.get('/v1/balance_transactions');
  const dates = body.data.map((row: { available_on: string }) => Date.parse(row.available_on));
  expect(dates.filter((at: number) => at > Date.now())).toHaveLength(1);
});

test('a payment that its customer has paid is not cancelled, but settled', async () => {
  const { bank } = world;
  const id = await begin({ method: 'ideal' });
  await world.stopConnector();
  await bank.pay(id);
  await world.startConnector();
  await account.post(`/v1/payments/${id}/cancel`);
  await becomes(id, { status: 'settled' });
});

test('what happened while the connector was away is read, whatever webhooks got lost', async () => {
  const { bank } = world;
  const ids = [await begin(), await begin({ method: 'ideal' })];
  await world.stopConnector();
  for (const id of ids) await bank.pay(id);
  await world.startConnector();
  for (const id of ids) await becomes(id, { status: 'settled' });
});

test('twenty webhooks out of order and doubled, while a secret is rolled, report each fact once', async () => {
  const { bank, webhook } = world;
  const ids = await Promise.all(Array.from({ length: 10 }, () => begin()));
  await world.stopConnector();
  bank.state.isSilent = true;
  const rolled = { ...webhook, secret: `${WEBHOOK_SECRET}new` };
  const secrets = { STRIPE_WEBHOOK_SECRET_FILE: `${WEBHOOK_SECRET}\n${rolled.secret}` };
  const cursors = service.mongo.db(`${service.database}_stripe`).collection('cursors');
  const before = await cursors.findOne({});
  await world.startConnector(secrets, 3_600);
  await eventually('the only read of events', async () => {
    return JSON.stringify(await cursors.findOne({})) !== JSON.stringify(before);
  });
  for (const id of ids) await bank.pay(id);
  const random = createRandom(7);
  const events = bank.events.slice(0, 20);
  const shuffled = [...events, ...events]
    .map((event) => ({ event, order: random.integer(0, 1_000) }))
    .toSorted((a, b) => a.order - b.order)
    .map(({ event }) => event);
  const answers = shuffled.map((event, at) => postEvent(event, at % 2 === 0 ? webhook : rolled));
  expect((await Promise.all(answers)).map(({ status }) => status)).toEqual(Array(40).fill(200));
  for (const id of ids) await becomes(id, { status: 'settled' });
  const [delivered] = events as [Thing];
  bank.advance(86_400_000);
  const again = [
    { ...{ how: webhook, status: 200 } },
    { how: { ...webhook, ageSeconds: 86_400 }, status: 400 },
    { how: { ...webhook, secret: 'whsec_of_somebody_else' }, status: 400 },
  ];
  for (const { how, status } of again) {
    expect((await postEvent(delivered, how)).status).toBe(status);
  }
  expect(await Promise.all(ids.map(listCallbacks))).toEqual(ids.map(() => ['settled']));
  expect(await Promise.all(ids.map((id) => account.events(id)))).toEqual(
    ids.map(() => ['payment.awaiting_customer', 'payment.authorized', 'payment.settled']),
  );
  bank.advance(-86_400_000);
  bank.state.isSilent = false;
  await world.stopConnector();
  await world.startConnector();
});

test('a key of the other mode starts no connector', async () => {
  await expect(world.connect({ STRIPE_SECRET_KEY_FILE: 'sk_live_x' })).rejects.toThrow(
    'STRIPE_SECRET_KEY_FILE',
  );
});

describe('in a browser', () => {
  const browser = useBrowser();
  const hook = useHook(service);
  // A real server: a route of the browser does not see where a redirect leads.
  const shop = useFixture(
    () =>
      receiveHttps(({ url }, response) => {
        const headers = { 'Content-Type': 'text/html' };
        response.writeHead(200, headers).end(`<h1>Shop ${url}</h1>`);
      }),
    ({ close }) => close(),
  );
  const toEvents = (id: string) => hook.events(id).map(({ type }) => type);

  /** Opens the pages of a payment in tabs of one customer, and goes to Stripe’s in each. */
  async function visit(payment: { redirect_url: string }, tabs = 1): Promise<Page[]> {
    const viewport = { width: 390, height: 844 };
    const context = await browser.newContext({ viewport, ignoreHTTPSErrors: true });
    const pages = await Promise.all(Array.from({ length: tabs }, () => context.newPage()));
    for (const page of pages) {
      await page.goto(payment.redirect_url);
      await page.getByRole('button', { name: 'Continue to' }).click();
      await page.getByRole('heading', { name: 'Pay 10.00 EUR' }).waitFor();
    }
    return pages;
  }
  const pay = (page: Page) => page.getByRole('button', { name: 'Pay by card' }).click();
  const heading = (page: Page, name: string) => page.getByRole('heading', { name }).waitFor();
  const start = async () => {
    await hook.register(account, ['payment.settled', 'payment.cancelled']);
    const success_url = new URL('/thanks', shop.url).href;
    return await buildPayment(account, { amount: 1_000, method: 'visa', success_url });
  };

  test('a payer pays and comes back to the shop, whose server receives payment.settled', async () => {
    const payment = await start();
    const [page] = (await visit(payment)) as [Page];
    await pay(page);
    await heading(page, 'Shop /thanks');
    await eventually('payment.settled', async () => toEvents(payment.id).length > 0);
    expect(toEvents(payment.id)).toEqual(['payment.settled']);
    await page.context().close();
  });

  test('a payer who pays while the merchant cancels has paid, and nothing is cancelled', async () => {
    const payment = await start();
    const [page] = (await visit(payment)) as [Page];
    const session = world.bank.findSession(payment.id);
    world.bank.holdNext(`POST /v1/checkout/sessions/${session.id}/expire`, async () => {
      await pay(page);
      await eventually('a payment', async () => session['status'] === 'complete');
    });
    const { status, body } = await account.post(`/v1/payments/${payment.id}/cancel`);
    expect([status, body.error?.code]).toEqual([422, 'cannot_cancel']);
    await heading(page, 'Shop /thanks');
    await eventually('payment.settled', async () => toEvents(payment.id).length > 0);
    expect(toEvents(payment.id)).toEqual(['payment.settled']);
    await page.context().close();
  });

  test('a payer who pays in two tabs pays once', async () => {
    const payment = await start();
    const tabs = await visit(payment, 2);
    await Promise.all(tabs.map(pay));
    const read = (tab: Page) => tab.getByRole('heading').first().textContent({ timeout: 1_000 });
    const readTabs = async () => ({
      // A tab that loads another page has none.
      shown: (await Promise.all(tabs.map((tab) => read(tab).catch(() => '')))).toSorted(),
      urls: tabs.map((tab) => tab.url()),
    });
    const shown = ['Shop /thanks', 'You have paid already'];
    const isDone = async () => isDeepStrictEqual((await readTabs()).shown, shown);
    await eventually('both tabs to be done', isDone).catch(() => undefined);
    expect(await readTabs()).toMatchObject({ shown });
    await becomes(payment.id, { status: 'settled' });
    const charges = [...world.bank.things.values()].filter(
      ({ object, metadata }) => object === 'charge' && metadata.payment_id === payment.id,
    );
    expect(charges).toHaveLength(1);
    await tabs[0]?.context().close();
  });
});

describe('in the dashboard', () => {
  const browser = useBrowser();

  test('a merchant answers what a payer disputes, wins, and has the money back', async () => {
    const { bank } = world;
    const shop = await buildAccount(service, { funds: 5_000 });
    const payment = await buildPayment(shop, { amount: 4_900, method: 'visa' });
    const charge = await bank.pay(payment.id);
    await becomes(payment.id, { status: 'settled' });
    const made = await bank.dispute(charge);
    await bank.withdraw(made);
    const name = disputeId(payment.id, made.id);
    await service.becomes('disputes', name, { status: 'needs_response' });
    const readAvailable = async () => (await shop.get('/v1/balances')).body.data[0].available;
    await eventually('a chargeback', async () => (await readAvailable()) === 100);

    const user = await openUser(service.stores, shop.account_id, 'finance');
    const page = await enter(await browser.newContext(), service.url, user);
    await page.locator(`a[href$="/disputes/${name}"]`).click();
    await page.getByRole('heading', { name: 'Dispute of a payment of €49.00' }).waitFor();
    await answerDispute(page, 'stripe-dispute');
    await eventually('the evidence', async () => made['status'] === 'under_review');
    expect(made['evidence']).toMatchObject({
      ...{ uncategorized_text: EVIDENCE.Explanation, shipping_carrier: EVIDENCE.Carrier },
      shipping_tracking_number: EVIDENCE['Tracking number'],
    });

    await bank.decide(made, 'won');
    await bank.reinstate(made);
    await service.becomes('disputes', name, { status: 'won' });
    await eventually('the money', async () => (await readAvailable()) === 5_000);
    await page.reload();
    await page.getByText('The bank decided for you.').waitFor();
    await look(page, 'stripe-dispute-won');
    await page.getByRole('link', { name: 'Balances', exact: true }).click();
    await page.getByRole('cell', { name: /50\.00/ }).waitFor();
    await look(page, 'stripe-dispute-balance');
    await page.context().close();
  });
});

describeWithStripeMock('Stripe’s own document', () => {
  const mock = useFixture(startStripeMock, ({ stop }) => stop());

  test('has every request, answer and event of these stories', async () => {
    const { counts, faults } = await judge(world.bank, mock);
    if (process.env['STRIPE_COUNTS'] === 'yes') console.info(counts);
    expect(faults).toEqual([]);
  });
});

describe('a dispute', () => {
  const merchant = useAccount(service);
  const due_by = Math.floor(Date.now() / 1_000) + 7 * 86_400;

  beforeAll(async () => {
    await service.stores.accounts.setAcquirerFee(merchant.account_id, 'merchant');
  });

  /** Has a payment settled by Stripe. @returns its charge, and a reader of its dispute */
  async function settle() {
    const { id } = await buildPayment(merchant, { amount: 1_000, method: 'visa' });
    const charge = await world.bank.pay(id);
    await becomes(id, { status: 'settled' });
    const find = async () => (await service.stores.disputes.forPayment(id))[0];
    const shows = (change: object) =>
      eventually(`a dispute ${JSON.stringify(change)}`, async () => {
        const found = await find();
        return found !== undefined && isMatch(found, change) ? found : undefined;
      });
    return { id, charge, shows };
  }

  const isMatch = (found: object, change: object) =>
    Object.entries(change).every(([name, value]) => Object(found)[name] === value);

  /** Sums what the books say that Stripe has of payments. */
  async function sumBooks(ids: string[]): Promise<number> {
    const entries = await Promise.all(ids.map((id) => service.stores.ledger.forResource(id)));
    return entries
      .flat()
      .flatMap(({ lines }) => lines)
      .filter(({ account }) => account === 'clearing.stripe')
      .reduce((sum, { amount }) => sum - Number(amount), 0);
  }

  test('is asked about, withdrawn, answered, won and reinstated; lost; or accepted', async () => {
    const { bank, webhook } = world;
    const before = bank.balance();
    const won = await settle();
    const made = await bank.dispute(won.charge, { isInquiry: true, due_by });
    const inquiry = await won.shows({ status: 'needs_response', amount: 0 });
    expect(inquiry).toMatchObject({
      ...{ name: made.id, reason: 'fraudulent' },
      evidence_due_at: new Date(due_by * 1_000).toISOString(),
    });
    await bank.escalate(made);
    await bank.withdraw(made);
    await won.shows({ status: 'needs_response', amount: 1_000, fee: 2_000 });
    const evidence = { explanation: 'Signed for.', tracking_number: 'T-1' };
    const path = `/v1/disputes/${inquiry._id}`;
    const sent = await merchant.post(`${path}/evidence`, evidence);
    expect(sent.body).toMatchObject({ status: 'under_review' });
    expect(made['evidence']).toEqual({
      ...{ uncategorized_text: 'Signed for.', shipping_tracking_number: 'T-1' },
      enhanced_evidence: {},
    });
    await bank.decide(made, 'won');
    await won.shows({ status: 'won', amount: 1_000 });
    // After the close.
    await bank.reinstate(made);
    await won.shows({ status: 'won', amount: 0, fee: 2_000 });

    const lost = await settle();
    await world.stopConnector();
    // The money is read with the dispute, and before its event.
    const taken = await bank.dispute(lost.charge, { due_by });
    await bank.withdraw(taken);
    await bank.decide(taken, 'lost');
    bank.events.reverse();
    await world.startConnector();
    await lost.shows({ status: 'lost', amount: 1_000, fee: 2_000 });

    const accepted = await settle();
    const third = await bank.dispute(accepted.charge, { due_by });
    await bank.withdraw(third);
    const { _id } = await accepted.shows({ amount: 1_000 });
    const { body } = await merchant.post(`/v1/disputes/${_id}/accept`);
    expect({ api: body.status, stripe: third['status'] }).toEqual({
      ...{ api: 'accepted', stripe: 'lost' },
    });

    const names = [made, taken, third].map(({ id }) => id);
    const events = bank.events.filter(({ data }) => names.includes(data.object.id));
    const ids = [won, lost, accepted].map(({ id }) => id);
    const read = async () => ({
      disputes: await Promise.all(ids.map((id) => service.stores.disputes.forPayment(id))),
      callbacks: await Promise.all(ids.map(listCallbacks)),
    });
    const stored = await read();
    expect(stored.disputes.flat().map(({ attention }) => attention)).toEqual([null, null, null]);
    for (const event of [...events, ...events]) await postEvent(event, webhook);
    expect(await read()).toEqual(stored);
    // Stripe keeps 0.40 of each payment and 20.00 of each dispute, which the statement books.
    expect(await sumBooks(ids)).toBe(bank.balance() - before + 3 * 2_040);
  });
});

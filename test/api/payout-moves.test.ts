import { json } from 'node:stream/consumers';
import { z } from 'zod';
import type { PayoutCallbackName } from '../../src/domain/callback/callback';
import { createEncrypter } from '../../src/encryption/encrypter';
import { endpointOwner } from '../../src/store/endpoints';
import { eventually } from '../support/http';
import { type Service, startService } from '../support/service';
import { type Receiver, receiveHttp } from '../webhooks/receiver';
import { FUNDS, openShop, type Shop } from './payout-setting';
import { expectRefusal } from './refusal';

const Told = z.looseObject({ data: z.looseObject({ payout_id: z.string().optional() }) });

let service: Service;
let receiver: Receiver;
let shop: Shop;
/** Events that the merchants' endpoints were told. */
const told: z.infer<typeof Told>[] = [];

beforeAll(async () => {
  receiver = await receiveHttp(async (request, response) => {
    told.push(Told.parse(await json(request)));
    response.writeHead(204).end();
  });
  service = await startService();
});
afterAll(async () => {
  await service?.stop();
  await receiver?.close();
});
beforeEach(async () => {
  shop = await openShop(service);
});

const FEE = 25;
const withFee = () => service.stores.accounts.setPayoutFee(shop.account_id, 'sepa_instant', FEE);
/** The silent bank: it takes the payout and says no more. */
const SILENT_BEFORE_SENT = { amount: 66_624 };
const eventsOf = async (resource_id: string) => {
  const filter = { account_id: shop.account_id, livemode: false, resource_id, limit: 20 };
  const events = await service.stores.events.list(filter);
  return events.map(({ type }) => type).reverse();
};
const SENT = ['payout.submitted', 'payout.sent'];

test.each<[PayoutCallbackName, string[]]>([
  ['completed', ['payout.completed']],
  ['failed', ['payout.failed']],
  ['returned', ['payout.returned']],
])('a payout that is %s tells the endpoint of every step, once', async (event, last) => {
  const owner = endpointOwner(shop.account_id, false);
  const sealed = await createEncrypter(service.keys.seal).encrypt('whsec_any', owner);
  await service.stores.endpoints.set({
    account_id: shop.account_id,
    livemode: false,
    url: receiver.url,
    sealed,
    now: new Date(),
  });
  const { id } = (await shop.paid()).body;
  const moved = await shop.simulate(id, { event });
  expect([moved.status, moved.body.status]).toEqual([200, event]);
  expect((await shop.get(`/v1/payouts/${id}`)).text).toBe(moved.text);
  await shop.simulate(id, { event });
  const about = () => told.filter(({ data }) => data.payout_id === id);
  await eventually('the events', async () => about().length >= 3);
  expect(
    about()
      .map(({ type }) => type)
      .sort(),
  ).toEqual([...SENT, ...last].sort());
  for (const each of about()) {
    expect(each).toEqual({
      id: expect.stringMatching(/^evt_[0-9a-f]{8}-[0-9a-f-]{27}$/),
      type: expect.any(String),
      created: expect.any(String),
      livemode: false,
      data: { payout_id: id },
    });
  }
  expect(await eventsOf(id)).toEqual([...SENT, ...last]);
});

test('a completed payout says when, and what was drawn stays drawn', async () => {
  await withFee();
  const created = (await shop.paid()).body;
  expect(await shop.balance()).toEqual([FUNDS.main - 1_000 - FEE, 0]);
  const { body } = await shop.simulate(created.id, { event: 'completed' });
  expect(body).toEqual({ ...created, status: 'completed', completed_at: expect.any(String) });
  expect(body.completed_at >= created.created_at).toBe(true);
  expect(await shop.balance()).toEqual([FUNDS.main - 1_000 - FEE, 0]);
});

test('a failed payout says why, and gives back amount and fee', async () => {
  await withFee();
  const created = (await shop.paid()).body;
  const why = { event: 'failed', code: 'AC04', reason: 'Account closed' };
  const { body } = await shop.simulate(created.id, why);
  const failure = { code: 'AC04', message: 'Account closed' };
  expect(body).toEqual({ ...created, status: 'failed', failure });
  expect(await shop.balance()).toEqual([FUNDS.main, 0]);
  const bare = await shop.simulate((await shop.paid()).body.id, { event: 'failed', code: null });
  expect(bare.body.failure).toEqual({ code: expect.any(String), message: expect.any(String) });
});

test('one that fails before it was sent releases what was reserved', async () => {
  await withFee();
  const { amount } = SILENT_BEFORE_SENT;
  const created = await shop.paid(SILENT_BEFORE_SENT, 'submitted');
  expect(await shop.balance()).toEqual([FUNDS.main - amount - FEE, amount + FEE]);
  const { body } = await shop.simulate(created.body.id, { event: 'failed' });
  expect([body.status, body.completed_at]).toEqual(['failed', null]);
  expect(await shop.balance()).toEqual([FUNDS.main, 0]);
  expect(await eventsOf(body.id)).toEqual(['payout.submitted', 'payout.failed']);
});

test.each([
  ['from sent', []],
  ['from completed', ['completed']],
])('a payout that comes back %s credits the amount, and the fee stays', async (_, first) => {
  await withFee();
  const created = (await shop.paid()).body;
  for (const event of first) await shop.simulate(created.id, { event });
  const before = (await shop.get(`/v1/payouts/${created.id}`)).body;
  const returned = { code: 'AC04', reason: 'Account closed' };
  const { body } = await shop.simulate(created.id, { event: 'returned', ...returned });
  const completed_at = before.completed_at ?? expect.any(String);
  expect(body).toEqual({ ...created, status: 'returned', returned, completed_at });
  expect(await shop.balance()).toEqual([FUNDS.main - FEE, 0]);
  const last = [...first, 'returned'].map((event) => `payout.${event}`);
  expect(await eventsOf(created.id)).toEqual([...SENT, ...last]);
});

test('what comes next is told, and what jumps ahead step by step', async () => {
  const [first, second] = await Promise.all(
    [1, 2].map(() => shop.paid(SILENT_BEFORE_SENT, 'submitted')),
  );
  const sent = await shop.simulate(first?.body.id, { event: 'sent' });
  expect(sent.body).toEqual({ ...first?.body, status: 'sent' });
  expect(await eventsOf(sent.body.id)).toEqual(SENT);
  const completed = await shop.simulate(second?.body.id, { event: 'completed' });
  expect(completed.body.status).toBe('completed');
  expect(await eventsOf(completed.body.id)).toEqual([...SENT, 'payout.completed']);
});

test.each<[PayoutCallbackName, PayoutCallbackName[]]>([
  ['failed', ['submitted', 'sent', 'completed', 'returned', 'failed']],
  ['returned', ['submitted', 'sent', 'completed', 'failed', 'returned']],
  ['completed', ['submitted', 'sent', 'failed', 'completed']],
])('once %s, nothing else that the bank says moves it or its money', async (event, later) => {
  await withFee();
  const { id } = (await shop.paid()).body;
  const moved = await shop.simulate(id, { event });
  const balance = await shop.balance();
  for (const each of later) {
    const after = await shop.simulate(id, { event: each });
    expect([each, after.status, after.text]).toEqual([each, 200, moved.text]);
  }
  expect(await shop.balance()).toEqual(balance);
});

test('what cannot come back on its rail does not', async () => {
  const card = { method: 'card_payout', recipient_id: shop.recipients.card_payout };
  const created = await shop.paid(card);
  const after = await shop.simulate(created.body.id, { event: 'returned' });
  expect(after.text).toBe(created.text);
  expect(await shop.balance()).toEqual([FUNDS.main - 1_000, 0]);
  const { body } = await shop.simulate(created.body.id, { event: 'completed' });
  expect(body.status).toBe('completed');
});

describe('the balance that a payout draws from', () => {
  const marketing = { metadata: { balance_account: 'marketing' } };

  test('is the one that its metadata names, for amount and fee and what comes back', async () => {
    await withFee();
    const { body } = await shop.paid(marketing);
    expect(body.metadata).toEqual({ balance_account: 'marketing' });
    const drawn = FUNDS.marketing - 1_000 - FEE;
    expect(await shop.balance({ balance_account: 'marketing' })).toEqual([drawn, 0]);
    await shop.simulate(body.id, { event: 'returned' });
    expect(await shop.balance({ balance_account: 'marketing' })).toEqual([drawn + 1_000, 0]);
    expect(await shop.balance()).toEqual([FUNDS.main, 0]);
  });

  test('must hold amount and fee, to the last minor unit', async () => {
    await withFee();
    const all = FUNDS.marketing - FEE;
    const over = await shop.pay({ ...marketing, amount: all + 1 });
    expectRefusal(over, 'insufficient_balance');
    expect(over.body.error.message).toContain('€500.00');
    await shop.paid({ ...marketing, amount: all });
    expect(await shop.balance({ balance_account: 'marketing' })).toEqual([0, 0]);
    expectRefusal(await shop.pay({ ...marketing, amount: 1 }), 'insufficient_balance');
    await shop.paid({ metadata: { balance_account: 'main' } });
  });

  test('counts in the currency of the payout, with the fee in it', async () => {
    await service.stores.accounts.setPayoutFee(shop.account_id, 'card_payout', 7);
    const yen = { method: 'card_payout', currency: 'JPY', ...marketing };
    const card = { ...yen, recipient_id: shop.recipients.card_payout };
    await shop.paid({ ...card, amount: 500 });
    const row = { balance_account: 'marketing', currency: 'JPY' };
    expect(await shop.balance(row)).toEqual([FUNDS.marketing - 507, 0]);
    expectRefusal(await shop.pay({ ...card, currency: 'USD' }), 'insufficient_balance');
    await service.stores.accounts.setPayoutFee(shop.account_id, 'card_payout:JPY', 11);
    await shop.paid({ ...card, amount: 500 });
    expect(await shop.balance(row)).toEqual([FUNDS.marketing - 507 - 511, 0]);
  });

  test.each(['sales', 'Main', '', 'a.b', '$x', '__proto__', 'x'.repeat(65)])(
    'is not found where "%s" was never funded',
    async (balance_account) => {
      const answer = await shop.pay({ metadata: { balance_account } });
      expectRefusal(answer, 'balance_account_not_found');
    },
  );

  test('is main where none is named, which exists also when it was never funded', async () => {
    const card = { method: 'card_payout', recipient_id: shop.recipients.card_payout };
    const answer = await shop.pay({ ...card, currency: 'USD' });
    expectRefusal(answer, 'insufficient_balance');
    expect(answer.body.error.message).toContain('$0.00');
  });

  test('never falls below zero, however many payouts are asked for at once', async () => {
    const fifth = { ...marketing, amount: FUNDS.marketing / 5 };
    const answers = await Promise.all(Array.from({ length: 12 }, () => shop.pay(fifth)));
    const made = answers.filter(({ status }) => status === 201);
    expect(made).toHaveLength(5);
    for (const answer of answers.filter((each) => !made.includes(each))) {
      expectRefusal(answer, 'insufficient_balance');
    }
    await shop.untilSent({ balance_account: 'marketing' });
    expect(await shop.balance({ balance_account: 'marketing' })).toEqual([0, 0]);
  });
});

import { useService } from '../support/service';
import { FUNDS, useFreshShop } from './payout-setting';
import { expectRefusal } from './refusal';

const service = useService();
const shop = useFreshShop(service);

const FEE = 25;
const withFee = () => service.stores.accounts.setPayoutFee(shop.account_id, 'sepa_instant', FEE);
/** The silent bank: it takes the payout and says no more. */
const SILENT_BEFORE_SENT = { amount: 66_624 };
const SENT = ['payout.submitted', 'payout.sent'];

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
});

test('one that fails before it was sent releases what was reserved', async () => {
  await withFee();
  const { amount } = SILENT_BEFORE_SENT;
  const created = await shop.paid(SILENT_BEFORE_SENT, 'submitted');
  expect(await shop.balance()).toEqual([FUNDS.main - amount - FEE, amount + FEE]);
  const { body } = await shop.simulate(created.body.id, { event: 'failed' });
  expect([body.status, body.completed_at]).toEqual(['failed', null]);
  expect(await shop.balance()).toEqual([FUNDS.main, 0]);
  expect(await shop.events(body.id)).toEqual(['payout.submitted', 'payout.failed']);
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
  const amount_returned = created.amount;
  expect(body).toEqual({ ...created, status: 'returned', returned, amount_returned, completed_at });
  expect(await shop.balance()).toEqual([FUNDS.main - FEE, 0]);
  const last = [...first, 'returned'].map((event) => `payout.${event}`);
  expect(await shop.events(created.id)).toEqual([...SENT, ...last]);
});

test('what comes next is told, and what jumps ahead step by step', async () => {
  const [first, second] = await Promise.all(
    [1, 2].map(() => shop.paid(SILENT_BEFORE_SENT, 'submitted')),
  );
  const sent = await shop.simulate(first?.body.id, { event: 'sent' });
  expect(sent.body).toEqual({ ...first?.body, status: 'sent' });
  expect(await shop.events(sent.body.id)).toEqual(SENT);
  const completed = await shop.simulate(second?.body.id, { event: 'completed' });
  expect(completed.body.status).toBe('completed');
  expect(await shop.events(completed.body.id)).toEqual([...SENT, 'payout.completed']);
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

  test('is not found where it was never funded', async () => {
    for (const balance_account of ['sales', 'Main', '', 'a.b', '$x', '__proto__', 'x'.repeat(65)]) {
      const answer = await shop.pay({ metadata: { balance_account } });
      expectRefusal(answer, 'balance_account_not_found');
    }
  });

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

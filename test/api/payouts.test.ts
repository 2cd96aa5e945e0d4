import { RAIL_IDS } from '../../src/domain/payout/rails';
import { eventually } from '../support/http';
import { useService } from '../support/service';
import { FUNDS, insertRecipient, openShop, useShop } from './payout-setting';
import { expectRefusal } from './refusal';
import { inOneDay } from './window';

const service = useService();

describe('a payout', () => {
  const shop = useShop(service);

  test.each([
    ...RAIL_IDS.map((method) => [method, method === 'faster_payments' ? 'GBP' : 'EUR'] as const),
    ['card_payout', 'JPY'] as const,
  ])('over %s in %s is sent, and a read shows it', async (method, currency) => {
    const body = { method, recipient_id: shop.recipients[method], amount: 1, currency };
    const created = await shop.pay(body);
    const { id, created_at } = created.body;
    const payout = {
      ...{ ...body, id, object: 'payout', fee: 0, livemode: false, created_at },
      ...{ reference: null, metadata: {}, failure: null, returned: null },
      ...{ amount_returned: null, completed_at: null },
    };
    // A slow bank sends a payout after the answer.
    const status = expect.stringMatching(/^(created|submitted|sent)$/);
    expect([created.status, created.body]).toEqual([201, { ...payout, status }]);
    await service.becomes('payouts', id, { status: 'sent' });
    expect((await shop.get(`/v1/payouts/${id}`)).body).toEqual({ ...payout, status: 'sent' });
  });

  // What each rail refuses of a recipient: test/domain/payout-rules.test.ts
  const RAIL = 'rail_requirements_not_met';
  const drawFrom = (balance_account: unknown) => ({ metadata: { balance_account } });
  test.each([
    ['a balance account 1', drawFrom(1), 'invalid_request', 'invalid:metadata.balance_account'],
    ['an unknown rail', { method: 'toString' }, RAIL, 'method_not_found:method'],
    ['a card rail to an account', { method: 'card_payout' }, 'recipient_type_mismatch', ''],
    ['an unknown balance account', drawFrom('sales'), 'balance_account_not_found', ''],
  ] as const)('with %s is refused, and leaves nothing behind', async (_, changes, code, faults) => {
    const before = await shop.count('payouts');
    const refused = await shop.pay(changes);
    expectRefusal(refused, code);
    const details: { code: string; field: string }[] = refused.body.error.details ?? [];
    expect(details.map(({ code, field }) => `${code}:${field}`).join()).toBe(faults);
    expect(await shop.count('payouts')).toBe(before);
  });

  test('to a recipient of another account or environment, or on the balance of another, is refused', async () => {
    const owner = { account_id: shop.account_id, livemode: true };
    const own = await insertRecipient(service, owner, 'sepa_instant');
    const foreign = await insertRecipient(service, await service.account(), 'sepa_instant');
    const unknown = await shop.pay({ recipient_id: 'some-id' });
    for (const recipient_id of ['', shop.account_id, own, foreign]) {
      const answer = await shop.pay({ recipient_id, method: 'cash' });
      expectRefusal(answer, 'recipient_not_found');
      expect(answer.body.error.message).toBe(unknown.body.error.message);
    }
    // A balance account of the sandbox does not exist live.
    const live = await service.withKey(shop, true);
    const drawn = await live.post(
      '/v1/payouts',
      shop.ask({ recipient_id: own, ...drawFrom('marketing') }),
    );
    expectRefusal(drawn, 'balance_account_not_found');
  });
});

test(
  'the daily limit holds for simultaneous payouts, in each currency, without those that failed',
  inOneDay(async () => {
    const OVER = 'payout_limit_exceeded';
    const { pay, simulate, account_id, recipients } = await openShop(service);
    const setLimit = (currency: string, to: number | null) =>
      service.stores.accounts.setPayoutLimit(account_id, currency, to);
    const payAll = async (...amounts: number[]) => {
      const answers = await Promise.all(amounts.map((amount) => pay({ amount })));
      return answers.map(({ status, body }) => (status === 201 ? 'accepted' : body.error.code));
    };
    await setLimit('EUR', 2_500);
    const all = await payAll(1_000, 1_000, 1_000, 1_000);
    expect(all.toSorted()).toEqual(['accepted', 'accepted', OVER, OVER]);
    const records = service.collection('idempotency_records');
    expect(await records.countDocuments({ account_id, operation: 'createPayout' })).toBe(2);
    const { id } = (await pay({ amount: 500 })).body;
    const refused = await pay({ amount: 1 });
    expectRefusal(refused, OVER);
    expect(refused.body.error.message).toContain('€0.00 more today');
    await simulate(id, { event: 'failed' });
    await service.becomes('payouts', id, { status: 'failed' });
    expect([...(await payAll(501)), ...(await payAll(500))]).toEqual([OVER, 'accepted']);

    const { faster_payments: recipient_id } = recipients;
    const payPounds = () => pay({ method: 'faster_payments', recipient_id, currency: 'GBP' });
    expectRefusal(await payPounds(), OVER);
    await setLimit('GBP', 5_000);
    expect((await payPounds()).status).toBe(201);
    await setLimit('GBP', null);
    await setLimit('EUR', null);
    expect(await payAll(1)).toEqual(['accepted']);
  }),
);

test('sends, fails or refuses each of seven payouts whose recipient is deleted meanwhile', async () => {
  const merchant = await openShop(service);
  const { sepa_instant: recipient_id } = merchant.recipients;
  const answers = await Promise.all(
    Array.from({ length: 8 }, (_, index) =>
      index === 3
        ? merchant.delete(`/v1/payout-recipients/${recipient_id}`)
        : merchant.pay({ amount: 1_000 + index }),
    ),
  );
  const created = answers.filter(({ status }) => status === 201);
  const refused = answers.filter(({ status }) => status === 422);
  for (const answer of refused) expectRefusal(answer, 'recipient_deleted');
  expect(created.length + refused.length).toBe(7);
  const ended = await Promise.all(
    created.map(({ body: { id } }) =>
      eventually('a payout that is sent or has failed', async () => {
        const { body } = await merchant.get(`/v1/payouts/${id}`);
        return ['sent', 'failed'].includes(body.status) && body;
      }),
    ),
  );
  for (const { status, failure } of ended) {
    expect(failure?.code).toBe(status === 'failed' ? 'recipient_deleted' : undefined);
  }
  const paid = ended.filter(({ status }) => status === 'sent');
  const total = paid.reduce((sum, { amount }) => sum + amount, 0);
  expect(await merchant.balance()).toEqual([FUNDS.main - total, 0]);
});

import { randomUUID } from 'node:crypto';
import { createRecipientDecrypter } from '../../connectors/contract/recipients';
import { RAIL_IDS } from '../../src/domain/payout/rails';
import type { Encrypter } from '../../src/encryption/encrypter';
import { breakBook } from '../support/book';
import { assertWebhook } from '../support/contract';
import { eventually } from '../support/eventually';
import {
  buildAccount,
  buildEndpoint,
  buildPayment,
  buildPayout,
  buildRefund,
  fundAccount,
} from '../support/factories';
import { useHook } from '../support/hook';
import { type Answer, call, idealPayment } from '../support/http';
import { type Account, useAccount, useService } from '../support/service';
import { FUNDS, insertRecipient, openShop, storedPayout, useShop } from './payout-setting';
import { bankRecipient, cardRecipient, ukRecipient } from './recipient-bodies';
import { expectNotQuoted, expectRefusal } from './refusal';
import { inOneDay } from './window';

const service = useService();
const shop = useAccount(service);

const hook = useHook(service);

const cancel = (id: string, body?: object) => shop.post(`/v1/payments/${id}/cancel`, body);

const simulate = ({ post }: Account, path: string, body?: object) =>
  post(`/v1/sandbox/${path}/simulate`, body);

describe('a payment', () => {
  test('is created awaiting its customer, and a read shows the same', async () => {
    const { status, body } = await shop.post('/v1/payments', idealPayment({ metadata: { a: 1 } }));
    expect(status).toBe(201);
    const { success_url, error_url, ...request } = idealPayment();
    expect(body).toEqual({
      ...{ ...request, object: 'payment', status: 'awaiting_customer', livemode: false },
      id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      redirect_url: expect.stringMatching(/^http:\/\/localhost:\d+\/pay\/[\w-]{43}$/),
      customer: { email: null, first_name: null, last_name: null, reference: null },
      ...{ metadata: { a: 1 }, failure: null, disputed: 0, amount_settled: null },
      ...{ authorized_at: null, settled_at: null, cancelled_at: null },
      ...{ created_at: expect.any(String), updated_at: expect.any(String) },
    });
    expect((await shop.get(`/v1/payments/${body.id}`)).body).toEqual(body);
  });

  test('has the time of its authorization, which is that of the settlement by default', async () => {
    const { id, authorized_at } = await buildPayment(shop, { status: 'authorized' });
    const { body } = await simulate(shop, `payments/${id}`, { event: 'settled' });
    expect(body).toMatchObject({ status: 'settled', authorized_at });
    expect(body.settled_at > authorized_at).toBe(true);
    const direct = await buildPayment(shop, { status: 'settled' });
    expect(direct.authorized_at).toBe(direct.settled_at);
  });

  test.each([
    ['service', 0],
    ['merchant', 40],
  ] as const)(
    'whose acquirer keeps a fee that the %s bears is listed with a fee of %i, and refunded in full',
    async (bearer, fee) => {
      const account = await buildAccount(service, { funds: 40 });
      await service.stores.accounts.setAcquirerFee(account.account_id, bearer);
      const { id } = await buildPayment(account);
      const { body } = await simulate(account, `payments/${id}`, { event: 'settled', fee: 40 });
      expect(body).toMatchObject({ status: 'settled', amount: 1_050, amount_settled: 1_050 });
      const listRows = async () => (await account.get('/v1/balance_transactions')).body.data;
      const paid = { type: 'payment', source: { object: 'payment', id } };
      expect(await listRows()).toMatchObject([
        { ...paid, amount: 1_050, fee, net: 1_050 - fee },
        { type: 'funding' },
      ]);
      await buildRefund(account, { payment_id: id, amount: 1_050 });
      expect(await listRows()).toMatchObject([
        { type: 'refund', amount: -1_050, fee: 0 },
        paid,
        { type: 'funding' },
      ]);
      const { data } = (await account.get('/v1/balances')).body;
      expect(data).toMatchObject([{ currency: 'EUR', available: 40 - fee }]);
    },
  );

  test('has a fee simulated of its settlement and its disputes only', async () => {
    const { id } = await buildPayment(shop);
    const answer = await simulate(shop, `payments/${id}`, { event: 'authorized', fee: 40 });
    expectRefusal(answer, 'invalid_request');
  });

  // While its bank says something else: test/workflows/payment/lifecycle.test.ts
  test('is cancelled before the customer pays, also twice, or when its workflow was terminated, and not after', async () => {
    const { id } = await buildPayment(shop);
    const cancelled = await cancel(id);
    expect([cancelled.status, cancelled.body]).toMatchObject([
      200,
      {
        status: 'cancelled',
        failure: { code: 'cancelled_by_merchant', message: expect.any(String) },
        cancelled_at: expect.any(String),
      },
    ]);
    expect((await cancel(id, {})).body).toEqual(cancelled.body);
    const { id: ended } = await buildPayment(shop);
    await service.temporal.workflow.getHandle(`payment:${ended}`).terminate('in a test');
    expect((await cancel(ended)).body.status).toBe('cancelled');
    for (const status of ['authorized', 'settled'] as const) {
      const paid = await buildPayment(shop, { status });
      expectRefusal(await cancel(paid.id), 'cannot_cancel');
    }
  });

  test('shows its customer to the merchant, and stores it encrypted', async () => {
    const names = { first_name: 'Zebedee', last_name: 'Quillfeather' };
    const customer = { ...names, email: 'quill&feather@Räucher.example', reference: 'c-77' };
    const create = () =>
      shop.post('/v1/payments', idealPayment({ customer }), { idempotencyKey: 'zebedee' });
    const { body, text } = await create();
    expect(body.customer).toEqual(customer);
    expect((await create()).text).toBe(text);
    expect((await shop.get(`/v1/payments/${body.id}`)).body.customer).toEqual(customer);
    expect((await shop.get('/v1/payments?limit=1')).body.data[0].customer).toEqual(customer);
    expect((await service.stores.payments.get(body.id))?.customer).toEqual({
      reference: 'c-77',
      ciphertext: expect.stringMatching(/^ey/),
    });
    // A record without the facts of the first answer stores the whole answer.
    const records = service.collection('idempotency_records');
    await records.updateOne({ resource_id: body.id }, { $unset: { opening: '' } });
    expect((await create()).text).toBe(text);
    const stored = await records.findOne({ resource_id: body.id });
    expect(stored).toMatchObject({ status: 201, body: expect.stringMatching(/^ey/) });
    const again = await create();
    expect([again.text, again.headers.get('Idempotent-Replayed')]).toEqual([text, 'true']);
  });
});

/** Builds a resource that its bank has, of an account with funds. */
const BUILDERS = { payment: buildPayment, refund: buildRefund, payout: buildPayout };
type Kind = keyof typeof BUILDERS;

test('an ID in any case names its resource in paths, bodies and filters, and is answered in lower case', async () => {
  const own = await buildAccount(service, { funds: 10_000 });
  const up = ({ id }: { id: string }, prefix = '') =>
    `${prefix}${id.slice(prefix.length).toUpperCase()}`;
  const payment = await buildPayment(own, { status: 'settled' });
  expect((await own.get(`/v1/payments/${up(payment)}`)).body).toEqual(payment);
  const idempotencyKey = randomUUID();
  const refund = async (payment_id: string) =>
    await own.post('/v1/refunds', { payment_id, amount: 1 }, { idempotencyKey });
  const refunded = await refund(up(payment));
  expect([refunded.status, refunded.body.payment_id]).toEqual([201, payment.id]);
  expect((await refund(payment.id)).body).toEqual(refunded.body);
  const ofPayment = await own.get(`/v1/payments/${up(payment)}/refunds`);
  expect(ofPayment.body.data).toHaveLength(1);
  const { recipient_id } = await buildPayout(own);
  const again = await buildPayout(own, { recipient_id: up({ id: recipient_id }) });
  expect(again.recipient_id).toBe(recipient_id);
  expect((await simulate(own, `payouts/${up(again)}`, { event: 'completed' })).status).toBe(200);
  const endpoint = await buildEndpoint(own, { url: hook.url });
  for (const each of [up(endpoint), up(endpoint, 'we_')]) {
    expect((await own.get(`/v1/webhook-endpoints/${each}`)).body.id).toBe(endpoint.id);
  }
  const { data: events } = (await own.get(`/v1/events?resource_id=${up(payment)}`)).body;
  expect(events.map(({ type }: { type: string }) => type)).toContain('payment.settled');
  for (const each of [up(events[0]), up(events[0], 'evt_')]) {
    expect((await own.get(`/v1/events/${each}`)).body.id).toBe(events[0].id);
    expect((await own.get(`/v1/events?after=${each}`)).status).toBe(200);
  }
});

test('an empty list of PHP is an empty object where one is expected, and nothing else elsewhere', async () => {
  const create = (empty: string, idempotencyKey: string) => {
    const more = `,"metadata":${empty},"customer":${empty}}`;
    const text = JSON.stringify(idealPayment()).replace(/}$/, more);
    return shop.postRaw('/v1/payments', text, { idempotencyKey });
  };
  for (const empty of ['[]', '[ ]']) {
    const key = randomUUID();
    const [first, again] = [await create(empty, key), await create('{}', key)];
    expect([first.status, first.body.metadata]).toEqual([201, {}]);
    expect([again.status, again.body.id]).toEqual([201, first.body.id]);
    const cancelled = await shop.postRaw(`/v1/payments/${first.body.id}/cancel`, empty);
    expect([cancelled.status, cancelled.body.status]).toEqual([200, 'cancelled']);
  }
  const metadata = { tags: [], nested: { none: [] } };
  const { body } = await shop.post('/v1/payments', idealPayment({ metadata }));
  expect(body.metadata).toEqual(metadata);
  for (const [changes, field] of [
    [{ metadata: [[]] }, 'metadata'],
    [{ customer: [{}] }, 'customer'],
    [{ customer: { email: [] } }, 'customer.email'],
    [{ reference: [] }, 'reference'],
  ] as const) {
    const answer = await shop.post('/v1/payments', idealPayment(changes));
    expectRefusal(answer, 'invalid_request', [field]);
  }
  expectRefusal(await shop.postRaw('/v1/refunds', '[]'), 'invalid_request', ['payment_id']);
});

describe('a report of the bank', () => {
  let account: Account;
  beforeAll(async () => {
    account = await buildAccount(service, { funds: 1_000_000 });
    await hook.register(account);
  });
  const report = (kind: Kind, id: string, body?: object) =>
    simulate(account, `${kind}s/${id}`, body);

  test.each<[kind: Kind, event: string, steps: string[], later: string[]]>([
    [
      'payment',
      'settled',
      ['awaiting_customer', 'authorized', 'settled'],
      ['authorized', 'settled', 'expired', 'failed'],
    ],
    // A failed refund that settles is debited again: test/workflows/shared/movements.test.ts
    ['refund', 'failed', ['failed'], ['failed']],
    ['payout', 'returned', ['submitted', 'sent', 'returned'], ['completed', 'returned']],
  ])(
    'that a %s is %s gives a webhook for each step, and later ones are ignored',
    async (...row) => {
      const [kind, event, steps, later] = row;
      const { id, payment_id } = await BUILDERS[kind](account);
      const reported = await report(kind, id, { event });
      expect([reported.status, reported.body.status]).toEqual([200, event]);
      expect((await account.get(`/v1/${kind}s/${id}`)).text).toBe(reported.text);
      const readBalances = () => service.stores.ledger.balances(account.account_id, false);
      const before = await readBalances();
      for (const each of later) {
        const after = await report(kind, id, { event: each });
        expect([each, after.status, after.text]).toEqual([each, 200, reported.text]);
      }
      expect(await readBalances()).toEqual(before);
      const types = steps.map((step) => `${kind}.${step}`);
      expect(await account.events(id)).toEqual(types);

      const delivered: Answer['body'][] = await eventually('the webhooks', async () => {
        const events = hook.distinct(id).map(({ body }) => JSON.parse(body));
        return events.length >= types.length && events;
      });
      expect(delivered.map(({ type }) => type).sort()).toEqual(types.toSorted());
      for (const each of delivered) {
        await assertWebhook(service.url, each.type, each);
        expect(each).toMatchObject({ livemode: false, created: expect.stringMatching(/Z$/) });
        const data = kind === 'refund' ? { refund_id: id, payment_id } : { [`${kind}_id`]: id };
        expect(each.data).toEqual(data);
      }
      const last = delivered.find(({ type }) => type === types.at(-1));
      if (event === 'settled') expect(last.created).toBe(reported.body.settled_at);
    },
  );

  test.each([
    ['payment', 'declined', 'returned'],
    ['refund', 'refund_refused', 'authorized'],
    ['payout', 'payout_rejected', 'settled'],
  ] as const)('that a %s failed has a code and a reason, by default %s', async (...row) => {
    const [kind, code, foreign] = row;
    const [first, second] = [await BUILDERS[kind](account), await BUILDERS[kind](account)];
    const refused = { event: 'failed', code: 'x'.repeat(101), reason: [], status: 5 };
    for (const [body, fields] of [
      [undefined, ['event']],
      [{ event: foreign }, ['event']],
      [refused, ['code', 'reason', 'status']],
    ] as const) {
      expectRefusal(await report(kind, first.id, body), 'invalid_request', fields);
    }
    expect((await account.get(`/v1/${kind}s/${first.id}`)).body.status).toBe(first.status);
    for (const [{ id }, facts, failure] of [
      [first, { code: 'x', reason: 'Why.' }, { code: 'x', message: 'Why.' }],
      [second, { code: null }, { code, message: expect.any(String) }],
    ] as const) {
      const { body } = await report(kind, id, { event: 'failed', ...facts });
      expect(body.failure).toEqual(failure);
    }
  });
});

// What is refused: test/domain/refund-rules.test.ts. Its journal entries: test/workflows/shared
test('a refund leaves its payment as it is, and one without an amount takes all that remains', async () => {
  const merchant = await buildAccount(service);
  const refund = (body: object) => merchant.post('/v1/refunds', body);
  const payment = await buildPayment(merchant, { status: 'settled' });
  const { id: payment_id } = payment;
  const request = { payment_id, amount: 50, reason: 'Zoë’s 鞋 <b>"too big"</b>\n👟' };
  const { status, body } = await refund(request);
  expect([status, body]).toEqual([
    201,
    {
      id: expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f-]{27}$/),
      ...{ object: 'refund', ...request, currency: 'EUR', status: 'processing' },
      ...{ failure: null, settled_at: null, amount_settled: null },
      created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
    },
  ]);
  expect((await merchant.get(`/v1/refunds/${body.id}`)).body).toEqual(body);
  expect((await merchant.get(`/v1/payments/${payment_id}`)).body).toEqual(payment);
  const over = await refund({ payment_id, amount: 1_001 });
  expectRefusal(over, 'refund_amount_exceeds_balance');
  expect(over.body.error.message).toContain('€10.00');
  const created = (await refund({ payment_id, amount: null, reason: null })).body;
  expect(created).toMatchObject({ amount: 1_000, reason: null });
  const { data } = (await merchant.get('/v1/balances')).body;
  expect(data).toMatchObject([{ available: 0 }]);
  expect((await service.stores.payments.get(payment_id))?.refunded).toBe(1_050);
  const settled = (await simulate(merchant, `refunds/${created.id}`, { event: 'settled' })).body;
  const changes = { settled_at: expect.any(String), amount_settled: 1_000 };
  expect(settled).toEqual({ ...created, status: 'settled', ...changes });
  expect(settled.settled_at >= created.created_at).toBe(true);
});

test('a refund whose entry the books refuse is a fault of the service, and can be made again with its key', async () => {
  const merchant = await buildAccount(service, { funds: 10_000 });
  const { id: payment_id } = await buildPayment(merchant, { status: 'settled' });
  const refund = () =>
    merchant.post('/v1/refunds', { payment_id, amount: 50 }, { idempotencyKey: 'refused' });
  const correct = await breakBook(service.stores, `${merchant.account_id}:sandbox:EUR`);
  const refused = await refund();
  expectRefusal(refused, 'books_refused');
  expect(refused.body.error.message).toContain('The books refuse refund_accepted: ');
  await correct();
  expect((await refund()).status).toBe(201);
  expect((await service.stores.payments.get(payment_id))?.refunded).toBe(50);
  expect(await merchant.count('refunds')).toBe(1);
});

test('a refund of a live payment is paid from the live balance, and only by a live key', async () => {
  const shop = await service.account();
  const live = await service.withKey(shop, true);
  const { id: payment_id } = await shop.settledPayment();
  const payments = service.collection<{ _id: string }>('payments');
  await payments.updateOne({ _id: payment_id }, { $set: { livemode: true } });
  expectRefusal(await shop.post('/v1/refunds', { payment_id }), 'payment_not_found');
  expectRefusal(await live.post('/v1/refunds', { payment_id }), 'insufficient_balance');
  await fundAccount(service, shop, { amount: 1_050, livemode: true });
  const { status, body } = await live.post('/v1/refunds', { payment_id });
  expect(status).toBe(201);
  expect((await service.stores.refunds.get(body.id))?.livemode).toBe(true);
  expect((await shop.get('/v1/refunds')).body.data).toEqual([]);
});

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
      ...{ verification: null, amount_returned: null, completed_at: null },
    };
    // A slow bank sends a payout after the answer.
    const status = expect.stringMatching(/^(created|submitted|sent)$/);
    expect([created.status, created.body]).toEqual([201, { ...payout, status }]);
    await service.becomes('payouts', id, { status: 'sent' });
    expect((await shop.get(`/v1/payouts/${id}`)).body).toEqual({ ...payout, status: 'sent' });
  });

  test('shows what the bank says of its recipient, as a simulation reports it', async () => {
    const { body } = await shop.pay({ method: 'sepa_instant' });
    const path = `/v1/sandbox/payouts/${body.id}/simulate`;
    const event = 'payee_verified';
    const { status, body: after } = await shop.post(path, { event, result: 'close_match' });
    const verification = { result: 'close_match', checked_at: expect.stringMatching(/Z$/) };
    expect([status, after]).toEqual([200, expect.objectContaining({ verification })]);
    for (const report of [{ event }, { event: 'sent', result: 'match' }]) {
      expect((await shop.post(path, report)).status).toBe(400);
    }
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
    const request = shop.ask({ recipient_id: own, ...drawFrom('marketing') });
    expectRefusal(await live.post('/v1/payouts', request), 'balance_account_not_found');
  });
});

test(
  'the daily limit holds for simultaneous payouts, in each currency, without those that failed',
  inOneDay(async () => {
    const OVER = 'payout_limit_exceeded';
    const { pay, simulate, account_id, recipients } = await openShop(service);
    const setLimit = (currency: string, to: number | null) =>
      service.stores.accounts.setLimit(account_id, `payout_limits.${currency}`, to);
    const payAll = async (...amounts: number[]) => {
      const answers = await Promise.all(amounts.map((amount) => pay({ amount })));
      return answers.map(({ status, body }) => (status === 201 ? 'accepted' : body.error.code));
    };
    // What was paid out before counts, too.
    expect(await payAll(300)).toEqual(['accepted']);
    await setLimit('EUR', 2_800);
    const all = await payAll(1_000, 1_000, 1_000, 1_000);
    expect(all.toSorted()).toEqual(['accepted', 'accepted', OVER, OVER]);
    const records = service.collection('idempotency_records');
    expect(await records.countDocuments({ account_id, operation: 'createPayout' })).toBe(3);
    const { id } = (await pay({ amount: 500 })).body;
    expect((await pay({ amount: 1 })).body.error.message).toContain('€0.00 more today');
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
  let total = 0;
  for (const { body } of created) {
    const { status, amount, failure } = await eventually('an end', async () => {
      const answer = await merchant.get(`/v1/payouts/${body.id}`);
      return ['sent', 'failed'].includes(answer.body.status) && answer.body;
    });
    expect(failure?.code).toBe(status === 'failed' ? 'recipient_deleted' : undefined);
    total += status === 'sent' ? amount : 0;
  }
  expect(await merchant.balance()).toEqual([FUNDS.main - total, 0]);
});

const RECIPIENTS = '/v1/payout-recipients';
const TURKISH = 'TR330006100519786457841326';

const createRecipient = (body: object, idempotencyKey: string = randomUUID()) =>
  shop.post(RECIPIENTS, body, { idempotencyKey });
const findRecord = (key: string) =>
  service.collection('idempotency_records').findOne({ account_id: shop.account_id, key });
const countStored = () =>
  Promise.all([shop.count('recipients'), shop.count('idempotency_records')]);

describe('a recipient', () => {
  test.each([
    ['a card', cardRecipient(), 'card', 'visa', '1111'],
    ['an account in the SEPA area', bankRecipient(), 'bank_account', null, '4300'],
    ['an account in the United Kingdom', ukRecipient(), 'bank_account', null, '6819'],
    [
      'an IBAN and a number',
      bankRecipient({ ...ukRecipient(), last4: '4300' }),
      'bank_account',
      null,
      '4300',
    ],
    [
      'no address',
      cardRecipient({ address_line1: undefined, postal_code: null }),
      'card',
      'visa',
      '1111',
    ],
    [
      'null for other fields',
      ukRecipient({ card_number: null, scheme: null, last4: null }),
      'bank_account',
      null,
      '6819',
    ],
  ])('with %s is answered without its details', async (_, body, type, scheme, last4) => {
    const { status, body: answer } = await createRecipient(body);
    const id = expect.stringMatching(/^[0-9a-f-]{36}$/);
    const created_at = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    const shown = { id, object: 'payout_recipient', type, scheme, last4, created_at };
    expect([status, answer]).toEqual([201, shown]);
  });

  const NONE = {
    ...{ first_name: undefined, last_name: undefined, card_number: undefined },
    ...{ date_of_birth: undefined, expiry_month: undefined, expiry_year: undefined },
  };
  const NUMBERS = { card_number: '4111111111111111', expiry_month: '12', expiry_year: '2099' };
  const [iban, bic] = ['NL91ABNA0417164300', 'ABNANL2A'];
  const { sort_code, account_number } = ukRecipient();
  type Changes = Record<string, unknown>;
  type Case = [what: string, build: (by: Changes) => object, changes: Changes, fields?: string[]];

  // Lengths, types and patterns are in the OpenAPI document: these are what it cannot say.
  test.each<Case>([
    ['a card without a field', cardRecipient, NONE],
    ['an unknown type', cardRecipient, { type: 'iban' }],
    [
      'only white space',
      cardRecipient,
      { first_name: '', last_name: '\t', address_line1: ' ', city: '', postal_code: '' },
    ],
    [
      'malformed values',
      cardRecipient,
      {
        ...{ first_name: 'a\0b', card_number: '4111111111111112', expiry_month: '13' },
        ...{ expiry_year: '99', date_of_birth: '2023-02-30', scheme: 'VISA', last4: '111' },
        ...{ country: 'UK', email: 'ada', reference: 'x'.repeat(256), token: 'tok_1' },
      },
    ],
    ['an expired card', cardRecipient, { expiry_year: '2001' }, ['expiry_month', 'expiry_year']],
    ['the scheme of another card', cardRecipient, { scheme: 'mastercard' }],
    ['the end of another number', cardRecipient, { last4: '1112' }],
    ['an account of a card', cardRecipient, { iban, bic, sort_code, account_number }],
    ['a card of an account', bankRecipient, { ...NUMBERS, scheme: 'visa' }],
    ['a BIC of no country', bankRecipient, { bic: 'ABNAZZ2A' }],
    ['the end of another account', ukRecipient, { last4: '6813' }],
    ['half an account and an IBAN', bankRecipient, { account_number }, ['sort_code']],
    ['no account', bankRecipient, { iban: null }, ['iban', 'sort_code', 'account_number']],
    [
      'many faults of an account',
      bankRecipient,
      { iban: TURKISH, last4: '0000', scheme: 'visa', sort_code: '1' },
      ['bic', 'last4', 'scheme', 'sort_code', 'account_number'],
    ],
  ])('with %s is refused by its fields, whose values are not quoted', async (...each) => {
    const [, build, changes, fields = Object.keys(changes)] = each;
    const before = await countStored();
    const answer = await createRecipient(build(changes));
    expectRefusal(answer, 'invalid_request', fields);
    for (const value of Object.values(changes).map(String)) {
      // A short text can be in the words of a refusal by chance.
      if (value.length > 4) expectNotQuoted(answer.text, value);
    }
    expect(await countStored()).toEqual(before);
  });

  test('that is deleted has no details any more, and a repeat says the same', async () => {
    const owner = await service.account();
    const post = () => owner.post(RECIPIENTS, cardRecipient(), { idempotencyKey: 'own' });
    const created = (await post()).body;
    const { id } = created;
    const remove = async () => (await owner.delete(`${RECIPIENTS}/${id}`)).body;
    const shown = { ...created, deleted: true };
    expect(await remove()).toEqual(shown);
    const stored = await service.stores.recipients.get(id);
    const redacted = { ciphertext: null, kid: null, has: [], card_expires: null };
    expect(stored).toMatchObject({ type: 'card', scheme: 'visa', last4: '1111', ...redacted });
    expect(await remove()).toEqual(shown);
    expect(await service.stores.recipients.get(id)).toEqual(stored);
    const { account_id } = owner;
    const log = await service.stores.auditLog.list({ account_id, livemode: false, limit: 10 });
    const actor = {
      ...{ via: 'api', key_id: expect.stringMatching(/^key_/) },
      ...{ address: expect.any(String), request_id: expect.any(String) },
    };
    const after = { deleted_at: stored?.deleted_at };
    expect(log).toMatchObject([{ act: 'recipient.deleted', target: id, actor, after }]);
    expect((await post()).body).toEqual(created);
  });

  test('that is deleted is not written again by a create that was interrupted', async () => {
    const { id } = (await createRecipient(cardRecipient(), 'recorded')).body;
    const records = service.collection('idempotency_records');
    const { type, scheme, last4, ciphertext, kid } = Object(
      await service.stores.recipients.get(id),
    );
    const recipient = { type, scheme, last4, ciphertext, kid, has: [], card_expires: null };
    const open = { request: { recipient }, body: null, status: null };
    await records.updateOne({ resource_id: id }, { $set: open });
    expect((await shop.delete(`${RECIPIENTS}/${id}`)).status).toBe(200);
    expect(await findRecord('recorded')).toMatchObject({ request: null });
    const again = (await createRecipient(cardRecipient(), 'recorded')).body;
    expect(again).toMatchObject({ id, deleted: true });
    expect(await service.stores.recipients.get(id)).toMatchObject({ ciphertext: null });
  });
});

// That none is stored or logged in plain text: test/leaks. Who decrypts them: test/encryption.
describe('the details of a recipient', () => {
  const last_name = 'Quillfeather';
  const CARD = cardRecipient({ last_name, card_number: '5555555555554444' });
  const SECRET = /Quillfeather|5555555555554444/;

  /** Opens a recipient as the connector of a payout to it would. */
  const decrypt = (id: string, by: Pick<Encrypter, 'decrypt'> = service.recipientDecrypter) => {
    const { recipients } = service.stores;
    const facts = { recipient_id: id, connector: 'sandbox', status: 'created' } as const;
    const payouts = { get: async () => storedPayout(shop, facts) };
    const deps = { payouts, recipients, encrypter: by, log: { info: () => undefined } };
    return createRecipientDecrypter({ ...deps, connector: 'sandbox' })(randomUUID());
  };

  /** Posts a body to an API of which one part fails, and which logs everything. */
  async function postWith(
    failing: 'encrypt' | 'insert' | 'reserveKey',
    body: object,
    idempotencyKey: string = randomUUID(),
  ): Promise<{ answer: Answer; log: string }> {
    const { recipientEncrypters, stores } = service;
    const fail = { [failing]: () => Promise.reject(new Error('unexpected')) };
    const sandbox = { ...recipientEncrypters.sandbox, ...fail };
    const recipients = { ...stores.recipients, ...fail };
    const idempotency = { ...stores.idempotency, ...fail };
    const parts = {
      recipientEncrypters: { ...recipientEncrypters, sandbox },
      stores: { ...stores, recipients, idempotency },
    };
    let answer: Answer | undefined;
    const log = await service.withApp(parts, async (url) => {
      const request = { key: shop.key, idempotencyKey, once: true, body };
      answer = await call(url, 'POST', RECIPIENTS, request);
    });
    if (answer === undefined) throw new Error('There is no answer.');
    expect(`${log}${answer.text}`).not.toMatch(SECRET);
    return { answer, log };
  }

  test('are encrypted in the record of a create that was interrupted, and a repeat completes it', async () => {
    const { answer, log } = await postWith('insert', CARD, 'interrupted');
    expectRefusal(answer, 'internal_error');
    expect(log).toContain('unexpected');
    const record = await findRecord('interrupted');
    expect(Object.keys(record?.['request'])).toEqual(['recipient']);
    expect(Object.keys(record?.['request'].recipient).sort()).toEqual([
      ...['card_expires', 'ciphertext', 'has', 'iban_in_sepa', 'kid', 'last4', 'scheme', 'type'],
    ]);
    expect(JSON.stringify(record)).not.toMatch(SECRET);
    const again = await createRecipient(CARD, 'interrupted');
    expect([again.status, again.body.id]).toEqual([201, record?.['resource_id']]);
    expect(await findRecord('interrupted')).toMatchObject({ request: null });
    expect(await decrypt(again.body.id)).toMatchObject({ last_name: 'Quillfeather' });
  });

  test.each([
    ['they cannot be encrypted', 'encrypt', 'temporarily_unavailable'],
    ['the record cannot be written', 'reserveKey', 'internal_error'],
  ] as const)('are not stored when %s', async (_, failing, code) => {
    const before = await countStored();
    const { answer, log } = await postWith(failing, CARD);
    expectRefusal(answer, code);
    expect(log).toContain('unexpected');
    expect(await countStored()).toEqual(before);
  });

  test('are not quoted when they are not as expected', async () => {
    const { id } = (await createRecipient(CARD)).body;
    for (const text of ['not JSON: Quillfeather', '{"last_name": "Quillfeather"}']) {
      const failing = decrypt(id, { decrypt: async () => text });
      const error: unknown = await failing.catch((cause: unknown) => cause);
      expect(error).toBeInstanceOf(Error);
      expect(Object(error).message).not.toContain('Quill');
      expect(error).not.toHaveProperty('cause');
    }
  });
});

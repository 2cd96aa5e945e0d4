import { assertWebhook } from '../support/contract';
import { buildAccount, buildPayment, buildPayout, buildRefund } from '../support/factories';
import { useHook } from '../support/hook';
import { type Answer, eventually, idealPayment } from '../support/http';
import { type Account, useAccount, useService } from '../support/service';
import { expectRefusal } from './refusal';

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

  test('is cancelled before the customer pays, also twice', async () => {
    const { id } = await buildPayment(shop);
    const cancelled = await cancel(id);
    expect(cancelled.status).toBe(200);
    expect(cancelled.body).toMatchObject({
      status: 'cancelled',
      failure: { code: 'cancelled_by_merchant', message: expect.any(String) },
      cancelled_at: expect.any(String),
    });
    expect((await cancel(id, {})).body).toEqual(cancelled.body);
  });

  test('is cancelled by a new workflow when its own was terminated, unless it is authorized', async () => {
    const { id } = await buildPayment(shop);
    await service.temporal.workflow.getHandle(`payment:${id}`).terminate('in a test');
    const cancelled = await cancel(id);
    expect([cancelled.status, cancelled.body.status]).toEqual([200, 'cancelled']);
    for (const status of ['authorized', 'settled'] as const) {
      const paid = await buildPayment(shop, { status });
      expectRefusal(await cancel(paid.id), 'cannot_cancel');
    }
  });

  test('shows its customer to the merchant, and stores it encrypted', async () => {
    const names = { first_name: 'Zebedee', last_name: 'Quillfeather' };
    const customer = { ...names, email: 'quillfeather@example.com', reference: 'c-77' };
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
        expect(each).toEqual({
          id: expect.stringMatching(/^evt_[0-9a-f]{8}-[0-9a-f-]{27}$/),
          type: expect.any(String),
          created: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
          livemode: false,
          data: kind === 'refund' ? { refund_id: id, payment_id } : { [`${kind}_id`]: id },
        });
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
    const { id } = await BUILDERS[kind](account);
    const before = await account.get(`/v1/${kind}s/${id}`);
    const refused = { event: 'failed', code: 'x'.repeat(101), reason: [], status: 5 };
    for (const [body, fields] of [
      [undefined, ['event']],
      [{ event: foreign }, ['event']],
      [refused, ['code', 'reason', 'status']],
    ] as const) {
      expectRefusal(await report(kind, id, body), 'invalid_request', fields);
    }
    expect((await account.get(`/v1/${kind}s/${id}`)).text).toBe(before.text);
    const fail = async (of: string, reason: object) =>
      (await report(kind, of, { event: 'failed', ...reason })).body.failure;
    const named = { code: 'x', message: 'Why.' };
    expect(await fail(id, { code: 'x', reason: 'Why.' })).toEqual(named);
    const other = (await BUILDERS[kind](account)).id;
    expect(await fail(other, { code: null })).toEqual({ code, message: expect.any(String) });
  });
});

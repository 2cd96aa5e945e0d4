import { clockWorkflowId } from '../../src/domain/account/clock';
import { verifyLedger } from '../../src/ledger-check/verify';
import { countFailedEvents, createRedeliveries } from '../../src/service/events/redeliveries';
import { reconcile } from '../../src/service/reconcile/reconcile';
import { openUser, openVisitor } from '../support/dashboard';
import { saveHistory } from '../support/histories';
import { useHook } from '../support/hook';
import { eventually, idealPayment } from '../support/http';
import { useService } from '../support/service';
import {
  advance,
  assertNoneBehind,
  between,
  DAY_MS,
  type Merchant,
  repeatIfBehind,
  SECOND_MS,
  standing,
} from './clock-setting';
import { openShop } from './payout-setting';
import { inOneDay } from './window';

const service = useService();
const hook = useHook(service);

const VOUCHER = idealPayment({
  ...{ method: 'multibanco', country: 'PT' },
  customer: { email: 'payer@example.com' },
});
const PAYOUT = { method: 'sepa_instant', amount: 1_000, currency: 'EUR' };

async function settled(merchant: Merchant, changes = {}) {
  const { body } = await merchant.post('/v1/payments', idealPayment(changes));
  const path = `/v1/sandbox/payments/${body.id}/simulate`;
  return (await merchant.post(path, { event: 'settled' })).body;
}

test(
  'what takes days happens in order, in this account alone',
  repeatIfBehind(async () => {
    const began = new Date();
    const shop = await openShop(service);
    const other = await service.account();
    const voucher = (await shop.post('/v1/payments', VOUCHER)).body;
    const otherVoucher = (await other.post('/v1/payments', VOUCHER)).body;
    const recipient_id = shop.recipients.sepa_instant;
    const first = (await shop.post('/v1/payouts', { ...PAYOUT, recipient_id })).body;
    const second = (await shop.post('/v1/payouts', { ...PAYOUT, recipient_id })).body;
    for (const { id } of [first, second]) {
      await shop.post(`/v1/sandbox/payouts/${id}/simulate`, { event: 'completed' });
    }
    const payment = await settled(shop);

    const sent = Date.now();
    await advance(shop, { advance: 'P4D' });
    const clock = service.temporal.workflow.getHandle(clockWorkflowId(shop.account_id));
    await saveHistory(clock, 'clock-advanced');
    const expired = (await shop.get(`/v1/payments/${voucher.id}`)).body;
    expect(expired.status).toBe('expired');
    const late = between(voucher.created_at, expired.updated_at) - 3 * DAY_MS;
    expect(late).toBeGreaterThanOrEqual(0);
    // It ends at a stop of the clock, not with the fourth day.
    expect(late).toBeLessThanOrEqual(Date.now() - sent);

    await advance(shop, { advance: 'P55DT1H' });
    const returned = { event: 'returned', code: 'AC04', reason: 'Account closed' };
    const day59 = await shop.post(`/v1/sandbox/payouts/${first.id}/simulate`, returned);
    expect(day59.body.status).toBe('returned');
    await advance(shop, { advance: 'P2D' });
    const day61 = await shop.post(`/v1/sandbox/payouts/${second.id}/simulate`, returned);
    expect(day61.body.status).toBe('completed');
    await eventually('the return needs an operator', async () => {
      return (await service.stores.payouts.get(second.id))?.attention === 'return_too_late';
    });

    const next = (await shop.post('/v1/payments', idealPayment())).body;
    expect(between(voucher.created_at, next.created_at)).toBeGreaterThan(61 * DAY_MS);
    await advance(shop, { to: new Date(Date.parse(next.created_at) + 2 * DAY_MS).toISOString() });
    expect((await shop.get(`/v1/payments/${next.id}`)).body.status).toBe('expired');

    await advance(shop, { advance: 'P300D' });
    const refund = await shop.post('/v1/refunds', { payment_id: payment.id });
    expect(refund.status).toBe(201);
    await advance(shop, { advance: 'P2D' });
    const refused = await shop.post('/v1/refunds', { payment_id: payment.id });
    expect(refused.body.error.code).toBe('refund_window_expired');

    expect((await other.get(`/v1/payments/${otherVoucher.id}`)).body.status).toBe(
      'awaiting_customer',
    );
    expect((await other.get('/v1/sandbox/clock')).body.offset_seconds).toBe(0);
    const { differences } = await verifyLedger(service.mongo, service.db.databaseName);
    expect(differences).toEqual([]);
    expect(await findDifferences(began)).toEqual([]);
  }),
);

/** Compares Temporal and MongoDB once the ended workflows are listed, and all deliveries are made. */
async function findDifferences(since: Date) {
  const { db, stores, temporal, queues } = service;
  const { lifecycle: lifecycleQueue, webhooks: webhookQueue } = queues;
  const deps = {
    ...{ db, stores, temporal, lifecycleQueue, webhookQueue, now: () => new Date() },
    progress: () => undefined,
    rebuilder: () => Promise.reject(new Error('Nothing is to be rebuilt.')),
  };
  const RESOURCES = 7;
  const { findings } = await eventually('all resources to be compared', async () => {
    const result = await reconcile(deps, { since, apply: false });
    return result.workflows >= RESOURCES && result;
  });
  return findings;
}

test(
  'all twelve attempts of a webhook are made by account time, each signed by the real one',
  repeatIfBehind(async () => {
    const shop = await service.account();
    await hook.register(shop, ['payment.settled']);
    hook.answer.status = 500;
    const { id } = await settled(shop);
    await eventually('the first attempt', async () => hook.about(id).length === 1);
    await advance(shop, { advance: 'P2D' });
    expect(hook.about(id)).toHaveLength(12);
    for (const { headers } of hook.about(id)) {
      const [, t] = /^t=(\d+),/.exec(String(headers['service-signature'])) ?? [];
      expect(Math.abs(Date.now() / SECOND_MS - Number(t))).toBeLessThan(300);
    }
    const [event] = await service.stores.events.list({
      ...{ account_id: shop.account_id, livemode: false, limit: 1 },
      type: 'payment.settled',
    });
    expect(event?.delivery).toMatchObject({ status: 'exhausted', attempts: 12 });
    expect(await countFailed(shop, hook.about(id)[0]?.body)).toBe(1);
    const attempts = await service.stores.deliveries.forEvent(event?._id ?? '');
    const span = between(attempts.at(-1)?.at ?? '', attempts[0]?.at ?? '');
    expect(span / DAY_MS).toBeCloseTo(1, 1);
  }),
);

/** Events that can be sent again, of those since the day of one. */
async function countFailed({ account_id }: { account_id: string }, body = '{}') {
  const { stores, temporal, queues } = service;
  const now = () => new Date();
  const redeliveries = createRedeliveries({
    ...{ stores, temporal, now },
    webhookQueue: queues.webhooks,
  });
  const [day = ''] = String(JSON.parse(body).created).split('T');
  const owner = { account_id, livemode: false };
  return await countFailedEvents({ redeliveries, stores, now }, owner, day);
}

test(
  'the overview and the statements of the dashboard have the days of the account',
  inOneDay(
    repeatIfBehind(async () => {
      const shop = await service.account();
      await advance(shop, { advance: 'P40D' });
      const { created_at } = await settled(shop);
      const owner = await openVisitor(service, await openUser(service.stores, shop.account_id));
      const { html } = await owner.get('/dashboard/sandbox/overview');
      expect(html).toContain('settled, 1 payment');
      expect(html).toContain('1 payment created today');
      const statement = await owner.get('/dashboard/sandbox/balances/statement');
      expect(statement.html).toContain(`value="${created_at.slice(0, 7)}"`);
    }),
  ),
);

test(
  'a refusal says why, and a key that is used again makes no second payment',
  repeatIfBehind(async () => {
    const shop = await service.account();
    const live = await service.account({ livemode: true });
    const refusals = [
      [live, { advance: 'P1D' }, 403, 'sandbox_only'],
      [live, {}, 403, 'sandbox_only'],
      [shop, { advance: 'P1M' }, 400, 'invalid_request'],
      [shop, { advance: 'P1Y' }, 400, 'invalid_request'],
      [shop, { advance: 'PT0S' }, 400, 'invalid_request'],
      [shop, { advance: 'P1101D' }, 400, 'invalid_request'],
      [shop, { to: '2020-01-01T00:00:00Z' }, 400, 'invalid_request'],
      [shop, { advance: 'P1D', to: '2030-01-01T00:00:00Z' }, 400, 'invalid_request'],
      [shop, {}, 400, 'invalid_request'],
    ] as const;
    for (const [merchant, body, status, code] of refusals) {
      const answer = await merchant.post('/v1/sandbox/clock', body, { idempotencyKey: null });
      expect({ body, status: answer.status, code: answer.body.error?.code }).toEqual({
        body,
        status,
        code,
      });
    }
    expect((await live.get('/v1/sandbox/clock')).body.error.code).toBe('sandbox_only');
    const more = { idempotencyKey: 'order-1' };
    const before = await shop.post('/v1/payments', idealPayment(), more);
    await advance(shop, { advance: 'PT30H' });
    const again = await shop.post('/v1/payments', idealPayment(), more);
    expect(again.body.id).toBe(before.body.id);
  }),
);

test(
  'while it advances, it is not moved again; a killed clock goes on',
  repeatIfBehind(async () => {
    // On a busy machine one may be 503, which leaves open what was done, or come when the other's
    // advance has ended: then with another merchant.
    const { shop, voucher, both } = await eventually('two answers', async () => {
      const shop = await service.account();
      const { body: voucher } = await shop.post('/v1/payments', VOUCHER);
      const more = { idempotencyKey: null, once: true };
      const post = () => shop.post('/v1/sandbox/clock', { advance: 'P10D' }, more);
      const both = await Promise.all([post(), post()]);
      const statuses = both.map(({ status }) => status);
      for (const status of statuses) expect([202, 409, 503]).toContain(status);
      return statuses.includes(409) && !statuses.includes(503) && { shop, voucher, both };
    });
    expect(both.map(({ status }) => status).sort()).toEqual([202, 409]);
    expect(both.find(({ status }) => status === 409)?.body.error.code).toBe('clock_advancing');
    await service.stopWorkers();
    await service.startWorkers();
    assertNoneBehind(await standing(shop));
    expect((await shop.get(`/v1/payments/${voucher.id}`)).body.status).toBe('expired');
    const { clock } = (await service.stores.accounts.get(shop.account_id)) ?? {};
    expect((clock?.offset_ms ?? 0) / DAY_MS).toBeCloseTo(10, 1);
    const handle = service.temporal.workflow.getHandle(clockWorkflowId(shop.account_id));
    expect((await handle.describe()).type).toBe('accountClock');
  }),
);

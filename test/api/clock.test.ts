import { clockWorkflowId } from '../../src/domain/merchants/clock';
import { verifyLedger } from '../../src/ledger-check/verify';
import { LIFECYCLES } from '../../src/lifecycles';
import { countFailedEvents, createRedeliveries } from '../../src/service/events/redeliveries';
import { reverseOperation } from '../../src/service/money/balances/act';
import { adjustBalance } from '../../src/service/money/balances/adjust';
import { actOn } from '../../src/service/operators/act';
import type { KeyDocument } from '../../src/store/keys';
import { operatorsAudit } from '../support/audit';
import { openUser, openVisitor } from '../support/dashboard';
import { eventually } from '../support/eventually';
import { buildPayment, buildPayout, fundAccount } from '../support/factories';
import { saveHistory } from '../support/histories';
import { useHook } from '../support/hook';
import { createClient, idealPayment } from '../support/http';
import { useService } from '../support/service';
import {
  advance,
  assertNoneBehind,
  between,
  DAY_MS,
  repeatIfBehind,
  SECOND_MS,
  untilStopped,
} from './clock-setting';
import { openShop } from './payout-setting';
import { expectRefusal } from './refusal';
import { inOneDay } from './window';

const service = useService();
const hook = useHook(service);

const VOUCHER = idealPayment({
  ...{ method: 'multibanco', country: 'PT' },
  customer: { email: 'payer@example.com' },
});
const RETURNED = { event: 'returned', code: 'AC04', reason: 'Account closed' };
const CORRECTION = { operator: 'mia', reason: 'Ticket 42' };
const PAYMENTS = '/v1/payments';
const PATH = '/v1/sandbox/clock';
/** `CLOCK_PAYMENTS=2000` prints what an advance past so many costs. */
const WAITING = Number(process.env['CLOCK_PAYMENTS'] ?? 25);
/** They expire an hour apart. */
const GROUPS = 5;
/** Creates at once, as a merchant's client makes them. */
const CREATES = 20;

const now = () => new Date();
/** Days from the real time. */
const daysAhead = (at: string | null | undefined) => (Date.parse(at ?? '') - Date.now()) / DAY_MS;
const openOperator = () => {
  const { mongo, stores } = service;
  return { mongo, stores, now, audit: operatorsAudit(stores) };
};

async function act(payment_id: string, what: { what: string; amount?: number }) {
  const { stores, temporal, queues } = service;
  const deps = { stores, temporal, lifecycleQueue: queues.lifecycle, timeoutMs: 180_000 };
  await actOn(deps, 'payment', payment_id, { ...what, ...CORRECTION });
}

test(
  'an advanced clock lets days pass in order, for its account alone',
  repeatIfBehind(async () => {
    const shop = await openShop(service);
    const other = await service.account();
    const { body: voucher } = await shop.post(PAYMENTS, VOUCHER);
    const { body: otherVoucher } = await other.post(PAYMENTS, VOUCHER);
    const first = await buildPayout(shop, { status: 'completed' });
    const second = await buildPayout(shop, { status: 'completed' });
    await hook.register(shop, ['payment.settled']);
    hook.answer.status = 500;
    const payment = await buildPayment(shop, { status: 'settled' });

    const sent = Date.now();
    await advance(shop, { advance: 'P4D' });
    const clock = service.temporal.workflow.getHandle(clockWorkflowId(shop.account_id));
    await saveHistory(clock, 'clock-advanced');
    const expired = (await shop.get(`${PAYMENTS}/${voucher.id}`)).body;
    expect(expired.status).toBe('expired');
    const late = between(voucher.created_at, expired.updated_at) - 3 * DAY_MS;
    expect(late).toBeGreaterThanOrEqual(0);
    // It expires at a stop of the clock, not at the end of the fourth day.
    expect(late).toBeLessThanOrEqual(Date.now() - sent);

    // Webhooks are attempted by the time of the account, and signed by the real time.
    expect(hook.about(payment.id)).toHaveLength(12);
    for (const { headers } of hook.about(payment.id)) {
      const [, t] = /^t=(\d+),/.exec(String(headers['service-signature'])) ?? [];
      expect(Math.abs(Date.now() / SECOND_MS - Number(t))).toBeLessThan(300);
    }
    const { stores, temporal, queues } = service;
    const redeliveries = createRedeliveries({
      ...{ stores, temporal, now, webhookQueue: queues.webhooks },
    });
    const owner = { account_id: shop.account_id, livemode: false };
    const day = String(payment.settled_at).slice(0, 10);
    expect(await countFailedEvents({ redeliveries, stores, now }, owner, day)).toBe(1);

    const reportReturn = async (id: string) => (await shop.simulate(id, RETURNED)).body.status;
    await advance(shop, { advance: 'P55DT1H' });
    expect(await reportReturn(first.id)).toBe('returned');
    await advance(shop, { advance: 'P2D' });
    expect(await reportReturn(second.id)).toBe('completed');
    await service.becomes('payouts', second.id, { attention: 'return_too_late' });

    const next = await buildPayment(shop);
    expect(between(voucher.created_at, next.created_at)).toBeGreaterThan(61 * DAY_MS);
    await advance(shop, { to: new Date(Date.parse(next.created_at) + 2 * DAY_MS).toISOString() });
    expect((await shop.get(`${PAYMENTS}/${next.id}`)).body.status).toBe('expired');

    const refund = async () => (await shop.post('/v1/refunds', { payment_id: payment.id })).body;
    await advance(shop, { advance: 'P300D' });
    expect((await refund()).status).toBe('processing');
    await advance(shop, { advance: 'P2D' });
    expect((await refund()).error.code).toBe('refund_window_expired');

    const elsewhere = await other.get(`${PAYMENTS}/${otherVoucher.id}`);
    expect(elsewhere.body.status).toBe('awaiting_customer');
    expect((await other.get(PATH)).body.offset_seconds).toBe(0);
    const book = `${shop.account_id}:sandbox:EUR`;
    const { differences } = await verifyLedger(service.mongo, service.database, { book });
    expect(differences).toEqual([]);
  }),
);

test(
  'resources, limits and the dashboard follow the time of the account, and keys, sessions and logs the real time',
  inOneDay(
    repeatIfBehind(async () => {
      const shop = await openShop(service);
      const { account_id } = shop;
      const { stores } = service;
      const createKeyed = async () =>
        (await shop.post(PAYMENTS, VOUCHER, { idempotencyKey: 'order-1' })).body.id;
      const keyed = await createKeyed();
      const expires_at = new Date(Date.now() + DAY_MS).toISOString();
      const keys = service.collection<KeyDocument>('api_keys');
      await keys.updateMany({ account_id }, { $set: { expires_at } });
      const visitor = await openVisitor(service, await openUser(stores, account_id));
      await stores.accounts.setLimit(account_id, 'payout_limits.EUR', 1_500);
      await shop.paid();
      expectRefusal(await shop.pay(), 'payout_limit_exceeded');
      await advance(shop, { advance: 'P40D' });
      expect(await createKeyed()).toBe(keyed);

      const { id: payment_id, created_at } = await buildPayment(shop, { status: 'settled' });
      const { html } = await visitor.get('/dashboard/sandbox/overview');
      for (const words of ['settled, 1 payment', '1 payment created today']) {
        expect(html).toContain(words);
      }
      const statement = await visitor.get('/dashboard/sandbox/balances/statement');
      expect(statement.html).toContain(`value="${created_at.slice(0, 7)}"`);
      await shop.post('/v1/refunds', { payment_id, amount: 50 });
      await act(payment_id, { what: 'claw_back', amount: 10 });
      const { id, recipient_id } = await buildPayout(shop, { status: 'completed' });
      expectRefusal(await shop.pay(), 'payout_limit_exceeded');
      await fundAccount(service, shop, { amount: 500 });
      const owner = { account_id, livemode: false, balance_account: 'main', currency: 'EUR' };
      const change = { ...owner, amount: -500, against: 'adjustments' } as const;
      await adjustBalance(openOperator(), change, CORRECTION);
      expect((await shop.delete(`/v1/payout-recipients/${recipient_id}`)).status).toBe(200);

      const { data } = (await shop.get('/v1/balance_transactions?limit=6')).body;
      const types = ['adjustment', 'funding', 'payout', 'chargeback', 'refund', 'payment'];
      expect(data.map(({ type }: { type: string }) => type)).toEqual(types);
      const [callback] = await stores.callbacks.forResource(id);
      const log = service.collection<{ at: string; act: string }>('audit_log');
      const readLog = async (name: string) => (await log.findOne({ account_id, act: name }))?.at;
      for (const [days, ...times] of [
        [
          40,
          ...data.flatMap((row: Record<string, string>) => [
            row['created_at'],
            row['available_on'],
          ]),
        ],
        [40, (await stores.payouts.get(id))?.completed_at, callback?.body.occurred_at],
        [40, (await stores.recipients.get(recipient_id))?.deleted_at],
        [
          0,
          callback?.received_at,
          await readLog('recipient.deleted'),
          await readLog('payment.act'),
        ],
      ] as const) {
        for (const at of times) expect(daysAhead(at)).toBeCloseTo(days, 1);
      }
    }),
  ),
);

test(
  'a report after an act on a dispute still needs an operator when the clock was advanced',
  repeatIfBehind(async () => {
    const account = await service.account();
    await advance(account, { advance: 'P10D' });
    const { id } = await buildPayment(account, { status: 'settled' });
    const report = (event: string) =>
      account.post(`/v1/sandbox/payments/${id}/simulate`, { event });
    const untilAttention = async (reason: string | null) =>
      await eventually(`attention ${reason}`, async () => {
        return (await service.stores.payments.get(id))?.attention === reason;
      });
    await report('dispute_opened');
    await act(id, { what: 'dispute_won' });
    await report('failed');
    await untilAttention('failed_after_settled');
    await act(id, { what: 'claw_back' });
    await untilAttention(null);
    await reverseOperation(openOperator(), `payment_clawed_back:${id}`, CORRECTION);
    await report('failed');
    await untilAttention('failed_after_settled');
  }),
);

test('an advance is refused in live, with a wrong request, and while too many resources are in progress', async () => {
  const account = await service.account();
  for (const [livemode, body, code] of [
    [true, {}, 'sandbox_only'],
    [false, {}, 'invalid_request'],
    [false, { advance: 'P1M' }, 'invalid_request'],
    [false, { advance: 'P1D', to: '2030-01-01T00:00:00Z' }, 'invalid_request'],
  ] as const) {
    const client = await service.withKey(account, livemode);
    expectRefusal(await client.post(PATH, body, { idempotencyKey: null }), code);
    for (const method of ['get', 'delete'] as const) {
      const answer = await client[method](PATH);
      expect(answer.body.error?.code).toBe(livemode ? code : undefined);
    }
  }
  const payments = {
    ...service.stores.payments,
    countInFlightOf: async (_: string, limit: number) => limit,
  };
  const stores = { ...service.stores, payments };
  await service.withApp({ stores }, async (url) => {
    const answer = await createClient(url, account.key).post(PATH, { advance: 'P1D' });
    expectRefusal(answer, 'clock_too_busy');
  });
});

test(
  'a clock that advances refuses another advance',
  repeatIfBehind(async () => {
    // On a busy machine one may be 503, which leaves open what was done, or come when the other
    // advance has ended: then with another merchant.
    const { shop, both } = await eventually('two answers', async () => {
      const shop = await service.account();
      await shop.post(PAYMENTS, VOUCHER);
      const more = { idempotencyKey: null, once: true };
      const post = () => shop.post(PATH, { advance: 'P10D' }, more);
      const both = await Promise.all([post(), post()]);
      const statuses = both.map(({ status }) => status);
      for (const status of statuses) expect([202, 409, 503]).toContain(status);
      return statuses.includes(409) && !statuses.includes(503) && { shop, both };
    });
    expect(both.map(({ status }) => status).sort()).toEqual([202, 409]);
    const refused = both.find(({ status }) => status === 409);
    expect(refused?.body.error.code).toBe('clock_advancing');
    expect(refused?.headers.get('Retry-After')).toBe('1');
    assertNoneBehind(await untilStopped(shop));
    const { clock } = (await service.stores.accounts.get(shop.account_id)) ?? {};
    expect((clock?.offset_ms ?? 0) / DAY_MS).toBeCloseTo(10, 1);
  }),
);

test('a clock that is stopped during an advance stands for all resources alike, and advances again', async () => {
  const { shop, id, stopped } = await eventually('a stop before the target', async () => {
    const shop = await service.account();
    const { id } = await buildPayment(shop, VOUCHER);
    await shop.post(PATH, { advance: 'P10D' }, { idempotencyKey: null });
    const { status, body: stopped } = await shop.delete(PATH);
    expect({ status, body: stopped }).toMatchObject({
      status: 200,
      body: { object: 'clock', state: 'standing', target: null },
    });
    return stopped.offset_seconds < DAY_MS / SECOND_MS && { shop, id, stopped };
  });
  const again = (await shop.delete(PATH)).body;
  expect({ ...again, now: '' }).toEqual({ ...stopped, now: '' });
  expect((await shop.get(`${PAYMENTS}/${id}`)).body.status).toBe('awaiting_customer');
  await advance(shop, { advance: 'P4D' });
  expect((await shop.get(`${PAYMENTS}/${id}`)).body.status).toBe('expired');
});

test('an advance sends each of many payments at most four updates, however many stops it has', async () => {
  const shop = await service.account();
  const ids: string[] = [];
  const advanceBy = async (by: string) => {
    const { status } = await shop.post(PATH, { advance: by }, { idempotencyKey: null });
    expect(status).toBe(202);
    return await untilStopped(shop, '', WAITING * SECOND_MS + 90_000);
  };
  const countUpdates = async () => {
    let count = 0;
    for (const id of ids) {
      const handle = service.temporal.workflow.getHandle(LIFECYCLES.payment.workflowId(id));
      const { events } = await handle.fetchHistory();
      for (const each of events ?? []) {
        if (each.workflowExecutionUpdateAcceptedEventAttributes) count += 1;
      }
    }
    return count;
  };
  const create = async () => (await shop.post(PAYMENTS, VOUCHER)).body.id;
  for (let group = 1; group <= GROUPS; group += 1) {
    for (let left = WAITING / GROUPS; left > 0; left -= CREATES) {
      const creates = Array.from({ length: Math.min(CREATES, left) }, create);
      ids.push(...(await Promise.all(creates)));
    }
    await advanceBy('PT1H');
  }
  const before = await countUpdates();
  const began = performance.now();
  const { behind } = await advanceBy('P4D');
  const seconds = (performance.now() - began) / SECOND_MS;
  const expired = { account_id: shop.account_id, status: 'expired' };
  expect(await service.collection('payments').countDocuments(expired)).toBe(WAITING);
  const updates = (await countUpdates()) - before;
  if (process.env['CLOCK_PAYMENTS'] !== undefined) {
    console.info({ payments: WAITING, updates, seconds, behind });
  }
  expect(updates / WAITING).toBeLessThanOrEqual(4);
}, 3_600_000);

import { adjustBalance } from '../../src/service/balances/adjust';
import { reverseOperation } from '../../src/service/balances/reverse';
import { actOn } from '../../src/service/operators/act';
import type { KeyDocument } from '../../src/store/keys';
import { operatorsAudit } from '../support/audit';
import { openUser, openVisitor } from '../support/dashboard';
import { eventually, settledPayment } from '../support/http';
import { useService } from '../support/service';
import { advance, DAY_MS, repeatIfBehind, SECOND_MS } from './clock-setting';
import { credit, openShop } from './payout-setting';
import { inOneDay } from './window';

const service = useService();

/** Longer than a test may take, and far from the ten days that a clock is ahead. */
const HOUR_MS = 3_600 * SECOND_MS;

const CORRECTION = { operator: 'mia', reason: 'Ticket 42' };

function operators() {
  const { mongo, stores } = service;
  return { mongo, stores, now: () => new Date(), audit: operatorsAudit(stores) };
}

async function act(payment_id: string, what: { what: string; amount?: number }) {
  const { stores, temporal, queues } = service;
  const deps = { stores, temporal, lifecycleQueue: queues.lifecycle, timeoutMs: 180_000 };
  await actOn(deps, 'payment', payment_id, { ...what, ...CORRECTION });
}

/** Ms from now to a time. */
const ahead = (at: string | undefined) => Date.parse(at ?? '') - Date.now();

test(
  'keys, sessions, the audit log and what a bank sends keep the real time',
  repeatIfBehind(async () => {
    const shop = await openShop(service);
    const { account_id } = shop;
    const expires_at = new Date(Date.now() + DAY_MS).toISOString();
    await service
      .collection<KeyDocument>('api_keys')
      .updateMany({ account_id }, { $set: { expires_at } });
    const owner = await openVisitor(service, await openUser(service.stores, account_id));
    await advance(shop, { advance: 'P10D' });

    expect((await shop.get('/v1/payments')).status).toBe(200);
    expect((await owner.get('/dashboard/sandbox/overview')).status).toBe(200);
    const { body: payout } = await shop.paid();
    await shop.post(`/v1/sandbox/payouts/${payout.id}/simulate`, { event: 'completed' });
    const stored = await service.stores.payouts.get(payout.id);
    expect(ahead(stored?.completed_at ?? '') / DAY_MS).toBeCloseTo(10, 1);
    const [callback] = await service.stores.callbacks.forResource(payout.id);
    expect(Math.abs(ahead(callback?.received_at))).toBeLessThan(HOUR_MS);
    expect(ahead(callback?.body.occurred_at) / DAY_MS).toBeCloseTo(10, 1);

    const { recipient_id } = payout;
    expect((await shop.delete(`/v1/payout-recipients/${recipient_id}`)).status).toBe(200);
    const recipient = await service.stores.recipients.get(recipient_id);
    expect(ahead(recipient?.deleted_at ?? '') / DAY_MS).toBeCloseTo(10, 1);
    const [line] = await service
      .collection<{ at: string; act: string; account_id: string }>('audit_log')
      .find({ account_id, act: 'recipient.deleted' })
      .toArray();
    expect(Math.abs(ahead(line?.at))).toBeLessThan(HOUR_MS);
  }),
);

test(
  'the daily limit of payouts and what is overdue follow the clock',
  inOneDay(
    repeatIfBehind(async () => {
      const shop = await openShop(service);
      await service.stores.accounts.setPayoutLimit(shop.account_id, 'EUR', 1_500);
      const { body: first } = await shop.paid();
      expect((await shop.pay()).body.error.code).toBe('payout_limit_exceeded');
      await advance(shop, { advance: 'P1D' });
      const { status, body: second } = await shop.pay();
      expect(status).toBe(201);
      expect((await shop.pay()).body.error.code).toBe('payout_limit_exceeded');
      await eventually('the first to be overdue', async () => {
        return (await service.stores.payouts.get(first.id))?.attention === 'not_completed';
      });
      expect((await service.stores.payouts.get(second.id))?.attention).toBeNull();
    }),
  ),
);

test(
  'the changes of a balance have the time of the account',
  repeatIfBehind(async () => {
    const shop = await openShop(service);
    const { account_id } = shop;
    await advance(shop, { advance: 'P10D' });
    const { id } = await settledPayment(service, shop.key);
    await shop.post('/v1/refunds', { payment_id: id, amount: 50 });
    await act(id, { what: 'claw_back', amount: 10 });
    await shop.paid();
    await credit(service, shop, { amount: 500 });
    const owner = { account_id, livemode: false, balance_account: 'main', currency: 'EUR' };
    const change = { ...owner, amount: -500, against: 'adjustments' } as const;
    await adjustBalance(operators(), change, CORRECTION);

    const { data } = (await shop.get('/v1/balance_transactions?limit=6')).body;
    const times = data.map(({ type, created_at, available_on }: Record<string, string>) => [
      type,
      created_at === available_on,
      Math.round((10 * ahead(created_at)) / DAY_MS) / 10,
    ]);
    const types = ['adjustment', 'funding', 'payout', 'chargeback', 'refund', 'payment'];
    expect(times).toEqual(types.map((type) => [type, true, 10]));
    const [line] = await service
      .collection<{ at: string; act: string; account_id: string }>('audit_log')
      .find({ account_id, act: 'payment.act' })
      .toArray();
    expect(Math.abs(ahead(line?.at))).toBeLessThan(HOUR_MS);
  }),
);

test(
  'a reason comes after an act on a dispute, although the clock was moved',
  repeatIfBehind(async () => {
    const account = await service.account();
    await advance(account, { advance: 'P10D' });
    const { id } = await settledPayment(service, account.key);
    const report = (event: string) =>
      account.post(`/v1/sandbox/payments/${id}/simulate`, { event });
    const { payments } = service.stores;
    const untilReason = (reason: string | null) =>
      eventually(`attention ${reason}`, async () => (await payments.get(id))?.attention === reason);
    await report('dispute_opened');
    await act(id, { what: 'dispute_won' });
    await report('failed');
    await untilReason('failed_after_settled');
    await act(id, { what: 'claw_back' });
    await untilReason(null);
    await reverseOperation(operators(), `payment_clawed_back:${id}`, CORRECTION);
    await report('failed');
    await untilReason('failed_after_settled');
  }),
);

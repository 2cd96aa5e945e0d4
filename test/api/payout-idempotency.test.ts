import type { IdempotencyRecord } from '../../src/store/idempotency';
import { readPayloads } from '../support/histories';
import { eventually } from '../support/http';
import { type Service, useService } from '../support/service';
import { credit, FUNDS, type Shop, useFreshShop, useShop } from './payout-setting';
import { expectRefusal } from './refusal';

const claimOf = ({ collection }: Service, { account_id }: Shop, key: string) =>
  collection<IdempotencyRecord>('idempotency').findOne({
    account_id,
    operation: 'createPayout',
    key,
  });

describe('a key', () => {
  const service = useService();
  const shop = useFreshShop(service);

  test('is not burnt by what only the reservation could refuse', async () => {
    const { balances } = service.stores.ledger;
    // What the check before it saw was money that is gone by then.
    const rich = [{ balance_account: 'sales', currency: 'EUR', available: 9_999, reserved: 0 }];
    const seen = jest.spyOn(service.stores.ledger, 'balances').mockResolvedValueOnce(rich);
    const sales = { metadata: { balance_account: 'sales' } };
    expectRefusal(await shop.pay(sales, 'raced'), 'balance_account_not_found');
    await credit(service, shop, { balance_account: 'sales', amount: 999 });
    seen.mockResolvedValueOnce(rich);
    expectRefusal(await shop.pay(sales, 'raced'), 'insufficient_balance');
    seen.mockRestore();
    expect(service.stores.ledger.balances).toBe(balances);
    expect([await claimOf(service, shop, 'raced'), await shop.count('payouts')]).toEqual([null, 0]);
    const less = await shop.pay({ ...sales, amount: 999 }, 'raced');
    expect([less.status, less.headers.get('Idempotent-Replayed')]).toEqual([201, null]);
    await shop.untilSent({ balance_account: 'sales' });
    expect(await shop.balance({ balance_account: 'sales' })).toEqual([0, 0]);
  });

  test('leaves ids, money and routing in Temporal, and nothing that the merchant wrote', async () => {
    await service.stores.accounts.setPayoutFee(shop.account_id, 'sepa_instant', 25);
    const words = { reference: 'Ada of Long Lane', metadata: { who: 'Ada of Long Lane' } };
    const { body } = await shop.pay(words);
    const { input, text } = await readPayloads(service.temporal, `payout:${body.id}`);
    expect(input).toEqual({
      payout_id: body.id,
      account_id: shop.account_id,
      livemode: false,
      amount: 1_000,
      fee: 25,
      currency: 'EUR',
      method: 'sepa_instant',
      recipient_id: shop.recipients.sepa_instant,
      balance_account: 'main',
      connector: service.connector,
      caller_waits: true,
      request_id: expect.any(String),
    });
    expect(text).toContain(shop.recipients.sepa_instant);
    for (const personal of ['Long Lane', 'Ada', 'Lovelace', 'DE89370400440532013000']) {
      expect(text).not.toContain(personal);
    }
  });
});

describe('while nobody works on payouts', () => {
  const service = useService({ worker: false });
  const shop = useShop(service);

  test('one is refused for good, no money moves later, and its key makes a new one', async () => {
    const late = await shop.pay({}, 'late', true);
    expectRefusal(late, 'temporarily_unavailable');
    expect(late.headers.get('Retry-After')).toBe('1');
    const first = await claimOf(service, shop, 'late');
    const workers = await service.startWorkers();
    try {
      const handle = service.temporal.workflow.getHandle(`payout:${first?.resource_id}`);
      expect(await handle.result()).toMatchObject({
        payout_id: first?.resource_id,
        status: 'refused',
        code: 'temporarily_unavailable',
      });
      expect(await claimOf(service, shop, 'late')).toBeNull();
      expect(await shop.balance()).toEqual([FUNDS.main, 0]);
      expect(await shop.count('payouts')).toBe(0);
      const next = await shop.pay({}, 'late');
      expect([next.status, next.headers.get('Idempotent-Replayed')]).toEqual([201, null]);
      expect(next.body.id).not.toBe(first?.resource_id);
      expectRefusal(await shop.get(`/v1/payouts/${first?.resource_id}`), 'payout_not_found');
      await shop.untilSent();
      expect(await shop.balance()).toEqual([FUNDS.main - 1_000, 0]);
    } finally {
      await workers.stop();
    }
  });

  test('a crowd of callers with one key are all told to come back, and then one is made', async () => {
    const crowd = () => Promise.all(Array.from({ length: 3 }, () => shop.pay({}, 'crowd', true)));
    for (const answer of await crowd()) expect([409, 503]).toContain(answer.status);
    const paid = await shop.count('payouts');
    const workers = await service.startWorkers();
    try {
      const made = await eventually('one that is taken', async () => {
        const answers = await crowd();
        return answers.every(({ status }) => status === 201) && answers;
      });
      expect(new Set(made.map(({ text }) => text)).size).toBe(1);
      expect(await shop.count('payouts')).toBe(paid + 1);
    } finally {
      await workers.stop();
    }
  });
});

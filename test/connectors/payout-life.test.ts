import type { OutboxRow } from '../../connectors/sandbox-bank/outbox';
import { FUNDS, openShop, type Shop } from '../api/payout-setting';
import { eventually } from '../support/http';
import { type Service, startService } from '../support/service';

/** The whole product, with a sandbox bank that plays by itself. */
let service: Service;
beforeAll(async () => {
  service = await startService({ autoplay: true });
});
afterAll(async () => {
  await service?.stop();
});

/** Waits until the bank has said all that it had to say; answers what became of each row. */
const saidOf = (resource_id: string): Promise<Pick<OutboxRow, 'name' | 'state'>[]> =>
  eventually('the bank has said everything', async () => {
    const outbox = service.mongo.db(`${service.database}_bank`).collection<OutboxRow>('outbox');
    const rows = await outbox.find({ resource_id }).sort({ 'body.occurred_at': 1 }).toArray();
    const done = rows.length > 0 && rows.every(({ done_at }) => done_at !== null);
    return done && rows.map(({ name, state }) => ({ name, state }));
  });

const eventsOf = async (shop: Shop, resource_id: string) => {
  const filter = { account_id: shop.account_id, livemode: false, resource_id, limit: 20 };
  const events = await service.stores.events.list(filter);
  return events.map(({ type }) => type.replace('payout.', '')).reverse();
};

const standsAt = (id: string, status: string) =>
  eventually(`the payout is ${status}`, async () => {
    const payout = await service.stores.payouts.get(id);
    return payout?.status === status && payout;
  });

async function recipient(id: string) {
  const found = await service.stores.recipients.get(id);
  if (found === null) throw new Error(`There is no recipient ${id}.`);
  return found;
}

describe('a payout in the sandbox', () => {
  it.concurrent.each([
    [1_000, ['submitted', 'sent', 'completed']],
    [66_622, ['submitted', 'sent', 'failed']],
    [66_625, ['submitted', 'sent', 'completed']],
    [66_626, ['submitted', 'sent', 'completed']],
    [66_627, ['submitted', 'sent', 'completed', 'returned']],
    [66_628, ['submitted', 'sent', 'returned']],
    [66_629, ['submitted', 'sent', 'completed', 'returned']],
  ])('of %i goes the way %j, each event once', async (amount, way) => {
    const shop = await openShop(service);
    const { id } = (await shop.pay({ amount })).body;
    const last = way.at(-1) ?? '';
    await standsAt(id, last);
    await saidOf(id);
    const unapplied = await eventually('every callback was taken in', async () => {
      const callbacks = await service.stores.callbacks.forResource(id);
      const moved = way.length - 2;
      const left = callbacks.filter((each) => each.unapplied !== null).length;
      return left === callbacks.length - moved && { left };
    });
    expect(unapplied.left).toBe(amount === 66_629 ? 2 : 0);
    expect(await eventsOf(shop, id)).toEqual(way);
    const kept = last === 'completed' ? FUNDS.main - amount : FUNDS.main;
    expect(await shop.balance()).toEqual([kept, 0]);
  });

  it.concurrent('to a card does not come back, whatever the bank says; operators see it', async () => {
    const shop = await openShop(service);
    const card = { method: 'card_payout', recipient_id: shop.recipients.card_payout };
    const { id } = (await shop.pay({ ...card, amount: 66_627 })).body;
    await eventually('it is marked', async () => {
      const payout = await service.stores.payouts.get(id);
      return payout?.attention === 'return_not_possible';
    });
    expect(await saidOf(id)).toHaveLength(2);
    expect((await standsAt(id, 'completed')).returned).toBeNull();
    expect(await eventsOf(shop, id)).toEqual(['submitted', 'sent', 'completed']);
  });

  it.concurrent('whose recipient cannot be opened waits, and goes on when it can be', async () => {
    const shop = await openShop(service);
    const { sepa_instant, card_payout } = shop.recipients;
    const [own, another] = [await recipient(sepa_instant), await recipient(card_payout)];
    const { recipients } = service.stores;
    await recipients.reseal(own._id, own.sealed, another.sealed, own.kid);
    const { body } = await shop.pay();
    expect(body.status).toBe('created');
    expect(await service.bank.activities.lookUpPayout({ payout_id: body.id })).toEqual({
      outcome: 'not_found',
    });
    await recipients.reseal(own._id, another.sealed, own.sealed, own.kid);
    await standsAt(body.id, 'completed');
    expect(await eventsOf(shop, body.id)).toEqual(['submitted', 'sent', 'completed']);
  });
});

describe('after a simulation', () => {
  it.concurrent.each(['failed', 'returned'])(
    'a payout that is %s hears nothing more',
    async (event) => {
      const shop = await openShop(service);
      const { id } = (await shop.pay()).body;
      const { body } = await shop.simulate(id, { event });
      expect(body.status).toBe(event);
      expect(await saidOf(id)).toEqual([{ name: 'completed', state: 'dropped' }]);
      expect(await service.stores.callbacks.forResource(id)).toHaveLength(1);
      expect((await service.stores.payouts.get(id))?.attention).toBeNull();
      expect(await shop.balance()).toEqual([FUNDS.main, 0]);
    },
  );
});

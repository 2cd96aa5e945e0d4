import type { OutboxRow } from '../../connectors/sandbox/outbox';
import { FUNDS, openShop, type Shop } from '../api/payout-setting';
import { expectRefusal } from '../api/refusal';
import { useFixture } from '../support/fixture';
import { call, eventually } from '../support/http';
import { startService } from '../support/service';

/** The whole product, with a sandbox bank that plays by itself and has the sandbox's ring alone. */
const service = useFixture(
  () => startService({ autoplay: true }),
  ({ stop }) => stop(),
);

/** Waits until the bank has said all that it had to say; answers what became of each row. */
/** Reports of the bank by itself; it repeats simulated ones, should the service not have them. */
const saidOf = (resource_id: string): Promise<Pick<OutboxRow, 'name' | 'state'>[]> =>
  eventually('the bank has said everything', async () => {
    const outbox = service.mongo
      .db(`${service.database}_sandbox_bank`)
      .collection<OutboxRow>('outbox');
    const own = { resource_id, _id: { $not: /^simulated_/ } };
    const rows = await outbox.find(own).sort({ 'body.occurred_at': 1 }).toArray();
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
  if (!found?.sealed || !found.kid) throw new Error(`There is no recipient ${id}.`);
  return { id, sealed: found.sealed, kid: found.kid };
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
    await recipients.reencrypt(own.id, own.sealed, another.sealed, own.kid);
    const { body } = await shop.pay();
    expect(body.status).toBe('created');
    expect(await service.bank.activities.lookUpPayout({ payout_id: body.id })).toEqual({
      outcome: 'not_found',
    });
    await recipients.reencrypt(own.id, another.sealed, own.sealed, own.kid);
    await standsAt(body.id, 'completed');
    expect(await eventsOf(shop, body.id)).toEqual(['submitted', 'sent', 'completed']);
  });
});

describe('a recipient that is deleted', () => {
  it.concurrent('before the bank was told: the payout fails, and the money is back', async () => {
    const shop = await openShop(service);
    const { sepa_instant, card_payout } = shop.recipients;
    const [own, another] = [await recipient(sepa_instant), await recipient(card_payout)];
    const { recipients } = service.stores;
    await recipients.reencrypt(own.id, own.sealed, another.sealed, own.kid);
    const { id } = (await shop.pay()).body;
    const path = `/v1/payout-recipients/${sepa_instant}`;
    const gone = await call(service.url, 'DELETE', path, { key: shop.key });
    expect([gone.status, gone.body.deleted]).toEqual([200, true]);
    const { failure } = await standsAt(id, 'failed');
    expect(failure).toMatchObject({ code: 'recipient_deleted' });
    expect(await shop.balance()).toEqual([FUNDS.main, 0]);
    expectRefusal(await shop.pay(), 'recipient_deleted');
  });

  it.concurrent('while payouts to it are made: each is sent, failed or refused', async () => {
    const shop = await openShop(service);
    const path = `/v1/payout-recipients/${shop.recipients.sepa_instant}`;
    const deletion = () => call(service.url, 'DELETE', path, { key: shop.key });
    const asked = Array.from({ length: 8 }, (_, index) =>
      index === 3 ? deletion() : shop.pay({ amount: 1_000 + index }),
    );
    const answers = await Promise.all(asked);
    const made = answers.filter(({ status }) => status === 201).map(({ body }) => body.id);
    const refused = answers.filter(({ status }) => status === 422);
    for (const answer of refused) expectRefusal(answer, 'recipient_deleted');
    expect(made.length + refused.length).toBe(7);
    const ended = await Promise.all(
      made.map((id) =>
        eventually('it has ended', async () => {
          const payout = await service.stores.payouts.get(id);
          const isOver = payout?.status === 'completed' || payout?.status === 'failed';
          return isOver && payout;
        }),
      ),
    );
    const sent = ended.filter(({ status }) => status === 'completed');
    for (const { status, failure } of ended) {
      expect(failure?.code).toBe(status === 'failed' ? 'recipient_deleted' : undefined);
    }
    const paid = sent.reduce((sum, { amount }) => sum + amount, 0);
    expect(await shop.balance()).toEqual([FUNDS.main - paid, 0]);
  });
});

describe('after a simulation', () => {
  it.concurrent.each(['failed', 'returned'])(
    'a payout that is %s hears nothing more',
    async (event) => {
      // A busy machine may be later than the bank, which plays by itself in three seconds.
      const { shop, id } = await eventually(`one that is ${event} before it plays`, async () => {
        const shop = await openShop(service);
        const { id } = (await shop.pay()).body;
        const { body } = await shop.simulate(id, { event });
        const [said] = await saidOf(id);
        return body.status === event && said?.state !== 'sent' && { shop, id };
      });
      expect(await saidOf(id)).toEqual([{ name: 'completed', state: 'dropped' }]);
      expect(await service.stores.callbacks.forResource(id)).toHaveLength(1);
      expect((await service.stores.payouts.get(id))?.attention).toBeNull();
      expect(await shop.balance()).toEqual([FUNDS.main, 0]);
    },
  );
});

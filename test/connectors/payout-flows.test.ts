import { FUNDS, openShop, type Shop } from '../api/payout-setting';
import { expectRefusal } from '../api/refusal';
import { useFixture } from '../support/fixture';
import { eventually } from '../support/http';
import { startService } from '../support/service';

// A product of its own: its sandbox bank plays by itself.
const service = useFixture(
  () => startService({ autoplay: true }),
  ({ stop }) => stop(),
);

/** Waits until the bank has reported all; returns its own reports, without simulated ones. */
const readReports = (resource_id: string) =>
  eventually('the end of the bank’s reports', async () => {
    const outbox = service.mongo
      .db(`${service.database}_sandbox_bank`)
      .collection<{ _id: string; name: string; state: string; done_at: Date | null }>('outbox');
    const own = { resource_id, _id: { $not: /^simulated_/ } };
    const rows = await outbox.find(own).sort({ 'body.occurred_at': 1 }).toArray();
    const isDone = rows.length > 0 && rows.every(({ done_at }) => done_at !== null);
    return isDone && rows.map(({ name, state }) => ({ name, state }));
  });

/** Waits until a payout has one of these statuses. */
const untilStatus = (id: string, ...statuses: string[]) =>
  eventually(`a payout that is ${statuses}`, async () => {
    const payout = await service.stores.payouts.get(id);
    return payout !== null && statuses.includes(payout.status) && payout;
  });

/** Makes the shop's recipient unreadable. @returns function that makes it readable again */
async function breakRecipient({ recipients }: Shop): Promise<() => Promise<unknown>> {
  const read = async (id: string) => {
    const { sealed: ciphertext, kid } = (await service.stores.recipients.get(id)) ?? {};
    if (!ciphertext || !kid) throw new Error(`There is no recipient ${id}.`);
    return { ciphertext, kid };
  };
  const id = recipients.sepa_instant;
  const [own, another] = [await read(id), await read(recipients.card_payout)];
  const { reencrypt } = service.stores.recipients;
  await reencrypt(id, own.ciphertext, another.ciphertext, own.kid);
  return () => reencrypt(id, another.ciphertext, own.ciphertext, own.kid);
}

describe('a payout in the sandbox', () => {
  it.concurrent.each([
    [1_000, ['payout.submitted', 'payout.sent', 'payout.completed'], 0],
    [66_622, ['payout.submitted', 'payout.sent', 'payout.failed'], 0],
    [66_625, ['payout.submitted', 'payout.sent', 'payout.completed'], 0],
    [66_626, ['payout.submitted', 'payout.sent', 'payout.completed'], 0],
    [66_627, ['payout.submitted', 'payout.sent', 'payout.completed', 'payout.returned'], 0],
    [66_628, ['payout.submitted', 'payout.sent', 'payout.returned'], 0],
    [66_629, ['payout.submitted', 'payout.sent', 'payout.completed', 'payout.returned'], 2],
  ])('of %i has the events %j, each once', async (amount, events, unapplied) => {
    const shop = await openShop(service);
    const { id } = (await shop.pay({ amount })).body;
    const last = String(events.at(-1)).replace('payout.', '');
    await untilStatus(id, last);
    await readReports(id);
    await eventually('every report to be applied or ignored', async () => {
      const callbacks = await service.stores.callbacks.forResource(id);
      const ignored = callbacks.filter((each) => each.unapplied !== null);
      return ignored.length === unapplied && callbacks.length === events.length - 2 + unapplied;
    });
    expect(await shop.events(id)).toEqual(events);
    const available = last === 'completed' ? FUNDS.main - amount : FUNDS.main;
    expect(await shop.balance()).toEqual([available, 0]);
  });

  it.concurrent('to a card cannot come back, and operators see a bank that says so', async () => {
    const shop = await openShop(service);
    const card = { method: 'card_payout', recipient_id: shop.recipients.card_payout };
    const { id } = (await shop.pay({ ...card, amount: 66_627 })).body;
    await service.becomes('payouts', id, { attention: 'return_not_possible' });
    expect(await readReports(id)).toHaveLength(2);
    expect((await untilStatus(id, 'completed')).returned).toBeNull();
    const events = ['payout.submitted', 'payout.sent', 'payout.completed'];
    expect(await shop.events(id)).toEqual(events);
  });

  it.concurrent('waits while its recipient cannot be decrypted', async () => {
    const shop = await openShop(service);
    const repair = await breakRecipient(shop);
    const { id, status } = (await shop.pay()).body;
    expect(status).toBe('created');
    const answer = await service.bank.activities.lookUpPayout({ payout_id: id });
    expect(answer).toEqual({ outcome: 'not_found' });
    await repair();
    await untilStatus(id, 'completed');
    const events = ['payout.submitted', 'payout.sent', 'payout.completed'];
    expect(await shop.events(id)).toEqual(events);
  });

  it.concurrent.each(['failed', 'returned'])(
    'that a simulation has %s ignores what the bank planned',
    async (event) => {
      // A busy machine may be later than the bank, which plays by itself in three seconds.
      const { shop, id } = await eventually(`one that is ${event} before it plays`, async () => {
        const shop = await openShop(service);
        const { id } = (await shop.pay()).body;
        const { body } = await shop.simulate(id, { event });
        const [first] = await readReports(id);
        return body.status === event && first?.state !== 'sent' && { shop, id };
      });
      expect(await readReports(id)).toEqual([{ name: 'completed', state: 'dropped' }]);
      expect(await service.stores.callbacks.forResource(id)).toHaveLength(1);
      expect((await service.stores.payouts.get(id))?.attention).toBeNull();
      expect(await shop.balance()).toEqual([FUNDS.main, 0]);
    },
  );
});

describe('a recipient that is deleted', () => {
  const remove = ({ recipients, delete: send }: Shop) =>
    send(`/v1/payout-recipients/${recipients.sepa_instant}`);

  it.concurrent('before the bank has the payout fails it, and releases the money', async () => {
    const shop = await openShop(service);
    await breakRecipient(shop);
    const { id } = (await shop.pay()).body;
    const { status, body } = await remove(shop);
    expect([status, body.deleted]).toEqual([200, true]);
    const { failure } = await untilStatus(id, 'failed');
    expect(failure).toMatchObject({ code: 'recipient_deleted' });
    expect(await shop.balance()).toEqual([FUNDS.main, 0]);
    expectRefusal(await shop.pay(), 'recipient_deleted');
  });

  it.concurrent('during seven creates leaves each payout sent, failed or refused', async () => {
    const shop = await openShop(service);
    const answers = await Promise.all(
      Array.from({ length: 8 }, (_, index) =>
        index === 3 ? remove(shop) : shop.pay({ amount: 1_000 + index }),
      ),
    );
    const created = answers.filter(({ status }) => status === 201);
    const refused = answers.filter(({ status }) => status === 422);
    for (const answer of refused) expectRefusal(answer, 'recipient_deleted');
    expect(created.length + refused.length).toBe(7);
    const ended = await Promise.all(
      created.map(({ body }) => untilStatus(body.id, 'completed', 'failed')),
    );
    for (const { status, failure } of ended) {
      expect(failure?.code).toBe(status === 'failed' ? 'recipient_deleted' : undefined);
    }
    const paid = ended.filter(({ status }) => status === 'completed');
    const total = paid.reduce((sum, { amount }) => sum + amount, 0);
    expect(await shop.balance()).toEqual([FUNDS.main - total, 0]);
  });
});

import { Client, Connection } from '@temporalio/client';
import type { OutboxRow } from '../../connectors/sandbox/outbox';
import { eventually } from '../support/http';
import { until } from './bank-world';
import { useInstructed } from './instructed';

const { world, instructed } = useInstructed();

describe('a row', () => {
  it.concurrent.each([
    ['refund', 'settled', 'accepted'],
    ['refund', 'failed', 'accepted'],
    ['payout', 'completed', 'sent'],
    ['payout', 'failed', 'sent'],
    ['payout', 'returned', 'sent'],
    ['payout', 'returned', 'completed'],
  ] as const)(
    'of a %s moves the book to %s from %s, and is told',
    async (resource, becomes, status) => {
      const row = instructed[resource];
      const id = await row.takeSilent();
      await row.setStatus(id, status);
      await row.plant(id, { name: becomes, becomes });
      expect((await world.doneRow(id))?.state).toBe('sent');
      expect(await row.statusOf(id)).toBe(becomes);
      expect(await row.signals(id)).toEqual([becomes]);
    },
  );

  it.concurrent.each([
    ['refund', 'settled'],
    ['payout', 'completed'],
    ['payout', 'returned'],
  ] as const)(
    'of a %s is told where the book says %s already, as by a sender that was killed',
    async (resource, status) => {
      const row = instructed[resource];
      const id = await row.takeSilent();
      await row.setStatus(id, status);
      await row.plant(id);
      expect((await world.doneRow(id))?.state).toBe('sent');
      expect(await row.statusOf(id)).toBe(status);
      expect(await row.signals(id)).toEqual([row.done]);
    },
  );

  it.concurrent.each([
    ['refund', 'settled', 'failed'],
    ['refund', 'failed', 'settled'],
    ['refund', 'settled', 'refused'],
    ['refund', 'settled', 'lost'],
    ['payout', 'completed', 'failed'],
    ['payout', 'completed', 'submitted'],
    ['payout', 'completed', 'refused'],
    ['payout', 'failed', 'completed'],
    ['payout', 'failed', 'returned'],
    ['payout', 'returned', 'failed'],
    ['payout', 'returned', 'lost'],
  ] as const)(
    'of a %s is dropped when it says %s of one that is %s',
    async (resource, becomes, status) => {
      const row = instructed[resource];
      const id = await row.takeSilent();
      await row.setStatus(id, status);
      await row.plant(id, { name: becomes, becomes });
      expect((await world.doneRow(id))?.state).toBe('dropped');
      expect(await row.statusOf(id)).toBe(status);
      expect([await world.callbacks(id), await row.signals(id)]).toEqual([[], []]);
    },
  );
});

describe.each(Object.values(instructed))('a row of a $resource', (row) => {
  const { done, plant, statusOf, told, signals, takeSilent } = row;

  it('is dropped where the book has none', async () => {
    const { id } = await row.know();
    await plant(id);
    expect((await world.doneRow(id))?.state).toBe('dropped');
    expect(await world.callbacks(id)).toEqual([]);
  });

  it('is parked where the product does not know it', async () => {
    const id = await takeSilent();
    await row.productForgets(id);
    await plant(id);
    expect((await world.doneRow(id))?.state).toBe('parked');
    expect(await signals(id)).toEqual([]);
  });

  it('stays when a payment of the same id is voided', async () => {
    const { id, url } = await world.openFor({ amount: 66_603 });
    await world.approve(url);
    await plant(id, { due_at: new Date(Date.now() + 3_600_000) });
    const { activities } = world.server.bank;
    await activities.voidPayment({ payment_id: id, instruction_id: `void:${id}` });
    const { resource } = row;
    const planted = await world.outbox.findOne({ resource_id: id, resource });
    expect(planted?.state).toBe('pending');
  });

  it('is sent again when a killed sender had taken it, and counts once', async () => {
    const id = await takeSilent();
    await plant(id);
    const sent = await world.doneRow(id);
    const again = { state: 'pending', done_at: null, due_at: new Date() } as const;
    await world.outbox.updateOne({ _id: sent?._id ?? '' }, { $set: again });
    const { state, attempts } = (await world.doneRow(id)) ?? {};
    expect(state).toBe('sent');
    expect(attempts).toBeGreaterThanOrEqual(2);
    expect(await world.callbacks(id)).toHaveLength(1);
    expect(await signals(id)).toEqual([done]);
  });

  it('is kept while Temporal is away; after a restart all are told in their order', async () => {
    const connection = Connection.lazy({ address: '127.0.0.1:1' });
    await world.server.restart({ temporal: new Client({ connection }) });
    const id = await takeSilent();
    const ago = (ms: number) => new Date(Date.now() - ms);
    const rowAt = (at: Date) => {
      const body = bodyAt(at);
      return { _id: body.callback_id, due_at: at, body };
    };
    const [first, second, third] = [rowAt(ago(300)), rowAt(ago(200)), rowAt(ago(100))];
    await plant(id, first);
    const [failed] = await until(
      () => world.rows(id),
      ([row]) => row?.last_error != null,
    );
    expect([failed?.state, await statusOf(id)]).toEqual(['pending', done]);
    await world.server.bank.stop();
    await world.outbox.updateOne({ _id: first._id }, { $set: { due_at: first.due_at } });
    const last = row.resource === 'payout' ? 'returned' : 'settled';
    await plant(id, { ...third, name: last, becomes: last });
    await plant(id, { ...second, name: 'failed' });
    await world.server.restart();
    expect(await told(id)).toEqual([done, 'failed', last]);
    const ids = (await world.callbacks(id)).map(({ body }) => body.callback_id);
    expect(ids[0]).toBe(first._id);
    await connection.close();
  });

  it.concurrent('is told to the end when the inbox has kept it: it may be what moved it', async () => {
    const { id, send } = await row.know();
    await send();
    expect(await told(id)).toEqual([done]);
    await row.productSays(id, done);
    const again = { state: 'pending', done_at: null, due_at: new Date() } as const;
    await world.outbox.updateOne({ resource_id: id }, { $set: again });
    const { state, attempts } = (await world.doneRow(id)) ?? {};
    expect(state).toBe('sent');
    expect(attempts).toBeGreaterThanOrEqual(2);
    expect(await world.callbacks(id)).toHaveLength(1);
    expect(await signals(id)).toEqual([done]);
  });
});

let bodies = 0;
function bodyAt(at: Date): OutboxRow['body'] {
  bodies += 1;
  return { callback_id: `cb_of_the_test_${bodies}`, occurred_at: at.toISOString() };
}

describe('after a simulation, what comes by itself', () => {
  it.concurrent.each([
    ['refund', 'settled'],
    ['refund', 'failed'],
    ['payout', 'completed'],
    ['payout', 'failed'],
    ['payout', 'returned'],
  ] as const)('is dropped where the %s is %s by now; the book stays', async (resource, status) => {
    const row = instructed[resource];
    const id = await eventually('a simulation before the bank plays', async () => {
      const { id, send } = await row.know();
      await send();
      await row.productSays(id, status);
      const [planned] = await world.rows(id);
      return planned?.attempts === 0 && id;
    });
    expect((await world.doneRow(id))?.state).toBe('dropped');
    expect(await row.statusOf(id)).toBe(row.taken);
    expect([await world.callbacks(id), await row.signals(id)]).toEqual([[], []]);
  });

  it.concurrent.each(['created', 'submitted'])(
    'is told where the payout is %s still',
    async (status) => {
      const { id, send } = await instructed.payout.know();
      await send();
      await instructed.payout.productSays(id, status);
      expect(await instructed.payout.told(id)).toEqual(['completed']);
    },
  );

  it.concurrent.each([
    ['refund', 66_612, 'settled', 'failed'],
    ['payout', 66_628, 'completed', 'returned'],
  ] as const)(
    'gives way, but what a magic amount of a %s plans does not',
    async (resource, amount, status, planned) => {
      const row = instructed[resource];
      const { id, send } = await row.know(amount);
      await send();
      await row.productSays(id, status);
      expect(await row.told(id)).toEqual([planned]);
    },
  );
});

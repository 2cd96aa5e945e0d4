import { Client, Connection } from '@temporalio/client';
import { eventually } from '../support/http';
import { useInstructed } from './instructed';

/** Reports of the sandbox bank about refunds and payouts, which its outbox sends. */
const { world, instructed } = useInstructed();

describe('a row', () => {
  const SENT = 'sent';
  const DROPPED = 'dropped';

  it.concurrent.each([
    ['refund', 'settled', 'accepted', SENT],
    ['refund', 'failed', 'accepted', SENT],
    ['payout', 'completed', 'sent', SENT],
    ['payout', 'failed', 'sent', SENT],
    ['payout', 'returned', 'sent', SENT],
    ['payout', 'returned', 'completed', SENT],
    // The book says so already, as a sender leaves it that was killed.
    ['refund', 'settled', 'settled', SENT],
    ['payout', 'completed', 'completed', SENT],
    ['payout', 'completed', 'returned', SENT],
    ['refund', 'settled', 'failed', DROPPED],
    ['refund', 'failed', 'settled', DROPPED],
    ['refund', 'settled', 'refused', DROPPED],
    ['refund', 'settled', 'lost', DROPPED],
    ['payout', 'completed', 'failed', DROPPED],
    ['payout', 'completed', 'submitted', DROPPED],
    ['payout', 'completed', 'refused', DROPPED],
    ['payout', 'failed', 'completed', DROPPED],
    ['payout', 'failed', 'returned', DROPPED],
    ['payout', 'returned', 'failed', DROPPED],
    ['payout', 'returned', 'lost', DROPPED],
  ] as const)(
    'that says a %s becomes %s from %s is %s',
    async (resource, becomes, status, state) => {
      const row = instructed[resource];
      const id = await row.takeSilent();
      await row.setStatus(id, status);
      await row.plant(id, { name: becomes, becomes });
      expect((await world.readDoneRow(id))?.state).toBe(state);
      const isSent = state === SENT;
      const isLater = status === 'returned' && becomes === 'completed';
      expect(await row.readStatus(id)).toBe(isSent && !isLater ? becomes : status);
      expect(await row.signals(id)).toEqual(isSent ? [becomes] : []);
      expect(await world.callbacks(id)).toHaveLength(isSent ? 1 : 0);
    },
  );
});

describe.each(Object.values(instructed))('a row of a $resource', (row) => {
  const { done, plant, readStatus, readSentSignals, signals, takeSilent } = row;
  const AGAIN = { state: 'pending', done_at: null, due_at: new Date() } as const;

  it('is dropped when the book has none', async () => {
    const { id } = await row.know();
    await plant(id);
    expect((await world.readDoneRow(id))?.state).toBe('dropped');
    expect(await world.callbacks(id)).toEqual([]);
  });

  it('is parked when the product does not know it', async () => {
    const id = await takeSilent();
    await row.productLoses(id);
    await plant(id);
    expect((await world.readDoneRow(id))?.state).toBe('parked');
    expect(await signals(id)).toEqual([]);
  });

  it('stays when a payment with the same id is voided', async () => {
    const { id, url } = await world.openFor({ amount: 66_603 });
    await world.approve(url);
    await plant(id, { due_at: new Date(Date.now() + 3_600_000) });
    const { activities } = world.server.bank;
    await activities.voidPayment({ payment_id: id, instruction_id: `void:${id}` });
    const { resource } = row;
    const planted = await world.outbox.findOne({ resource_id: id, resource });
    expect(planted?.state).toBe('pending');
  });

  it('is sent again after a sender was killed before it noted that, and counts once', async () => {
    const id = await takeSilent();
    await plant(id);
    await world.readDoneRow(id);
    await world.outbox.updateOne({ resource_id: id }, { $set: AGAIN });
    const { state, attempts } = (await world.readDoneRow(id)) ?? {};
    expect(state).toBe('sent');
    expect(attempts).toBeGreaterThanOrEqual(2);
    expect(await world.callbacks(id)).toHaveLength(1);
    expect(await signals(id)).toEqual([done]);
  });

  it('waits while Temporal is away, and is sent in its order after a restart', async () => {
    const connection = Connection.lazy({ address: '127.0.0.1:1' });
    await world.server.restart({ temporal: new Client({ connection }) });
    const id = await takeSilent();
    const now = Date.now();
    const buildRow = (ago_ms: number) => {
      const at = new Date(now - ago_ms);
      const callback_id = `cb_of_the_test_${id}_${ago_ms}`;
      const body = { callback_id, occurred_at: at.toISOString() };
      return { _id: callback_id, due_at: at, body };
    };
    const [first, second, third] = [buildRow(300), buildRow(200), buildRow(100)];
    await plant(id, first);
    const [failed] = await world.untilRows(id, ([each]) => each?.last_error != null);
    expect([failed?.state, await readStatus(id)]).toEqual(['pending', done]);
    await world.server.bank.stop();
    await world.outbox.updateOne({ _id: first._id }, { $set: { due_at: first.due_at } });
    const last = row.resource === 'payout' ? 'returned' : 'settled';
    await plant(id, { ...third, name: last, becomes: last });
    await plant(id, { ...second, name: 'failed' });
    await world.server.restart();
    expect(await readSentSignals(id)).toEqual([done, 'failed', last]);
    expect((await world.callbacks(id))[0]?.body.callback_id).toBe(first._id);
    await connection.close();
  });

  it('is sent again if the product has it, since the product’s status may be its effect', async () => {
    const { id, send } = await row.know();
    await send();
    expect(await readSentSignals(id)).toEqual([done]);
    await row.productSays(id, done);
    await world.outbox.updateOne({ resource_id: id }, { $set: AGAIN });
    const { state, attempts } = (await world.readDoneRow(id)) ?? {};
    expect(state).toBe('sent');
    expect(attempts).toBeGreaterThanOrEqual(2);
    expect(await world.callbacks(id)).toHaveLength(1);
    expect(await signals(id)).toEqual([done]);
  });
});

describe('after a simulation', () => {
  it.concurrent.each([
    ['refund', 'settled'],
    ['refund', 'failed'],
    ['payout', 'completed'],
    ['payout', 'failed'],
    ['payout', 'returned'],
  ] as const)('of a %s that is %s the bank drops its own report', async (resource, status) => {
    const row = instructed[resource];
    const id = await eventually('a simulation before the bank plays', async () => {
      const { id, send } = await row.know();
      await send();
      await row.productSays(id, status);
      const [planned] = await world.rows(id);
      return planned?.attempts === 0 && id;
    });
    expect((await world.readDoneRow(id))?.state).toBe('dropped');
    expect(await row.readStatus(id)).toBe(row.taken);
    expect([await world.callbacks(id), await row.signals(id)]).toEqual([[], []]);
  });

  it.concurrent.each([
    ['payout', undefined, 'created', 'completed'],
    ['payout', undefined, 'submitted', 'completed'],
    // What a magic amount plans does not yield.
    ['refund', 66_612, 'settled', 'failed'],
    ['payout', 66_628, 'completed', 'returned'],
  ] as const)(
    'of a %s of %s that is %s the bank still reports %s',
    async (resource, amount, status, planned) => {
      const row = instructed[resource];
      const { id, send } = await row.know(amount);
      await send();
      await row.productSays(id, status);
      expect(await row.readSentSignals(id)).toEqual([planned]);
    },
  );
});

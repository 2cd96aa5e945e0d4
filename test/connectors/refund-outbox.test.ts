import { Client, Connection } from '@temporalio/client';
import type { EntryStatus } from '../../connectors/sandbox/book';
import type { OutboxRow } from '../../connectors/sandbox/outbox';

import { until, useBankWorld } from './bank-world';

const world = useBankWorld();

const activities = () => world.server.bank.activities;

/** An accepted refund of which the bank says nothing by itself. */
async function silentRefund(): Promise<string> {
  const { input, id } = await world.knowRefund({ amount: 66_613 });
  await activities().sendRefund(input);
  return id;
}

/** A row of the outbox about a refund, due now. */
const plant = (resource_id: string, change: Partial<OutboxRow<'refund'>> = {}) =>
  world.plant({ resource: 'refund', resource_id, name: 'settled', becomes: 'settled', ...change });

const doneRow = (id: string) => world.doneRow(id);

const standsAt = (_id: string, status: EntryStatus) =>
  world.refunds.updateOne({ _id }, { $set: { status } });

describe('a row about a refund', () => {
  it.each(['settled', 'failed'] as const)('moves the book to %s, and is told', async (becomes) => {
    const id = await silentRefund();
    await plant(id, { name: becomes, becomes });
    expect((await doneRow(id))?.state).toBe('sent');
    expect((await world.refunds.findOne({ _id: id }))?.status).toBe(becomes);
    expect(await world.signals(id, 'refund')).toEqual([becomes]);
  });

  it('is told where the book was moved already, as by a sender that was killed', async () => {
    const id = await silentRefund();
    await standsAt(id, 'settled');
    await plant(id);
    expect((await doneRow(id))?.state).toBe('sent');
    expect(await world.signals(id, 'refund')).toEqual(['settled']);
  });

  it.each([
    ['settled', 'failed'],
    ['failed', 'settled'],
    ['settled', 'refused'],
    ['settled', 'lost'],
  ] as const)('is dropped when it says %s of one that is %s', async (becomes, status) => {
    const id = await silentRefund();
    await standsAt(id, status);
    await plant(id, { name: becomes, becomes });
    expect((await doneRow(id))?.state).toBe('dropped');
    expect((await world.refunds.findOne({ _id: id }))?.status).toBe(status);
    expect([await world.callbacks(id), await world.signals(id, 'refund')]).toEqual([[], []]);
  });

  it('is dropped where the book has no such refund', async () => {
    const { id } = await world.knowRefund();
    await plant(id);
    expect((await doneRow(id))?.state).toBe('dropped');
    expect(await world.callbacks(id)).toEqual([]);
  });

  it('stays when a payment of the same id is voided', async () => {
    const { id, url } = await world.openFor({ amount: 66_603 });
    await world.approve(url);
    await plant(id, { due_at: new Date(Date.now() + 3_600_000) });
    await activities().voidPayment({ payment_id: id, instruction_id: `void:${id}` });
    const row = await world.outbox.findOne({ resource_id: id, resource: 'refund' });
    expect(row?.state).toBe('pending');
  });

  it('of a refund that the product does not know is parked', async () => {
    const id = await silentRefund();
    await world.productForgets('refund', id);
    await plant(id);
    expect((await doneRow(id))?.state).toBe('parked');
    expect(await world.signals(id, 'refund')).toEqual([]);
  });

  it('is sent again when a killed sender had taken it, and counts once', async () => {
    const id = await silentRefund();
    await plant(id);
    const row = await doneRow(id);
    const again = { state: 'pending', done_at: null, due_at: new Date() } as const;
    await world.outbox.updateOne({ _id: row?._id ?? '' }, { $set: again });
    expect((await doneRow(id))?.attempts).toBeGreaterThanOrEqual(2);
    expect(await world.callbacks(id)).toHaveLength(1);
    expect(await world.signals(id, 'refund')).toEqual(['settled']);
  });

  it('is kept while Temporal is away, and sent after a restart with the same id', async () => {
    const connection = Connection.lazy({ address: '127.0.0.1:1' });
    await world.server.restart({ temporal: new Client({ connection }) });
    const id = await silentRefund();
    await plant(id);
    const [failed] = await until(
      () => world.rows(id),
      ([row]) => row?.last_error != null,
    );
    expect(failed?.state).toBe('pending');
    await world.server.restart();
    expect((await doneRow(id))?.state).toBe('sent');
    const ids = (await world.callbacks(id)).map(({ body }) => body.callback_id);
    expect(ids).toEqual([failed?.body.callback_id]);
    expect(await world.signals(id, 'refund')).toEqual(['settled']);
    await connection.close();
  });
});

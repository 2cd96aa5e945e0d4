import { Client, Connection } from '@temporalio/client';
import type { EntryStatus } from '../../connectors/sandbox/book';
import type { OutboxRow } from '../../connectors/sandbox/outbox';
import { until, useBankWorld } from './bank-world';

const world = useBankWorld();

const activities = () => world.server.bank.activities;
const doneRow = (id: string) => world.doneRow(id);

/** A sent payout of which the bank says nothing by itself. */
async function silentPayout(): Promise<string> {
  const { input, id } = await world.knowPayout({ amount: 66_623 });
  await activities().sendPayout(input);
  return id;
}

/** A row of the outbox about a payout, due now. */
const plant = (resource_id: string, change: Partial<OutboxRow<'payout'>> = {}) =>
  world.plant({
    resource: 'payout',
    resource_id,
    name: 'completed',
    becomes: 'completed',
    ...change,
  });

const standsAt = (_id: string, status: EntryStatus) =>
  world.payouts.updateOne({ _id }, { $set: { status } });

async function statusOf(_id: string): Promise<string | undefined> {
  return (await world.payouts.findOne({ _id }))?.status;
}

describe('a row about a payout', () => {
  it.concurrent.each([
    ['completed', 'sent'],
    ['failed', 'sent'],
    ['returned', 'sent'],
    ['returned', 'completed'],
  ] as const)('moves the book to %s from %s, and is told', async (becomes, status) => {
    const id = await silentPayout();
    await standsAt(id, status);
    await plant(id, { name: becomes, becomes });
    expect((await doneRow(id))?.state).toBe('sent');
    expect(await statusOf(id)).toBe(becomes);
    expect(await world.signals(id, 'payout')).toEqual([becomes]);
  });

  it.concurrent.each(['completed', 'returned'] as const)(
    'completed is told of one that is %s',
    async (to) => {
      const id = await silentPayout();
      await standsAt(id, to);
      await plant(id);
      expect((await doneRow(id))?.state).toBe('sent');
      expect(await statusOf(id)).toBe(to);
      expect(await world.signals(id, 'payout')).toEqual(['completed']);
    },
  );

  it.concurrent.each([
    ['completed', 'failed'],
    ['completed', 'submitted'],
    ['completed', 'refused'],
    ['failed', 'completed'],
    ['failed', 'returned'],
    ['returned', 'failed'],
    ['returned', 'lost'],
  ] as const)('is dropped when it says %s of one that is %s', async (becomes, status) => {
    const id = await silentPayout();
    await standsAt(id, status);
    await plant(id, { name: becomes, becomes });
    expect((await doneRow(id))?.state).toBe('dropped');
    expect(await statusOf(id)).toBe(status);
    expect([await world.callbacks(id), await world.signals(id, 'payout')]).toEqual([[], []]);
  });

  it.concurrent('of a payout that the product does not know is parked', async () => {
    const id = await silentPayout();
    await world.productForgets('payout', id);
    await plant(id);
    expect((await doneRow(id))?.state).toBe('parked');
    expect(await world.signals(id, 'payout')).toEqual([]);
  });

  it('is kept while Temporal is away; after a restart all are told in their order', async () => {
    const connection = Connection.lazy({ address: '127.0.0.1:1' });
    await world.server.restart({ temporal: new Client({ connection }) });
    const id = await silentPayout();
    const ago = (ms: number) => new Date(Date.now() - ms);
    const said = (at: Date) => ({ due_at: at, body: bodyAt(at) });
    const [first, second, third] = [said(ago(300)), said(ago(200)), said(ago(100))];
    await plant(id, { _id: first.body.callback_id, ...first });
    const [failed] = await until(
      () => world.rows(id),
      ([row]) => row?.last_error != null,
    );
    expect([failed?.state, await statusOf(id)]).toEqual(['pending', 'completed']);
    await world.server.bank.stop();
    await world.outbox.updateOne({ _id: failed?._id ?? '' }, { $set: { due_at: first.due_at } });
    const returned = { name: 'returned', becomes: 'returned' } as const;
    await plant(id, { _id: third.body.callback_id, ...third, ...returned });
    await plant(id, { _id: second.body.callback_id, ...second, name: 'failed' });
    await world.server.restart();
    expect(await world.told(id, 'payout')).toEqual(['completed', 'failed', 'returned']);
    const ids = (await world.callbacks(id)).map(({ body }) => body.callback_id);
    expect(ids[0]).toBe(failed?.body.callback_id);
    await connection.close();
  });
});

let bodies = 0;
function bodyAt(at: Date): OutboxRow['body'] {
  bodies += 1;
  return { callback_id: `cb_of_the_test_${bodies}`, occurred_at: at.toISOString() };
}

describe('after a simulation, what comes by itself', () => {
  it.concurrent.each(['completed', 'failed', 'returned'] as const)(
    'is dropped where the payout is %s by now; the book stays',
    async (status) => {
      const { input, id } = await world.knowPayout();
      await activities().sendPayout(input);
      await world.productSays('payout', id, status);
      expect((await doneRow(id))?.state).toBe('dropped');
      expect(await statusOf(id)).toBe('sent');
      expect([await world.callbacks(id), await world.signals(id, 'payout')]).toEqual([[], []]);
    },
  );

  it.concurrent.each(['created', 'submitted'] as const)(
    'is told where it is %s still',
    async (status) => {
      const { input, id } = await world.knowPayout();
      await activities().sendPayout(input);
      await world.productSays('payout', id, status);
      expect(await world.told(id, 'payout')).toEqual(['completed']);
    },
  );

  it.concurrent.each(['settled', 'failed'] as const)(
    'is dropped where the refund is %s by now; the book stays',
    async (status) => {
      const { input, id } = await world.knowRefund();
      await activities().sendRefund(input);
      await world.productSays('refund', id, status);
      expect((await doneRow(id))?.state).toBe('dropped');
      expect((await world.refunds.findOne({ _id: id }))?.status).toBe('accepted');
      expect([await world.callbacks(id), await world.signals(id, 'refund')]).toEqual([[], []]);
    },
  );

  it.concurrent('is told to the end when the inbox has kept it: it may be what moved the payout', async () => {
    const { input, id } = await world.knowPayout();
    await activities().sendPayout(input);
    expect(await world.told(id, 'payout')).toEqual(['completed']);
    await world.productSays('payout', id, 'completed');
    const again = { state: 'pending', done_at: null, due_at: new Date() } as const;
    await world.outbox.updateOne({ resource_id: id }, { $set: again });
    const { state, attempts } = (await doneRow(id)) ?? {};
    expect(state).toBe('sent');
    expect(attempts).toBeGreaterThanOrEqual(2);
    expect(await world.callbacks(id)).toHaveLength(1);
    expect(await world.signals(id, 'payout')).toEqual(['completed']);
  });

  it.concurrent('gives way, but what a magic amount plans does not', async () => {
    const payout = await world.knowPayout({ amount: 66_628 });
    await activities().sendPayout(payout.input);
    await world.productSays('payout', payout.id, 'completed');
    const refund = await world.knowRefund({ amount: 66_612 });
    await activities().sendRefund(refund.input);
    await world.productSays('refund', refund.id, 'settled');
    expect(await world.told(payout.id, 'payout')).toEqual(['returned']);
    expect(await world.told(refund.id, 'refund')).toEqual(['failed']);
  });
});

describe('a row from before there were refunds and payouts', () => {
  it('is about a payment', async () => {
    const { id, url } = await world.openFor({ amount: 66_603 });
    await world.approve(url);
    expect(await world.told(id, 'payment')).toEqual(['authorized']);
    const at = new Date();
    const settled = { name: 'settled', becomes: 'settled', body: bodyAt(at) };
    const _id = settled.body.callback_id;
    const earlier = {
      _id,
      ...settled,
      payment_id: id,
      state: 'pending',
      due_at: at,
      attempts: 0,
      last_error: null,
      done_at: null,
    };
    await world.own.collection<{ _id: string }>('outbox').insertOne(earlier);
    const row = await until(
      () => world.outbox.findOne({ _id }),
      (found) => found?.done_at != null,
    );
    expect(row?.state).toBe('sent');
    expect((await world.sessionOf(id))?.status).toBe('settled');
    expect(await world.signals(id)).toEqual(['authorized', 'settled']);
  });
});

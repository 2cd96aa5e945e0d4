import { randomUUID } from 'node:crypto';
import { type Document, MongoError } from 'mongodb';
import { createTemporalClient } from '../../../src/temporal/client';
import { retryUntilDone } from '../../support/insist';
import { SILENT, sameBut, useRestoreSetting } from './setting';

/** Keys, balances and stops of a rebuilding. */
const setting = useRestoreSetting();

type Claim = { _id: string; resource_id: string } & Document;

test('a key that the backup holds pays once, and keeps what the merchant wrote', async () => {
  const { stores, shop, db } = setting;
  const key = randomUUID();
  const backup = await setting.backUp();
  const asked = { ...SILENT, reference: 'r-2', metadata: { order: 7 } };
  const { body } = await shop.pay(asked, key);
  // The claim is made before anything else, so a backup between the two holds it alone.
  const claims = db.collection<Claim>('idempotency');
  const projection = { expires_at: 0 };
  const claim = await claims.findOne({ resource_id: body.id }, { projection });
  if (claim === null) throw new Error('no claim');
  const { recipient_id } = shop.ask();
  const { amount, currency, method } = shop.ask(SILENT);
  const routing = {
    ...{ account_id: shop.account_id, livemode: false, amount, fee: 0, currency, method },
    ...{ recipient_id, balance_account: 'main', connector: setting.service.connector },
    can_be_returned: true,
  };
  const payout = { reference: 'r-2', metadata: '{"order":7}' };
  await setting.restore(backup);
  await claims.insertOne({ ...claim, request: { payout, routing }, status: null, body: null });

  await setting.left(1);
  const applied = (await setting.look(true)).findings;
  expect(applied.find(({ id }) => id === body.id)).toMatchObject({ done: true, key_lost: false });
  const repeated = await shop.pay(asked, key);
  expect([repeated.status, repeated.body.id]).toEqual([201, body.id]);
  expect(await stores.payouts.get(body.id)).toMatchObject(payout);
  expect(await setting.verified()).toEqual([]);
});

test('one whose key Temporal does not hold is named, since a repeated request pays again', async () => {
  const { stores, shop, service } = setting;
  const { amount, currency, method, recipient_id } = shop.ask(SILENT);
  const owner = { account_id: shop.account_id, livemode: false };
  const routing = {
    ...{ ...owner, amount, fee: 0, currency, method, recipient_id, connector: service.connector },
    ...{ balance_account: 'main', can_be_returned: true },
  };
  const claim = { ...owner, operation: 'createPayout', key: 'k', fingerprint: 'f' };
  const request = { payout: { reference: null, metadata: '{}' }, routing };
  const backup = await setting.backUp();
  const { lifecycle: lifecycleQueue } = service.queues;
  const client = service.temporal;
  const door = createTemporalClient({ client, lifecycleQueue, stores, now: () => new Date() });
  // One that a busy machine did not accept in time has released its key.
  const payout_id = await retryUntilDone(async () => {
    const asked = { ...claim, resource_id: randomUUID(), request_id: 'r', request };
    const { resource_id } = await stores.idempotency.reserveKey(asked, new Date());
    await door.openPayout({ ...routing, payout_id: resource_id, request_id: 'r' });
    return resource_id;
  });
  await service.becomes('payouts', payout_id, { status: 'sent' });
  await setting.restore(backup);
  await setting.left(1);
  const found = (await setting.look(true)).findings.find(({ id }) => id === payout_id);
  expect(found).toMatchObject({ done: true, key_lost: true });
  expect(await stores.payouts.get(payout_id)).toMatchObject({ status: 'sent' });
});

test('a rebuilding that is stopped at any write goes on where it stood, and ends the same', async () => {
  const { stores, shop } = setting;
  const backup = await setting.backUp();
  const id = await setting.payout(SILENT);
  await setting.simulate('payout', id, { event: 'completed' });
  const payout = await stores.payouts.get(id);
  const recorded = await setting.recorded(id);
  const balance = await shop.balance();
  await setting.restore(backup);
  await setting.left(1);

  let allowed = 0;
  let writes = 0;
  const stopping = <Args extends unknown[], T>(write: (...args: Args) => Promise<T>) => {
    return async (...args: Args): Promise<T> => {
      writes += 1;
      if (writes > allowed) throw new MongoError('stopped');
      return await write(...args);
    };
  };
  const rebuilder = await setting.rebuilderOn({
    ...stores,
    payouts: { ...stores.payouts, insert: stopping(stores.payouts.insert) },
    events: { ...stores.events, insert: stopping(stores.events.insert) },
    ledger: { ...stores.ledger, post: stopping(stores.ledger.post) },
  });
  const stopped = { rebuilder: async () => rebuilder };
  const stops: number[] = [];
  for (; allowed < 10; allowed += 1) {
    writes = 0;
    try {
      await setting.look(true, stopped);
      break;
    } catch (error) {
      expect(error).toMatchObject({ message: 'stopped' });
      stops.push(allowed);
      expect(await setting.verified()).toEqual([]);
    }
  }
  // Before the reservation, before the payout, before the events of its first transition, and before
  // the last entry, as a repeat tries the reservation again, in vain.
  expect(stops).toEqual([0, 1, 2, 3]);
  expect(await stores.payouts.get(id)).toEqual(sameBut(payout, {}));
  expect(await setting.recorded(id)).toEqual(recorded);
  expect(await shop.balance()).toEqual(balance);
  await rebuilder.rebuild('payout', id, 'life');
  expect(await setting.recorded(id)).toEqual(recorded);
  expect(await shop.balance()).toEqual(balance);
});

test('money that was spent again is not posted below zero: a person is told', async () => {
  const { stores, shop } = setting;
  const backup = await setting.backUp();
  const [available = 0] = await shop.balance({ currency: 'EUR', balance_account: 'marketing' });
  const whole = { amount: available, metadata: { balance_account: 'marketing' } };
  const first = await setting.payout(whole);
  await setting.restore(backup);
  const second = await setting.payout(whole);
  await setting.left(1);
  const short = (await setting.look(true)).findings.find(({ id }) => id === first);
  expect(short).toMatchObject({ kind: 'short', done: false, reason: expect.any(String) });
  expect(await stores.payouts.get(first)).toBeNull();
  expect(await setting.verified()).toEqual([]);

  // Once the money is there the same command finishes.
  const fund = ['--env', 'sandbox', '--balance-account', 'marketing', '--currency', 'EUR'];
  await setting.json('balance', 'fund', shop.account_id, ...fund, '--amount', String(available));
  await setting.look(true);
  expect(await setting.left(0)).toEqual([]);
  expect(await stores.payouts.get(first)).not.toBeNull();
  expect(await stores.payouts.get(second)).not.toBeNull();
  expect(await setting.verified()).toEqual([]);
});

test('what still differs from its workflow is not started again', async () => {
  const { service, handle } = setting;
  const id = await setting.payout(SILENT);
  await service.becomes('payouts', id, { status: 'sent' });
  await handle('payout', id).terminate('lost');
  const payouts = service.collection<{ _id: string; status: string }>('payouts');
  await payouts.updateOne({ _id: id }, { $set: { status: 'submitted' } });
  await setting.left(1);
  const found = async () => (await setting.look(true)).findings.filter((each) => each.id === id);
  expect(await found()).toMatchObject([{ kind: 'contradicts', act: 'person', done: false }]);
  expect((await handle('payout', id).describe()).status.name).toBe('TERMINATED');

  await payouts.updateOne({ _id: id }, { $set: { status: 'sent' } });
  expect(await found()).toMatchObject([{ kind: 'orphan', act: 'restart', done: true }]);
  expect((await handle('payout', id).describe()).status.name).toBe('RUNNING');
});

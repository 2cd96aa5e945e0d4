import { randomUUID } from 'node:crypto';
import { type Document, MongoError } from 'mongodb';
import type { CallbackResource } from '../../../src/domain/callback/callback';
import { createTemporalClient } from '../../../src/temporal/client';
import { expectRefusal } from '../../api/refusal';
import { eventually } from '../../support/http';
import { retryUntilDone } from '../../support/insist';
import { SILENT, sameBut, useRestoreSetting } from './setting';

/** MongoDB comes back as it was at a backup, while Temporal has gone on. */
const setting = useRestoreSetting();

type ResourceKey = [kind: CallbackResource, id: string];
type Backup = Awaited<ReturnType<typeof setting.backUp>>;
type State = Awaited<ReturnType<typeof setting.read>>;

/** Restores a backup, and rebuilds what is missing. @param count differences that there are then */
async function restoreAndRebuild(backup: Backup, count: number) {
  await setting.restore(backup);
  const differences = await setting.left(count);
  const { findings } = await setting.look(true);
  const find = (id: string) => findings.find((finding) => finding.id === id);
  return { differences, findings, find };
}

/** Expects resources as they were, but for the texts that Temporal does not hold. */
async function expectRebuilt(
  before: State,
  texts: (object | null)[],
  keys: ResourceKey[],
  ignored: { [field: string]: undefined } = {},
) {
  const documents = before.documents.map((document, n) => {
    const changes = texts[n];
    return changes == null ? document : sameBut(document, changes);
  });
  const { documents: rebuilt, ...after } = await setting.read(...keys);
  expect(after).toEqual({ balances: before.balances, recorded: before.recorded });
  expect(rebuilt.map((document) => ({ ...document, ...ignored }))).toEqual(documents);
  expect(await setting.verified()).toEqual([]);
}

/** Simulates what the bank reports on a new payout that waits for it. */
async function endPayout(body: object, changes: object = SILENT): Promise<string> {
  const id = await setting.payout(changes);
  await setting.simulate('payout', id, body);
  return id;
}

test('rebuilds payouts that were sent or completed since, so that each is paid and reported once', async () => {
  const { stores, shop } = setting;
  const before = await setting.payout(SILENT);
  const backup = await setting.backUp();
  await setting.simulate('payout', before, { event: 'completed' });
  const body = { ...SILENT, reference: 'r-1' };
  const key = randomUUID();
  const since: string = (await shop.pay(body, key)).body.id;
  await setting.simulate('payout', since, { event: 'completed' });
  const failed = await endPayout({ event: 'failed', code: 'AC04', reason: 'closed' });
  // One by SEPA Instant would need attention after a minute.
  const card = { method: 'card_payout', recipient_id: shop.recipients.card_payout };
  const running = await setting.payout({ ...SILENT, ...card });
  const keys = [before, since, failed, running].map((id): ResourceKey => ['payout', id]);
  const state = await setting.read(...keys);

  const { differences, findings } = await restoreAndRebuild(backup, 4);
  const missing = { kind: 'missing', document: null, act: 'rebuild' };
  const closed = 'completed v4, closed';
  expect(
    differences.map(({ kind, id, document, workflow, act }) => {
      return { kind, id, document, workflow, act };
    }),
  ).toEqual(
    expect.arrayContaining([
      { kind: 'behind', id: before, document: 'sent v3', workflow: closed, act: 'rebuild' },
      { ...missing, id: since, workflow: closed },
      { ...missing, id: failed, workflow: 'failed v4, closed' },
      { ...missing, id: running, workflow: 'sent v3, running' },
    ]),
  );
  expect(findings.filter(({ act, done }) => act === 'rebuild' && done)).toHaveLength(4);
  expect(findings.filter(({ key_lost }) => key_lost)).toEqual([]);
  const texts = { reference: null, metadata: '{}' };
  // The workflow of the one that was behind has requested attention meanwhile.
  const ignored = { attention_at: undefined, attention_since: undefined };
  await expectRebuilt(state, [null, texts, texts, texts], keys, ignored);
  expect(await setting.left(0)).toEqual([]);

  // Its key is used as before, though the idempotency record was lost.
  const repeated = await shop.pay(body, key);
  expect([repeated.status, repeated.body.id]).toEqual([201, since]);
  expectRefusal(await shop.pay({ ...body, amount: 1 }, key), 'idempotency_key_reused');
  expect((await setting.read()).balances).toEqual(state.balances);

  // The one that runs goes on as if nothing had been.
  await setting.simulate('payout', running, { event: 'completed' });
  await setting.service.becomes('payouts', running, { status: 'completed' });
  expect(await stores.payouts.get(running)).toMatchObject({ status: 'completed', version: 4 });
});

test('a workflow that waits to write its transition goes on when its document is back', async () => {
  const backup = await setting.backUp();
  const id = await setting.payout(SILENT);
  await setting.restore(backup);
  await setting.handle('payout', id).signal('completed', {
    ...{ callback_id: randomUUID(), occurred_at: new Date().toISOString() },
  });
  await setting.left(1);
  await setting.look(true);
  await setting.handle('payout', id).result();
  expect(await setting.stores.payouts.get(id)).toMatchObject({ status: 'completed', version: 4 });
  expect(await setting.verified()).toEqual([]);
});

test('rebuilds payments and refunds before the payouts that their money has paid', async () => {
  const { shop, service } = setting;
  const early = await shop.settledPayment();
  const backup = await setting.backUp();
  const payment = await shop.settledPayment();
  const refund = () =>
    shop.post('/v1/refunds', { payment_id: payment.id, reason: 'R1' }, { idempotencyKey: 'all' });
  const refunded = (await refund()).body.id;
  await setting.simulate('refund', refunded, { event: 'settled' });
  const failed = await shop.post('/v1/refunds', { payment_id: early.id, amount: 300 });
  await setting.simulate('refund', failed.body.id, { event: 'failed' });
  const keys: ResourceKey[] = [
    ...[early.id, payment.id, await setting.payment()].map((id): ResourceKey => ['payment', id]),
    ...[refunded, failed.body.id].map((id): ResourceKey => ['refund', id]),
  ];
  const state = await setting.read(...keys);

  await restoreAndRebuild(backup, 4);
  const texts = {
    ...{ metadata: '{}', reference: null, customer: { reference: null, sealed: null } },
    ...{ success_url: `${service.url}/`, error_url: `${service.url}/` },
  };
  await expectRebuilt(state, [null, texts, texts, { reason: null }, { reason: null }], keys);
  const repeated = await refund();
  expect([repeated.status, repeated.body.id]).toEqual([201, refunded]);
  expect((await setting.read()).balances).toEqual(state.balances);
});

test('rebuilds crypto payments, credited once, and settlements, sent once to the wallet of that time', async () => {
  const { stores, shop } = setting;
  const [earlier, later] = [
    '0x52908400098527886E0F7030069857D2E4169EE7',
    '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed',
  ];
  const simulate = async (id: string, body: object) =>
    (await setting.simulate('crypto_payment', id, body)).body;
  const readAvailable = async () => {
    const rows = await stores.ledger.balances(shop.account_id, false);
    return BigInt(rows.find(({ currency }) => currency === 'ETH.ethereum')?.available ?? 0);
  };
  await setting.registerWallet(earlier);
  const before = await setting.cryptoPayment();
  const backup = await setting.backUp();
  await simulate(before, { event: 'underpaid' });
  await simulate(before, { event: 'received' });
  const idempotencyKey = randomUUID();
  const released = await setting.cryptoPayment({ idempotencyKey });
  await simulate(released, { event: 'held' });
  await eventually(
    'attention',
    async () => (await stores.crypto_payments.get(released))?.attention,
  );
  await setting.act('crypto_payment', released, 'release');
  await setting.handle('crypto_payment', released).result();
  const open = await setting.cryptoPayment();
  const [{ transaction_id }] = (await simulate(open, { amount: '7', confirmations: 1 })).deposits;
  await setting.registerWallet(later);
  const settle = async (event: string) => {
    // The chain reports nothing more once it is sent.
    const id = await setting.cryptoSettlement('66643');
    await setting.service.becomes('crypto_settlements', id, { status: 'sent' });
    await setting.simulate('crypto_settlement', id, { event });
    await setting.handle('crypto_settlement', id).result();
    return id;
  };
  const keys: ResourceKey[] = [
    ...[before, released, open].map((id): ResourceKey => ['crypto_payment', id]),
    ['crypto_settlement', await settle('completed')],
    ['crypto_settlement', await settle('failed')],
  ];
  const state = await setting.read(...keys);

  const { differences } = await restoreAndRebuild(backup, 5);
  expect(differences.map(({ kind, resource, id }) => [kind, resource, id])).toEqual(
    expect.arrayContaining(keys.map(([kind, id], n) => [n === 0 ? 'behind' : 'missing', kind, id])),
  );
  await expectRebuilt(state, [null, {}, {}, {}, {}], keys);
  expect(state.documents.at(-1)).toMatchObject({ wallet_address: later });
  expect(await setting.left(0)).toEqual([]);
  expect(await setting.cryptoPayment({ idempotencyKey })).toBe(released);

  // Its workflow is lost, too, and its document is there.
  const available = await readAvailable();
  await setting.terminate('crypto_payment', open);
  const [orphan] = await setting.left(1);
  expect(orphan).toMatchObject({ kind: 'orphan', id: open, workflow: 'terminated' });
  await setting.look(true);
  expect(await setting.left(0)).toEqual([]);
  await simulate(open, { transaction_id });
  await setting.service.becomes('crypto_payments', open, { status: 'underpaid' });
  await simulate(open, { event: 'received' });
  await setting.handle('crypto_payment', open).result();
  const due = (await stores.crypto_payments.get(open))?.amount_due;
  expect((await readAvailable()) - available).toBe(BigInt(due ?? 0));
  expect(await setting.verified()).toEqual([]);
});

test('rebuilds a chargeback after the refunds before it', async () => {
  const { stores, shop } = setting;
  const { id } = await shop.settledPayment();
  const backup = await setting.backUp();
  const refund = await shop.post('/v1/refunds', { payment_id: id, amount: 300 });
  await setting.simulate('refund', refund.body.id, { event: 'settled' });
  await setting.report('payment', id, 'clawed_back');
  await eventually('the dispute', async () => (await stores.payments.get(id))?.disputed_at);
  await setting.act('payment', id, 'claw_back');
  await setting.handle('payment', id).result();
  const disputes = [{ held: 1_050, owed: 0 }];
  expect(await stores.payments.get(id)).toMatchObject({ refunded: 300, disputes });
  const state = await setting.read(['payment', id]);

  const { differences } = await restoreAndRebuild(backup, 2);
  expect(differences.find((finding) => finding.id === id)).toMatchObject({
    ...{ kind: 'behind', document: 'settled v4', workflow: 'settled v4, closed' },
  });
  await expectRebuilt(state, [null], [['payment', id]]);
  expect(await stores.refunds.get(refund.body.id)).toMatchObject({ status: 'settled' });
  expect(await setting.left(0)).toEqual([]);
});

test('a key of which the backup has the idempotency record pays once, and keeps the texts of the merchant', async () => {
  const { stores, shop, db } = setting;
  const key = randomUUID();
  const backup = await setting.backUp();
  const body = { ...SILENT, reference: 'r-2', metadata: { order: 7 } };
  const { id } = (await shop.pay(body, key)).body;
  // The record is written before anything else, so a backup between the two has it alone.
  const records = db.collection<{ _id: string; resource_id: string } & Document>('idempotency');
  const record = await records.findOne({ resource_id: id }, { projection: { expires_at: 0 } });
  if (record === null) throw new Error('There is no idempotency record.');
  const request = {
    payout: { reference: 'r-2', metadata: '{"order":7}' },
    routing: buildRouting(),
  };
  await setting.restore(backup);
  await records.insertOne({ ...record, request, status: null, body: null });

  await setting.left(1);
  const { findings } = await setting.look(true);
  const rebuilt = findings.find((finding) => finding.id === id);
  expect(rebuilt).toMatchObject({ done: true, key_lost: false });
  const repeated = await shop.pay(body, key);
  expect([repeated.status, repeated.body.id]).toEqual([201, id]);
  expect(await stores.payouts.get(id)).toMatchObject(request.payout);
  expect(await setting.verified()).toEqual([]);
});

/** Facts of a payout that stays silent, as Temporal holds them. */
function buildRouting() {
  const { amount, currency, method } = setting.shop.ask(SILENT);
  return {
    ...{ account_id: setting.shop.account_id, livemode: false, amount, fee: 0, currency, method },
    ...{ recipient_id: setting.shop.ask().recipient_id, connector: setting.service.connector },
    ...{ balance_account: 'main', can_be_returned: true },
  };
}

test('names a payout whose key Temporal does not hold, since a repeated request pays again', async () => {
  const { stores, service } = setting;
  const routing = buildRouting();
  const owner = { account_id: routing.account_id, livemode: false };
  const key = { ...owner, operation: 'createPayout', key: 'k', fingerprint: 'f' };
  const request = { payout: { reference: null, metadata: '{}' }, routing };
  const backup = await setting.backUp();
  const { lifecycle: lifecycleQueue } = service.queues;
  const temporal = createTemporalClient({
    ...{ client: service.temporal, lifecycleQueue, stores, now: () => new Date() },
  });
  // A payout that a busy machine did not accept in time has released its key.
  const payout_id = await retryUntilDone(async () => {
    const record = { ...key, resource_id: randomUUID(), request_id: 'r', request };
    const { resource_id } = await stores.idempotency.reserveKey(record, new Date());
    await temporal.openPayout({ ...routing, payout_id: resource_id, request_id: 'r' });
    return resource_id;
  });
  await service.becomes('payouts', payout_id, { status: 'sent' });
  const { find } = await restoreAndRebuild(backup, 1);
  expect(find(payout_id)).toMatchObject({ done: true, key_lost: true });
  expect(await stores.payouts.get(payout_id)).toMatchObject({ status: 'sent' });
});

test('a rebuilding that stops before any of its writes continues there, and ends the same', async () => {
  const { stores } = setting;
  const backup = await setting.backUp();
  const id = await endPayout({ event: 'completed' });
  const state = await setting.read(['payout', id]);
  await setting.restore(backup);
  await setting.left(1);

  let allowed = 0;
  let writes = 0;
  const stop = <Args extends unknown[], T>(write: (...args: Args) => Promise<T>) => {
    return async (...args: Args): Promise<T> => {
      writes += 1;
      if (writes > allowed) throw new MongoError('stopped');
      return await write(...args);
    };
  };
  const rebuilder = await setting.rebuilderOn({
    ...stores,
    payouts: { ...stores.payouts, insert: stop(stores.payouts.insert) },
    events: { ...stores.events, insert: stop(stores.events.insert) },
    ledger: { ...stores.ledger, post: stop(stores.ledger.post) },
  });
  const stops: number[] = [];
  for (; allowed < 10; allowed += 1) {
    writes = 0;
    try {
      await setting.look(true, { rebuilder: async () => rebuilder });
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
  await expectRebuilt(state, [{}], [['payout', id]]);
  await rebuilder.rebuild('payout', id, 'life');
  await expectRebuilt(state, [{}], [['payout', id]]);
});

test('posts nothing below zero where the balance was spent again, and leaves that to an operator', async () => {
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

  // Once the balance is funded, the same command succeeds.
  const fund = ['--env', 'sandbox', '--balance-account', 'marketing', '--currency', 'EUR'];
  await setting.json('balance', 'fund', shop.account_id, ...fund, '--amount', String(available));
  await setting.look(true);
  expect(await setting.left(0)).toEqual([]);
  expect(await stores.payouts.get(first)).not.toBeNull();
  expect(await stores.payouts.get(second)).not.toBeNull();
  expect(await setting.verified()).toEqual([]);
});

test('restarts no lost workflow while its document still differs', async () => {
  const { service, handle } = setting;
  const id = await setting.payout(SILENT);
  await service.becomes('payouts', id, { status: 'sent' });
  await handle('payout', id).terminate('lost');
  const payouts = service.collection<{ _id: string; status: string }>('payouts');
  await payouts.updateOne({ _id: id }, { $set: { status: 'submitted' } });
  await setting.left(1);
  const apply = async () => (await setting.look(true)).findings.filter((each) => each.id === id);
  expect(await apply()).toMatchObject([{ kind: 'contradicts', act: 'person', done: false }]);
  expect((await handle('payout', id).describe()).status.name).toBe('TERMINATED');

  await payouts.updateOne({ _id: id }, { $set: { status: 'sent' } });
  expect(await apply()).toMatchObject([{ kind: 'orphan', act: 'restart', done: true }]);
  expect((await handle('payout', id).describe()).status.name).toBe('RUNNING');
});

import { randomUUID } from 'node:crypto';
import type { Document } from 'mongodb';
import { createTemporalDoor } from '../../src/temporal/door';
import { expectRefusal } from '../api/refusal';
import { call, eventually, settledPayment } from '../support/http';
import { openRestoreSetting, type RestoreSetting } from './setting';

/** MongoDB comes back as it was at a backup, while Temporal has gone on. */
let setting: RestoreSetting;
beforeAll(async () => {
  setting = await openRestoreSetting();
});
afterAll(async () => await setting?.close());

/** Fields that Temporal does not hold, and the random part of a place in a list. */
const REFERENCE = { reference: null, metadata: '{}' };
const sameBut = (document: object | null, changes: object) => ({
  ...document,
  position: expect.any(String),
  ...changes,
});
/** A bank that takes a payout to `sent` and stays silent. */
const SILENT = { amount: 66_623 };
type Claim = { _id: string; resource_id: string } & Document;
const verified = async () => {
  const { stdout } = await setting.cli('ledger', 'verify', '--json');
  return JSON.parse(stdout).data.differences;
};

test('a payout that was sent and completed since is paid, debited and told of once', async () => {
  const { stores, shop } = setting;
  const before = await setting.payout(SILENT);
  const backup = await setting.backUp();
  await setting.simulate('payout', before, { event: 'completed' });
  const asked = { ...SILENT, reference: 'r-1' };
  const key = randomUUID();
  const since: string = (await shop.pay(asked, key)).body.id;
  await setting.simulate('payout', since, { event: 'completed' });
  const failed = await setting.payout(SILENT);
  await setting.simulate('payout', failed, { event: 'failed', code: 'AC04', reason: 'closed' });
  const running = await setting.payout(SILENT);
  const ids = [before, since, failed, running];
  const documents = await Promise.all(ids.map((id) => stores.payouts.get(id)));
  const recorded = await Promise.all(ids.map(setting.recorded));
  const balance = await shop.balance();

  await setting.restore(backup);
  expect(await shop.balance()).not.toEqual(balance);
  const found = await setting.left(4);
  const shown = found.map(({ kind, id, document, workflow, act }) => ({
    kind,
    id,
    document,
    workflow,
    act,
  }));
  const missing = { kind: 'missing', document: null, act: 'rebuild' };
  expect(shown).toEqual(
    expect.arrayContaining([
      {
        kind: 'behind',
        id: before,
        document: 'sent v3',
        workflow: 'completed v4, closed',
        act: 'rebuild',
      },
      { ...missing, id: since, workflow: 'completed v4, closed' },
      { ...missing, id: failed, workflow: 'failed v4, closed' },
      { ...missing, id: running, workflow: 'sent v3, running' },
    ]),
  );

  const applied = (await setting.look(true)).findings;
  expect(applied.filter(({ act, done }) => act === 'rebuild' && done)).toHaveLength(4);
  expect(applied.filter(({ key_lost }) => key_lost)).toEqual([]);
  const again = await Promise.all(ids.map((id) => stores.payouts.get(id)));
  expect(again[0]).toEqual(documents[0]);
  for (const at of [1, 2, 3]) {
    expect(again[at]).toEqual(sameBut(documents[at] ?? null, REFERENCE));
  }
  expect(await Promise.all(ids.map(setting.recorded))).toEqual(recorded);
  expect(await shop.balance()).toEqual(balance);
  expect(await verified()).toEqual([]);
  expect(await setting.left(0)).toEqual([]);

  // Its key is taken as before, though the claim was lost.
  const repeated = await shop.pay(asked, key);
  expect([repeated.status, repeated.body.id]).toEqual([201, since]);
  expectRefusal(await shop.pay({ ...asked, amount: 1 }, key), 'idempotency_key_reused');
  expect(await shop.balance()).toEqual(balance);

  // The one that runs goes on as if nothing had been.
  await setting.simulate('payout', running, { event: 'completed' });
  await eventually('the completion', async () => {
    return (await stores.payouts.get(running))?.status === 'completed';
  });
});

test('a workflow that waits to write its move goes on when its document is back', async () => {
  const { stores } = setting;
  const backup = await setting.backUp();
  const id = await setting.payout(SILENT);
  await setting.restore(backup);
  await setting.handle('payout', id).signal('completed', {
    callback_id: randomUUID(),
    occurred_at: new Date().toISOString(),
  });
  await setting.left(1);
  await setting.look(true);
  await setting.handle('payout', id).result();
  expect(await stores.payouts.get(id)).toMatchObject({ status: 'completed', version: 4 });
  expect(await verified()).toEqual([]);
});

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
  expect(await verified()).toEqual([]);
});

test('one whose key Temporal does not hold is named, since a repeated request pays again', async () => {
  const { stores, shop, service } = setting;
  const { amount, currency, method, recipient_id } = shop.ask(SILENT);
  const payout_id = randomUUID();
  const owner = { account_id: shop.account_id, livemode: false };
  const routing = {
    ...{ ...owner, amount, fee: 0, currency, method, recipient_id, connector: service.connector },
    ...{ balance_account: 'main', can_be_returned: true },
  };
  const claim = { ...owner, operation: 'createPayout', key: 'k', fingerprint: 'f' };
  const request = { payout: { reference: null, metadata: '{}' }, routing };
  const backup = await setting.backUp();
  const ids = { resource_id: payout_id, request_id: 'r' };
  await stores.idempotency.claim({ ...claim, ...ids, request }, new Date());
  const { lifecycle: lifecycleQueue } = service.queues;
  const client = service.temporal;
  const door = createTemporalDoor({ client, lifecycleQueue, stores, now: () => new Date() });
  await door.openPayout({ ...routing, payout_id, request_id: 'r' });
  await setting.restore(backup);
  await setting.left(1);
  const found = (await setting.look(true)).findings.find(({ id }) => id === payout_id);
  expect(found).toMatchObject({ done: true, key_lost: true });
  expect(await stores.payouts.get(payout_id)).toMatchObject({ status: 'sent' });
});

test('payments and refunds come back before what they paid for', async () => {
  const { stores, shop, service } = setting;
  const { key } = shop;
  const early = await settledPayment(service, key);
  const backup = await setting.backUp();
  const payment = await settledPayment(service, key);
  const refund = { key, body: { payment_id: payment.id, reason: 'R1' }, idempotencyKey: 'all' };
  const refunded = await call(service.url, 'POST', '/v1/refunds', refund);
  await setting.simulate('refund', refunded.body.id, { event: 'settled' });
  const back = await call(service.url, 'POST', '/v1/refunds', {
    key,
    body: { payment_id: early.id, amount: 300 },
  });
  await setting.simulate('refund', back.body.id, { event: 'failed' });
  const waiting = await setting.payment();
  const payments = [early.id, payment.id, waiting];
  const refunds = [refunded.body.id, back.body.id];
  const documents = await Promise.all([
    ...payments.map((id) => stores.payments.get(id)),
    ...refunds.map((id) => stores.refunds.get(id)),
  ]);
  const recorded = await Promise.all([...payments, ...refunds].map(setting.recorded));
  const balance = await shop.balance();

  await setting.restore(backup);
  await setting.left(4);
  await setting.look(true);
  const texts = {
    metadata: '{}',
    reference: null,
    customer: { email: null, first_name: null, last_name: null, reference: null },
    success_url: `${service.url}/`,
    error_url: `${service.url}/`,
  };
  expect(
    await Promise.all([
      ...payments.map((id) => stores.payments.get(id)),
      ...refunds.map((id) => stores.refunds.get(id)),
    ]),
  ).toEqual([
    documents[0],
    sameBut(documents[1] ?? null, texts),
    sameBut(documents[2] ?? null, texts),
    sameBut(documents[3] ?? null, { reason: null }),
    sameBut(documents[4] ?? null, { reason: null }),
  ]);
  expect(await Promise.all([...payments, ...refunds].map(setting.recorded))).toEqual(recorded);
  const repeated = await call(service.url, 'POST', '/v1/refunds', refund);
  expect([repeated.status, repeated.body.id]).toEqual([201, refunded.body.id]);
  expect(await shop.balance()).toEqual(balance);
  expect(await verified()).toEqual([]);
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
  expect(await verified()).toEqual([]);

  // Once the money is there the same command finishes.
  const fund = ['--env', 'sandbox', '--balance-account', 'marketing', '--currency', 'EUR'];
  await setting.json('balance', 'fund', shop.account_id, ...fund, '--amount', String(available));
  await setting.look(true);
  expect(await setting.left(0)).toEqual([]);
  expect(await stores.payouts.get(first)).not.toBeNull();
  expect(await stores.payouts.get(second)).not.toBeNull();
  expect(await verified()).toEqual([]);
});

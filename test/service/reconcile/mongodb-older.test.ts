import { randomUUID } from 'node:crypto';
import { deliverCallback } from '../../../src/callbacks/deliver';
import { expectRefusal } from '../../api/refusal';
import { eventually } from '../../support/http';
import { SILENT, sameBut, useRestoreSetting } from './setting';

/** MongoDB comes back as it was at a backup, while Temporal has gone on. */
const setting = useRestoreSetting();

/** Texts of a merchant, which Temporal does not hold. */
const REFERENCE = { reference: null, metadata: '{}' };

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
  // One by SEPA Instant would be marked after a minute.
  const card = { method: 'card_payout', recipient_id: shop.recipients.card_payout };
  const running = await setting.payout({ ...SILENT, ...card });
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
  const again = await Promise.all(
    ids.map(async (id) => {
      // The workflow of one that was behind has marked it meanwhile.
      const { attention_at, attention_since, ...payout } = (await stores.payouts.get(id)) ?? {};
      return payout;
    }),
  );
  expect(again[0]).toEqual(documents[0]);
  for (const at of [1, 2, 3]) {
    expect(again[at]).toEqual(sameBut(documents[at], REFERENCE));
  }
  expect(await Promise.all(ids.map(setting.recorded))).toEqual(recorded);
  expect(await shop.balance()).toEqual(balance);
  expect(await setting.verified()).toEqual([]);
  expect(await setting.left(0)).toEqual([]);

  // Its key is taken as before, though the claim was lost.
  const repeated = await shop.pay(asked, key);
  expect([repeated.status, repeated.body.id]).toEqual([201, since]);
  expectRefusal(await shop.pay({ ...asked, amount: 1 }, key), 'idempotency_key_reused');
  expect(await shop.balance()).toEqual(balance);

  // The one that runs goes on as if nothing had been.
  await setting.simulate('payout', running, { event: 'completed' });
  await setting.service.becomes('payouts', running, { status: 'completed' });
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
  expect(await setting.verified()).toEqual([]);
});

test('payments and refunds come back before what they paid for', async () => {
  const { stores, shop, service } = setting;
  const early = await shop.settledPayment();
  const backup = await setting.backUp();
  const payment = await shop.settledPayment();
  const refund = () =>
    shop.post('/v1/refunds', { payment_id: payment.id, reason: 'R1' }, { idempotencyKey: 'all' });
  const refunded = await refund();
  await setting.simulate('refund', refunded.body.id, { event: 'settled' });
  const back = await shop.post('/v1/refunds', { payment_id: early.id, amount: 300 });
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
    customer: { reference: null, sealed: null },
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
    sameBut(documents[1], texts),
    sameBut(documents[2], texts),
    sameBut(documents[3], { reason: null }),
    sameBut(documents[4], { reason: null }),
  ]);
  expect(await Promise.all([...payments, ...refunds].map(setting.recorded))).toEqual(recorded);
  const repeated = await refund();
  expect([repeated.status, repeated.body.id]).toEqual([201, refunded.body.id]);
  expect(await shop.balance()).toEqual(balance);
  expect(await setting.verified()).toEqual([]);
});

test('coins come back: credited once, and settled once to the wallet of that time', async () => {
  const { stores, shop } = setting;
  const [earlier, later] = [
    '0x52908400098527886E0F7030069857D2E4169EE7',
    '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed',
  ];
  const tell = async (id: string, body: object) =>
    (await setting.simulate('crypto_payment', id, body)).body;
  const coins = async () => {
    const rows = await stores.ledger.balances(shop.account_id, false);
    const row = rows.find(({ currency }) => currency === 'ETH.ethereum');
    return [String(row?.available), String(row?.reserved)];
  };
  await setting.registerWallet(earlier);
  const before = await setting.cryptoPayment();
  const backup = await setting.backUp();
  await tell(before, { event: 'underpaid' });
  await tell(before, { event: 'received' });
  const idempotencyKey = randomUUID();
  const released = await setting.cryptoPayment({ idempotencyKey });
  await tell(released, { event: 'held' });
  await eventually('the mark', async () => (await stores.crypto_payments.get(released))?.attention);
  await setting.act('crypto_payment', released, 'release');
  await setting.handle('crypto_payment', released).result();
  const open = await setting.cryptoPayment();
  const [{ transaction_id }] = (await tell(open, { amount: '7', confirmations: 1 })).deposits;
  await setting.registerWallet(later);
  const settle = async (event: string) => {
    // Sent, and nothing more is heard of it.
    const id = await setting.cryptoSettlement('66643');
    await setting.service.becomes('crypto_settlements', id, { status: 'sent' });
    await setting.simulate('crypto_settlement', id, { event });
    await setting.handle('crypto_settlement', id).result();
    return id;
  };
  const settlements = [await settle('completed'), await settle('failed')];
  const payments = [before, released, open];
  const documents = async () =>
    await Promise.all([
      ...payments.map((id) => stores.crypto_payments.get(id)),
      ...settlements.map((id) => stores.crypto_settlements.get(id)),
    ]);
  const [first, ...others] = await documents();
  const recorded = await Promise.all([...payments, ...settlements].map(setting.recorded));
  const balance = await coins();

  await setting.restore(backup);
  expect(await coins()).toEqual(['undefined', 'undefined']);
  const found = await setting.left(5);
  expect(found.map(({ kind, resource, id }) => [kind, resource, id])).toEqual(
    expect.arrayContaining([
      ['behind', 'crypto_payment', before],
      ['missing', 'crypto_payment', released],
      ['missing', 'crypto_payment', open],
      ['missing', 'crypto_settlement', settlements[0]],
      ['missing', 'crypto_settlement', settlements[1]],
    ]),
  );
  await setting.look(true);
  const [again, ...rebuilt] = await documents();
  expect(again).toEqual(first);
  expect(rebuilt).toEqual(others.map((document) => sameBut(document, {})));
  expect(rebuilt.at(-1)).toMatchObject({ wallet_address: later });
  expect(await Promise.all([...payments, ...settlements].map(setting.recorded))).toEqual(recorded);
  expect(await coins()).toEqual(balance);
  expect(await setting.verified()).toEqual([]);
  expect(await setting.left(0)).toEqual([]);
  expect(await setting.cryptoPayment({ idempotencyKey })).toBe(released);

  // Its workflow is lost, too, and its document there.
  await setting.terminate('crypto_payment', open);
  const [orphan] = await setting.left(1);
  expect(orphan).toMatchObject({ kind: 'orphan', id: open, workflow: 'terminated' });
  await setting.look(true);
  expect(await setting.left(0)).toEqual([]);
  await tell(open, { transaction_id });
  await setting.service.becomes('crypto_payments', open, { status: 'underpaid' });
  await tell(open, { event: 'received' });
  await setting.handle('crypto_payment', open).result();
  const due = (await stores.crypto_payments.get(open))?.amount_due;
  expect(BigInt((await coins())[0] ?? 0) - BigInt(balance[0] ?? 0)).toBe(BigInt(due ?? 0));
  expect(await setting.verified()).toEqual([]);
});

test('what a bank took back is booked again, after the refunds from before', async () => {
  const { stores, shop, service, deps } = setting;
  const { id } = await shop.settledPayment();
  const backup = await setting.backUp();
  const refund = await shop.post('/v1/refunds', { payment_id: id, amount: 300 });
  await setting.simulate('refund', refund.body.id, { event: 'settled' });
  await deliverCallback(
    { ...deps, lifecycleQueue: service.queues.lifecycle },
    {
      ...{ connector: service.connector, resource: 'payment', resource_id: id },
      ...{ name: 'clawed_back' },
      callback: { callback_id: randomUUID(), occurred_at: new Date().toISOString() },
    },
  );
  await eventually('the dispute', async () => (await stores.payments.get(id))?.disputed_at);
  await setting.act('payment', id, 'claw_back');
  await setting.handle('payment', id).result();
  const payment = await stores.payments.get(id);
  expect(payment).toMatchObject({ refunded: 300, disputes: [{ held: 1_050, owed: 0 }] });
  const recorded = await setting.recorded(id);
  const balance = await shop.balance();

  await setting.restore(backup);
  const found = await setting.left(2);
  expect(found.find((finding) => finding.id === id)).toMatchObject({
    kind: 'behind',
    document: 'settled v4',
    workflow: 'settled v4, closed',
  });
  await setting.look(true);
  expect(await stores.payments.get(id)).toEqual(payment);
  expect(await setting.recorded(id)).toEqual(recorded);
  expect(await stores.refunds.get(refund.body.id)).toMatchObject({ status: 'settled' });
  expect(await shop.balance()).toEqual(balance);
  expect(await setting.verified()).toEqual([]);
  expect(await setting.left(0)).toEqual([]);
});

import { randomUUID } from 'node:crypto';
import { cpSync, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { WorkflowNotFoundError } from '@temporalio/client';
import { type Document, MongoError } from 'mongodb';
import type { CallbackResource } from '../../../src/domain/banks/callback';
import type { FeeBearer } from '../../../src/domain/merchants/acquirer-fee';
import { SEARCH_KEYS } from '../../../src/domain/search-attributes';
import { isUnresolved } from '../../../src/service/operators/reconcile/reconcile';
import { createTemporalClient } from '../../../src/temporal/client';
import { freePort } from '../../../stack/ports';
import { cacheDirectory, provision } from '../../../stack/provision/provision';
import { temporalCli } from '../../../stack/provision/temporal';
import { startTemporal } from '../../../stack/temporal-server';
import { silentProgress } from '../../../stack/terminal';
import { expectRefusal } from '../../api/refusal';
import { fundAccount } from '../../support/factories';
import { useFixture } from '../../support/fixture';
import { eventually } from '../../support/http';
import { retryUntilDone } from '../../support/insist';
import { useRestoreSetting } from './setting';

/** The bank takes it to `sent` and stays silent; it is not overdue before the next business day. */
const SILENT = { amount: 66_623, method: 'sepa_credit_transfer' };

const setting = useRestoreSetting();

/** A resource, and texts that Temporal does not hold; undefined where its document was not lost. */
type Rebuilt = [kind: CallbackResource, id: string, texts?: object];

const PAYOUTS = 6;
const SET_BACK = 2;

/** Counts the workflows that a comparison reads, which it otherwise lists. */
async function countReads<T>(compare: () => Promise<T>): Promise<{ result: T; read: number }> {
  const getHandle = jest.spyOn(setting.deps.temporal.workflow, 'getHandle');
  try {
    const result = await compare();
    const read = new Set(getHandle.mock.calls.map(([workflowId]) => workflowId)).size;
    return { result, read };
  } finally {
    getHandle.mockRestore();
  }
}

// First, while nothing else is in flight.
test('reconcile reads only workflows whose version differs from the document', async () => {
  const ids: string[] = [];
  while (ids.length < PAYOUTS) ids.push(await setting.payout(SILENT));
  await eventually('a list that is current', async () => (await setting.look()).histories === 0);
  const payouts = setting.service.collection<{ _id: string }>('payouts');
  const behind = ids.slice(0, SET_BACK);
  const change = (version: number) =>
    payouts.updateMany({ _id: { $in: behind } }, { $inc: { version } });
  await change(-1);
  const quick = await countReads(() => setting.look());
  const full = await countReads(() => setting.look(false, {}, { full: true }));
  await change(1);
  expect(quick.read).toBe(SET_BACK);
  expect(quick.result).toMatchObject({ histories: SET_BACK, documents: PAYOUTS });
  expect(full.read).toBeGreaterThanOrEqual(PAYOUTS);
  for (const { findings } of [quick.result, full.result]) {
    const named = findings.map(({ kind, id }) => `${kind} ${id}`);
    expect(named.toSorted()).toEqual(behind.map((id) => `behind ${id}`).toSorted());
  }
});

describe('when MongoDB is older than Temporal, reconcile', () => {
  type State = Awaited<ReturnType<typeof setting.read>>;
  const payouts = () => setting.service.collection<{ _id: string; status: string }>('payouts');

  /** Restores a backup, and rebuilds what is missing. @param count differences that there are then */
  async function restoreAndRebuild(
    backup: Awaited<ReturnType<typeof setting.backUp>>,
    count: number,
  ) {
    await setting.restore(backup);
    const differences = await setting.left(count);
    return { differences, ...(await setting.look(true)) };
  }

  /** Expects resources as they were, but for their texts and the random part of their places. */
  async function expectRebuilt(
    before: State,
    rebuilt: Rebuilt[],
    ignored: { [field: string]: undefined } = {},
  ) {
    const position = expect.any(String);
    const expected = before.documents.map((document, n) => {
      const texts = rebuilt[n]?.[2];
      return texts === undefined ? document : { ...document, position, ...texts };
    });
    const { documents, ...after } = await setting.read(...rebuilt);
    expect(after).toEqual({ balances: before.balances, recorded: before.recorded });
    expect(documents.map((document) => ({ ...document, ...ignored }))).toEqual(expected);
    expect(await setting.verified()).toEqual([]);
  }

  /** Simulates what the bank reports on a new payout that waits for it. */
  async function endPayout(body: object): Promise<string> {
    const id = await setting.payout(SILENT);
    await setting.simulate('payout', id, body);
    return id;
  }

  /** Facts of a payout that stays silent, as Temporal holds them. */
  function buildRouting() {
    const { amount, currency, method, recipient_id } = setting.shop.ask(SILENT);
    return {
      ...{ account_id: setting.shop.account_id, livemode: false, amount, fee: 0, currency, method },
      ...{ recipient_id, connector: setting.service.connector },
      ...{ balance_account: 'main', can_be_returned: true },
    };
  }

  test('rebuilds payouts that were sent or completed since, so that each is paid and reported once', async () => {
    const { shop } = setting;
    const before = await setting.payout(SILENT);
    const backup = await setting.backUp();
    await setting.simulate('payout', before, { event: 'completed' });
    const body = { ...SILENT, reference: 'r-1' };
    const key = randomUUID();
    const since: string = (await shop.pay(body, key)).body.id;
    await setting.simulate('payout', since, { event: 'completed' });
    const failed = await endPayout({ event: 'failed', code: 'AC04', reason: 'closed' });
    const running = await setting.payout(SILENT);
    const texts = { reference: null, metadata: '{}' };
    const rebuilt: Rebuilt[] = [
      ['payout', before],
      ...[since, failed, running].map((id): Rebuilt => ['payout', id, texts]),
    ];
    const state = await setting.read(...rebuilt);

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
    // The workflow of the one that was behind has requested attention meanwhile.
    const ignored = { attention_at: undefined, attention_since: undefined };
    await expectRebuilt(state, rebuilt, ignored);
    expect(await setting.left(0)).toEqual([]);

    // Its key is used as before, though the idempotency record was lost.
    const repeated = await shop.pay(body, key);
    expect([repeated.status, repeated.body.id]).toEqual([201, since]);
    expectRefusal(await shop.pay({ ...body, amount: 1 }, key), 'idempotency_key_reused');
    expect((await setting.read()).balances).toEqual(state.balances);
    // The one that runs goes on as if nothing had been.
    await setting.simulate('payout', running, { event: 'completed' });
    const completed = { status: 'completed', version: 4 };
    await setting.service.becomes('payouts', running, { status: 'completed' });
    expect(await setting.stores.payouts.get(running)).toMatchObject(completed);
  });

  test('lets a workflow that waits to write its transition go on when its document is back', async () => {
    const backup = await setting.backUp();
    const id = await setting.payout(SILENT);
    await setting.restore(backup);
    const callback = { callback_id: randomUUID(), occurred_at: new Date().toISOString() };
    await setting.handle('payout', id).signal('completed', callback);
    await setting.left(1);
    await setting.look(true);
    await setting.handle('payout', id).result();
    const completed = { status: 'completed', version: 4 };
    expect(await setting.stores.payouts.get(id)).toMatchObject(completed);
    expect(await setting.verified()).toEqual([]);
  });

  test('rebuilds payments and refunds before the payouts that their money has paid', async () => {
    const { shop, service } = setting;
    const early = await shop.settledPayment();
    const backup = await setting.backUp();
    const payment = await shop.settledPayment();
    const refund = () =>
      shop.post('/v1/refunds', { payment_id: payment.id, reason: 'R1' }, { idempotencyKey: 'all' });
    const refunded: string = (await refund()).body.id;
    await setting.simulate('refund', refunded, { event: 'settled' });
    const { id: failed } = await setting.refund({ payment_id: early.id });
    await setting.simulate('refund', failed, { event: 'failed' });
    const customer = { email: 'ada@example.com', first_name: 'Ada' };
    const open = await setting.payment({ customer, metadata: { k: 'M0' } });
    const texts = {
      ...{ metadata: '{}', reference: null, customer: { reference: null, ciphertext: null } },
      ...{ success_url: `${service.url}/`, error_url: `${service.url}/` },
    };
    const rebuilt: Rebuilt[] = [
      ['payment', early.id],
      ...[payment.id, open].map((id): Rebuilt => ['payment', id, texts]),
      ...[refunded, failed].map((id): Rebuilt => ['refund', id, { reason: null }]),
    ];
    const state = await setting.read(...rebuilt);

    await restoreAndRebuild(backup, 4);
    await expectRebuilt(state, rebuilt);
    const repeated = await refund();
    expect([repeated.status, repeated.body.id]).toEqual([201, refunded]);
    expect((await setting.read()).balances).toEqual(state.balances);
  });

  test('rebuilds crypto payments, credited once, and settlements, sent once to the wallet of that time', async () => {
    const { stores } = setting;
    const later = '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed';
    const simulate = (id: string, body: object) => setting.simulate('crypto_payment', id, body);
    await setting.registerWallet();
    const before = await setting.cryptoPayment();
    const backup = await setting.backUp();
    await simulate(before, { event: 'underpaid' });
    await simulate(before, { event: 'received' });
    const idempotencyKey = randomUUID();
    const released = await setting.cryptoPayment({ idempotencyKey });
    await simulate(released, { event: 'held' });
    await eventually('attention', async () => {
      return (await stores.crypto_payments.get(released))?.attention;
    });
    await setting.act('crypto_payment', released, 'release');
    await setting.handle('crypto_payment', released).result();
    const open = await setting.cryptoPayment();
    await simulate(open, { amount: '7', confirmations: 1 });
    await setting.registerWallet(later);
    const settle = async (event: string) => {
      // The chain reports nothing more once it is sent.
      const id = await setting.cryptoSettlement('66643');
      await setting.service.becomes('crypto_settlements', id, { status: 'sent' });
      await setting.simulate('crypto_settlement', id, { event });
      await setting.handle('crypto_settlement', id).result();
      return id;
    };
    const rebuilt: Rebuilt[] = [
      ['crypto_payment', before],
      ...[released, open].map((id): Rebuilt => ['crypto_payment', id, {}]),
      ['crypto_settlement', await settle('completed'), {}],
      ['crypto_settlement', await settle('failed'), {}],
    ];
    const state = await setting.read(...rebuilt);

    const { differences } = await restoreAndRebuild(backup, 5);
    expect(differences.map(({ kind, resource, id }) => [kind, resource, id])).toEqual(
      expect.arrayContaining(
        rebuilt.map(([resource, id], n) => [n === 0 ? 'behind' : 'missing', resource, id]),
      ),
    );
    await expectRebuilt(state, rebuilt);
    expect(state.documents.at(-1)).toMatchObject({ wallet_address: later });
    expect(await setting.left(0)).toEqual([]);
    expect(await setting.cryptoPayment({ idempotencyKey })).toBe(released);
  });

  test('rebuilds a chargeback after the refunds before it', async () => {
    const { stores, shop } = setting;
    const { id } = await shop.settledPayment();
    const backup = await setting.backUp();
    const { id: refund } = await setting.refund({ payment_id: id });
    await setting.simulate('refund', refund, { event: 'settled' });
    await setting.report('payment', id, 'clawed_back');
    await eventually('the dispute', async () => (await stores.payments.get(id))?.disputed_at);
    await setting.act('payment', id, 'claw_back');
    await setting.handle('payment', id).result();
    expect(await stores.payments.get(id)).toMatchObject({ refunded: 300, disputed: 1_050 });
    const state = await setting.read(['payment', id]);

    const { differences } = await restoreAndRebuild(backup, 2);
    expect(differences.find((finding) => finding.id === id)).toMatchObject({
      ...{ kind: 'behind', document: 'settled v4', workflow: 'settled v7, closed' },
    });
    await expectRebuilt(state, [['payment', id]]);
    expect(await stores.refunds.get(refund)).toMatchObject({ status: 'settled' });
    const [dispute] = await stores.disputes.forPayment(id);
    expect(dispute).toMatchObject({ amount: 1_050, transfers: [{ held: 1_050, owed: 0 }] });
    expect(await setting.left(0)).toEqual([]);
  });

  test('rebuilds a dispute of a bank, what it took, and what came back after its end', async () => {
    const { stores, shop } = setting;
    const { id } = await shop.settledPayment();
    const backup = await setting.backUp();
    const of = { dispute_id: 'D1' };
    // The account of the backup says that the service bears the fee.
    await stores.accounts.setAcquirerFee(shop.account_id, 'merchant');
    await setting.report('payment', id, 'dispute_opened', { ...of, amount: 400, fee: 15 });
    const dispute = await eventually('the dispute', async () => {
      const [first] = await stores.disputes.forPayment(id);
      return first;
    });
    await stores.accounts.setAcquirerFee(shop.account_id, 'service');
    await setting.report('payment', id, 'dispute_won', { ...of, amount: 0 });
    await setting.handle('dispute', dispute._id).result();
    const back = { ...of, amount: 400, bank_reference: `B-${id}` };
    await setting.report('payment', id, 'dispute_reinstated', back);
    await eventually(
      'the money',
      async () => (await stores.disputes.get(dispute._id))?.amount === 0,
    );
    await setting.handle('dispute', dispute._id).result();
    const state = await setting.read(['dispute', dispute._id]);

    const { differences } = await restoreAndRebuild(backup, 1);
    expect(differences).toMatchObject([{ kind: 'missing', resource: 'dispute', id: dispute._id }]);
    await expectRebuilt(state, [['dispute', dispute._id, {}]]);
    expect(await stores.payments.get(id)).toMatchObject({ disputed: 0, disputes_open: 0 });
    expect(await setting.verified()).toEqual([]);
    expect(await setting.left(0)).toEqual([]);
  });

  test('rebuilds a dispute without the money that did not fit then', async () => {
    const { stores, shop } = setting;
    const { id } = await shop.settledPayment();
    const { id: refund } = await setting.refund({ payment_id: id });
    await setting.simulate('refund', refund, { event: 'settled' });
    const backup = await setting.backUp();
    await setting.report('payment', id, 'dispute_opened', { dispute_id: 'D1', amount: 1_000 });
    const dispute = await eventually('the dispute', async () => {
      const [first] = await stores.disputes.forPayment(id);
      return first?.attention === 'dispute_differs' && first;
    });
    expect(dispute).toMatchObject({ amount: 0, transfers: [] });

    await restoreAndRebuild(backup, 1);
    const [rebuilt] = await stores.disputes.forPayment(id);
    expect(rebuilt).toMatchObject({ amount: 0, transfers: [], status: 'needs_response' });
    expect(await setting.verified()).toEqual([]);
  });

  test('rebuilds what is in suspense, and what was decided about it', async () => {
    const { stores } = setting;
    const id = await setting.payout(SILENT);
    const backup = await setting.backUp();
    await setting.simulate('payout', id, { event: 'completed' });
    // A report that comes while it ends has the task, and with it the time of the event, repeated.
    await setting.handle('payout', id).result();
    const isHeld = async () => (await stores.payouts.get(id))?.attention === 'second_completion';
    await setting.report('payout', id, 'completed', { bank_reference: 'again', amount: 700 });
    await eventually('money in suspense', isHeld);
    await setting.act('payout', id, 'resolve_movement', { as: 'bank', amount: 300 });
    await setting.act('payout', id, 'resolve_movement', { as: 'loss', amount: 100 });
    await setting.handle('payout', id).result();
    await setting.simulate('payout', id, { event: 'returned' });
    const state = await setting.read(['payout', id]);
    expect(state.recorded[0]?.movements).toMatchObject([
      { direction: 'out', state: 'applied' },
      { direction: 'out', bank_reference: 'again', amount: 700, state: 'suspense' },
      { direction: 'in', amount: 300, state: 'applied' },
      { direction: 'in', amount: SILENT.amount, state: 'applied' },
    ]);

    await restoreAndRebuild(backup, 1);
    await expectRebuilt(state, [['payout', id]]);
  });

  test('rebuilds fees as they were borne, also where the account says otherwise now', async () => {
    const { stores, shop } = setting;
    const bear = (bearer: FeeBearer) => stores.accounts.setAcquirerFee(shop.account_id, bearer);
    const [own, held] = [await setting.payment(), await setting.payment()];
    const backup = await setting.backUp();
    const settle = (id: string, facts: object) => setting.report('payment', id, 'settled', facts);
    await bear('merchant');
    await settle(own, { fee: 40 });
    await settle(held, { amount: 999, fee: 40 });
    const isHeld = async () => (await stores.payments.get(held))?.attention === 'amount_differs';
    await eventually('money in suspense', isHeld);
    await setting.act('payment', held, 'mark_settled');
    for (const id of [own, held]) await setting.handle('payment', id).result();
    await bear('service');
    const rebuilt = [own, held].map((id): Rebuilt => ['payment', id]);
    const state = await setting.read(...rebuilt);
    const fees = state.recorded.map(({ entries }) => entries.map(({ fee = 0 }) => Number(fee)));
    expect(fees).toEqual([[40], [0, 40]]);

    await restoreAndRebuild(backup, 2);
    await expectRebuilt(state, rebuilt);
  });

  test('pays once for a key of which the backup has the idempotency record, and keeps its texts', async () => {
    const { stores, shop } = setting;
    const key = randomUUID();
    const backup = await setting.backUp();
    const body = { ...SILENT, reference: 'r-2', metadata: { order: 7 } };
    const { id } = (await shop.pay(body, key)).body;
    // The record is written before anything else, so a backup between the two has it alone.
    const records = setting.service.collection<{ _id: string } & Document>('idempotency_records');
    const record = await records.findOne({ resource_id: id }, { projection: { expires_at: 0 } });
    if (record === null) throw new Error('There is no idempotency record.');
    const texts = { reference: 'r-2', metadata: '{"order":7}' };
    const request = { payout: texts, routing: buildRouting() };
    await setting.restore(backup);
    await records.insertOne({ ...record, request, status: null, body: null });

    await setting.left(1);
    const { findings } = await setting.look(true);
    expect(findings).toContainEqual(expect.objectContaining({ id, done: true, key_lost: false }));
    const repeated = await shop.pay(body, key);
    expect([repeated.status, repeated.body.id]).toEqual([201, id]);
    expect(await stores.payouts.get(id)).toMatchObject(texts);
    expect(await setting.verified()).toEqual([]);
  });

  test('names a payout whose key Temporal does not hold, since a repeated request pays again', async () => {
    const { stores, service } = setting;
    const routing = buildRouting();
    const owner = { account_id: routing.account_id, livemode: false };
    const key = { ...owner, operation: 'createPayout', key: 'k', fingerprint: 'f' };
    const request = { payout: { reference: null, metadata: '{}' }, routing };
    const backup = await setting.backUp();
    const { lifecycle: lifecycleQueue } = service.queues;
    const now = () => new Date();
    const deps = { client: service.temporal, lifecycleQueue, stores, now };
    const temporal = createTemporalClient(deps);
    // A payout that a busy machine did not accept in time has released its key.
    const id = await retryUntilDone(async () => {
      const record = { ...key, resource_id: randomUUID(), request_id: 'r', request };
      const { resource_id } = await stores.idempotency.reserveKey(record, new Date());
      await temporal.openPayout({ ...routing, payout_id: resource_id, request_id: 'r' });
      return resource_id;
    });
    await service.becomes('payouts', id, { status: 'sent' });
    const { findings } = await restoreAndRebuild(backup, 1);
    expect(findings).toContainEqual(expect.objectContaining({ id, done: true, key_lost: true }));
    expect(await stores.payouts.get(id)).toMatchObject({ status: 'sent' });
  });

  test('continues a rebuilding that stopped before any of its writes, and ends the same', async () => {
    const { stores } = setting;
    const backup = await setting.backUp();
    const id = await endPayout({ event: 'completed' });
    const state = await setting.read(['payout', id]);
    await setting.restore(backup);
    await setting.left(1);

    let allowed = 0;
    let writes = 0;
    const stop =
      <Args extends unknown[], T>(write: (...args: Args) => Promise<T>) =>
      async (...args: Args): Promise<T> => {
        writes += 1;
        if (writes > allowed) throw new MongoError('stopped');
        return await write(...args);
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
    await expectRebuilt(state, [['payout', id, {}]]);
    await rebuilder.rebuild('payout', id, 'life');
    await expectRebuilt(state, [['payout', id, {}]]);
  });

  test('posts nothing below zero where the balance was spent again, and leaves that to an operator', async () => {
    const { stores, shop } = setting;
    const backup = await setting.backUp();
    const [available = 0] = await shop.balance({ currency: 'EUR', balance_account: 'marketing' });
    const whole = { amount: available, metadata: { balance_account: 'marketing' } };
    const id = await setting.payout(whole);
    const { findings } = await restoreAndSpend();
    const short = { id, kind: 'short', done: false, reason: expect.any(String) };
    expect(findings).toContainEqual(expect.objectContaining(short));
    expect(await stores.payouts.get(id)).toBeNull();
    expect(await setting.verified()).toEqual([]);

    // Once the balance is funded, the same command succeeds.
    const funding = { amount: Number(available), balance_account: 'marketing' };
    await fundAccount(setting.service, shop, funding);
    await setting.look(true);
    expect(await setting.left(0)).toEqual([]);
    expect(await stores.payouts.get(id)).not.toBeNull();
    expect(await setting.verified()).toEqual([]);

    async function restoreAndSpend() {
      await setting.restore(backup);
      await setting.payout(whole);
      await setting.left(1);
      return await setting.look(true);
    }
  });

  test('restarts no lost workflow while its document still differs', async () => {
    const { service, handle } = setting;
    const id = await setting.payout(SILENT);
    await service.becomes('payouts', id, { status: 'sent' });
    await handle('payout', id).terminate('lost');
    const set = (status: string) => payouts().updateOne({ _id: id }, { $set: { status } });
    await set('submitted');
    await setting.left(1);
    const apply = async () => (await setting.look(true)).findings.filter((each) => each.id === id);
    expect(await apply()).toMatchObject([{ kind: 'contradicts', act: 'person', done: false }]);
    expect((await handle('payout', id).describe()).status.name).toBe('TERMINATED');

    await set('sent');
    expect(await apply()).toMatchObject([{ kind: 'orphan', act: 'restart', done: true }]);
    expect((await handle('payout', id).describe()).status.name).toBe('RUNNING');
  });
});

test('reconcile finds a booking that the document lacks, since it counts in the version', async () => {
  const { stores } = setting;
  const id = await setting.payment();
  const handle = setting.handle('payment', id);
  const readVersion = async () =>
    (await handle.describe()).typedSearchAttributes.get(SEARCH_KEYS.version);
  expect(await readVersion()).toBe((await stores.payments.get(id))?.version);
  await setting.report('payment', id, 'settled', { amount: 1, currency: 'EUR' });
  const { attention, version } = await eventually('funds in suspense', async () => {
    const payment = await stores.payments.get(id);
    return payment?.attention === 'amount_differs' && payment;
  });
  expect(version).toBe(4);
  await eventually('the version in the list', async () => (await readVersion()) === version);

  const payments = setting.service.collection<{ _id: string }>('payments');
  await payments.updateOne({ _id: id }, { $set: { attention: null, version: 2 } });
  expect(await setting.left(1)).toMatchObject([{ kind: 'behind', resource: 'payment', id }]);
  await payments.updateOne({ _id: id }, { $set: { attention, version } });
  expect(await setting.left(0)).toEqual([]);
});

const LOAD_MS = 12_000;
/** A workflow task may take so long on a busy machine after it has written. */
const SETTLE_MS = 25_000;

test('reconcile reports nothing that is in progress in a service under load', async () => {
  const endAt = Date.now() + LOAD_MS;
  let isCompared = false;
  let made = 0;
  const load = async (make: () => Promise<unknown>) => {
    while (!isCompared) {
      await make();
      made += 1;
    }
  };
  const compare = async () => {
    const findings: unknown[] = [];
    try {
      for (let runs = 0; Date.now() < endAt || runs < 2 || made < 5; runs += 1) {
        findings.push(...(await setting.look(false, { settleMs: SETTLE_MS })).findings);
      }
    } finally {
      isCompared = true;
    }
    return findings;
  };
  const [findings] = await Promise.all([
    compare(),
    ...[1, 2].map(() => load(() => setting.shop.settledPayment())),
    ...[1, 2].map(() => load(() => setting.payout())),
  ]);
  expect(findings).toEqual([]);
}, 480_000);

describe('when Temporal is older than MongoDB, reconcile', () => {
  /** A Temporal server whose files can be copied and restored; it stays at its address. */
  const temporal = useFixture(
    async () => {
      const { signal } = new AbortController();
      const context = { cacheDir: cacheDirectory(process.env), env: process.env, signal };
      const { path: executable } = await provision(temporalCli, {
        ...{ ...context, progress: silentProgress },
      });
      const folder = mkdtempSync(join(tmpdir(), 'restorable-temporal-'));
      const [dbFile, logFile] = [join(folder, 'temporal.db'), join(folder, 'temporal.log')];
      const port = await freePort();
      const start = () => startTemporal({ executable, dbFile, port, logFile });
      let server = await start();
      /** Copies its files while it is stopped; where there is none, there is none afterwards. */
      const copy = async (from: string, to: string) => {
        await server.stop();
        for (const suffix of ['', '-wal', '-shm']) {
          rmSync(`${to}${suffix}`, { force: true });
          if (existsSync(`${from}${suffix}`)) cpSync(`${from}${suffix}`, `${to}${suffix}`);
        }
        server = await start();
      };
      return {
        address: server.address,
        backUp: () => copy(dbFile, join(folder, 'backup.db')),
        restore: () => copy(join(folder, 'backup.db'), dbFile),
        close: async () => {
          await server.stop();
          rmSync(folder, { recursive: true });
        },
      };
    },
    ({ close }) => close(),
  );
  const setting = useRestoreSetting(() => ({ temporal: temporal.address }));

  /** Time for two stops and starts of a server, and of its workers. */
  const RESTARTS_MS = 500_000;

  test(
    'pays each payout once: its workflow starts again or syncs from the database',
    async () => {
      const { stores, service } = setting;
      const complete = (id: string) => setting.simulate('payout', id, { event: 'completed' });
      // The bank takes this one to `submitted` and stays silent.
      const submitted = await setting.payout({ ...SILENT, amount: 66_624 }, 'submitted');
      const sent = await setting.payout(SILENT);
      await service.stopWorkers();
      await temporal.backUp();
      await service.startWorkers();
      await complete(submitted);
      await complete(sent);
      const ended = await setting.payout(SILENT);
      await complete(ended);
      const running = await setting.payout(SILENT);
      const ids = [submitted, sent, ended, running];
      const readAll = () => setting.read(...ids.map((id) => ['payout', id] as const));
      const untilStatuses = async (...statuses: string[]) =>
        eventually(`payouts that are ${statuses}`, async () => {
          const stored = await Promise.all(ids.map((id) => stores.payouts.get(id)));
          return (
            JSON.stringify(stored.map((payout) => payout?.status)) === JSON.stringify(statuses)
          );
        });
      await untilStatuses('completed', 'completed', 'completed', 'sent');
      const before = await readAll();

      await service.stopWorkers();
      await temporal.restore();
      const orphan = { kind: 'orphan', id: running, workflow: 'not found', act: 'restart' };
      expect(await setting.left(1)).toMatchObject([orphan]);
      const resolved = await eventually('both whose documents are newer', async () => {
        const { findings } = await setting.look();
        const newer = findings.filter((finding) => !isUnresolved(finding));
        return newer.length >= 2 && newer;
      });
      const early = expect.stringMatching(/^(created v1|submitted v2), run/);
      expect(
        resolved.map(({ kind, id, document, workflow }) => [kind, id, document, workflow]),
      ).toEqual(
        expect.arrayContaining([
          ['ahead', submitted, 'completed v4', early],
          ['ahead', sent, 'completed v4', 'sent v3, running'],
        ]),
      );
      const done = expect.objectContaining({ ...orphan, done: true });
      expect((await setting.look(true)).findings).toContainEqual(done);
      expect(await setting.left(0)).toEqual([]);

      await service.startWorkers();
      await complete(running);
      // The bank reports once more to the workflows that are older.
      for (const id of [submitted, sent]) {
        const callback = { callback_id: randomUUID(), occurred_at: new Date().toISOString() };
        const signaled = setting.handle('payout', id).signal('completed', callback);
        // A workflow that has read its document in the meantime has ended.
        await signaled.catch((error: unknown) => {
          if (!(error instanceof WorkflowNotFoundError)) throw error;
        });
        await setting.handle('payout', id).result();
      }
      await untilStatuses('completed', 'completed', 'completed', 'completed');
      const after = await readAll();
      expect(after.balances).toEqual(before.balances);
      expect(after.recorded.slice(0, 3)).toEqual(before.recorded.slice(0, 3));
      expect(after.recorded[3]?.entries).toEqual(before.recorded[3]?.entries);
      const bank = service.mongo.db(`${service.database}_sandbox_bank`);
      const payments = await bank.collection('payouts').find().toArray();
      expect(payments.map(({ _id }) => String(_id)).toSorted()).toEqual(ids.toSorted());
      expect(await setting.verified()).toEqual([]);
    },
    RESTARTS_MS,
  );
});

import { randomUUID } from 'node:crypto';
import { cpSync, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { WorkflowNotFoundError } from '@temporalio/client';
import { type Document, MongoError } from 'mongodb';
import { deliverCallback } from '../../../src/callbacks/deliver';
import type { CallbackName, CallbackResource } from '../../../src/domain/banks/callback';
import { ServiceError } from '../../../src/domain/errors';
import type { FeeBearer } from '../../../src/domain/merchants/acquirer-fee';
import { SEARCH_KEYS } from '../../../src/domain/search-attributes';
import { verifyLedger } from '../../../src/ledger-check/verify';
import { isInFlight, KINDS, type Resource } from '../../../src/lifecycles';
import { sandboxBankDatabase } from '../../../src/service/banks/sandbox';
import { type Act, actOn } from '../../../src/service/operators/act';
import {
  type Finding,
  isUnresolved,
  type ReconcileDeps,
  reconcile,
} from '../../../src/service/operators/reconcile/reconcile';
import type { Stores } from '../../../src/store';
import { createTemporalClient } from '../../../src/temporal/client';
import { freePort } from '../../../stack/ports';
import { cacheDirectory, provision } from '../../../stack/provision/provision';
import { temporalCli } from '../../../stack/provision/temporal';
import { startTemporal } from '../../../stack/temporal-server';
import { silentProgress } from '../../../stack/terminal';
import { expectRefusal } from '../../api/refusal';
import { openResourceSetting, type ResourceSetting } from '../../cli/resource-setting';
import { eventually, retryUntilDone } from '../../support/eventually';
import { fundAccount } from '../../support/factories';
import { useFixture } from '../../support/fixture';
import { gate } from '../../support/gate';
import { openRebuilder } from '../../support/rebuilder';
import type { ServiceOptions } from '../../support/service';

type Backup = Map<string, Document[]>;

/** The bank takes it to `sent` and stays silent; it is not overdue before the next business day. */
const SILENT = { amount: 66_623, method: 'sepa_credit_transfer' };

const setting = useFixture(openRestoreSetting, ({ close }) => close());

/**
 * A resource, and texts that Temporal does not hold; undefined where its document was behind, null
 * where others of it were lost.
 */
type Rebuilt = [kind: CallbackResource, id: string, texts?: object | null];

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

  /**
   * Expects resources as they were, but for their texts and the random part of their places.
   * @param attended the one whose workflow has requested attention meanwhile
   */
  async function expectRebuilt(before: State, rebuilt: Rebuilt[], attended?: string) {
    const found = await setting.read(...rebuilt);
    const documents = before.documents.map((document, n) => {
      const [, id, texts] = rebuilt[n] ?? [];
      const own = found.documents[n];
      const { position = null, attention_at, attention_since }: Document = { ...own };
      const times = id === attended ? { attention_at, attention_since } : {};
      return { ...document, ...times, ...(texts && { position, ...texts }) };
    });
    expect(found).toEqual({ ...before, documents });
    expect(await setting.verified()).toEqual([]);
  }
  function buildRouting() {
    const { amount, currency, method, recipient_id } = setting.shop.ask(SILENT);
    return {
      ...{ account_id: setting.shop.account_id, livemode: false, amount, fee: 0, currency, method },
      ...{ recipient_id, connector: setting.service.connector },
      ...{ balance_account: 'main', can_be_returned: true },
    };
  }

  const simulate = (kind: CallbackResource, id: string, event: string) =>
    setting.simulate(kind, id, { event });
  const ended = (kind: CallbackResource, id: string) => setting.handle(kind, id).result();
  const bear = (bearer: FeeBearer) =>
    setting.stores.accounts.setAcquirerFee(setting.shop.account_id, bearer);
  const report = (id: string, name: CallbackName, facts: object = {}) =>
    setting.report('payment', id, name, facts);
  const untilAttention = (kind: keyof typeof setting.stores & `${CallbackResource}s`, id: string) =>
    eventually(`attention of ${id}`, async () => (await setting.stores[kind].get(id))?.attention);
  const untilDispute = (payment_id: string, attention: string | null = null) =>
    eventually('the dispute', async () => {
      const [first] = await setting.stores.disputes.forPayment(payment_id);
      return first?.attention === attention && first;
    });

  interface Story {
    rebuilt: Rebuilt[];
    /** Expects what holds once all is rebuilt. */
    expectMore?: () => Promise<unknown>;
  }

  /** Events at once, each around the time of the backup. */
  const STORIES: ((backup: () => Promise<void>) => Promise<Story>)[] = [
    async function payouts(backup) {
      const { shop, service, stores } = setting;
      const before = await setting.payout(SILENT);
      await backup();
      await simulate('payout', before, 'completed');
      const [body, key] = [{ ...SILENT, reference: 'r-1' }, randomUUID()];
      const since: string = (await shop.pay(body, key)).body.id;
      await simulate('payout', since, 'completed');
      const failed = await setting.payout(SILENT);
      await setting.simulate('payout', failed, { event: 'failed', code: 'AC04', reason: 'no' });
      const running = await setting.payout(SILENT);
      const texts = { reference: null, metadata: '{}' };
      const lost = [since, failed, running].map((id): Rebuilt => ['payout', id, texts]);
      const expectMore = async () => {
        // Its key is used as before, though the idempotency record was lost.
        const repeated = await shop.pay(body, key);
        expect([repeated.status, repeated.body.id]).toEqual([201, since]);
        expectRefusal(await shop.pay({ ...body, amount: 1 }, key), 'idempotency_key_reused');
        // The one that runs goes on as if nothing had been.
        await simulate('payout', running, 'completed');
        await service.becomes('payouts', running, { status: 'completed' });
        expect(await stores.payouts.get(running)).toMatchObject({ version: 4 });
      };
      return { rebuilt: [['payout', before], ...lost], expectMore };
    },
    async function paymentsAndRefunds(backup) {
      const { shop, service } = setting;
      const early = await shop.settledPayment();
      await backup();
      const { id: payment } = await shop.settledPayment();
      const refund = () =>
        shop.post('/v1/refunds', { payment_id: payment, reason: 'R1' }, { idempotencyKey: 'all' });
      const refunded: string = (await refund()).body.id;
      await simulate('refund', refunded, 'settled');
      const { id: failed } = await setting.refund({ payment_id: early.id });
      await simulate('refund', failed, 'failed');
      const customer = { email: 'ada@example.com', first_name: 'Ada' };
      const open = await setting.payment({ customer, metadata: { k: 'M0' } });
      const url = `${service.url}/`;
      const texts = {
        ...{ metadata: '{}', reference: null, customer: { reference: null, ciphertext: null } },
        ...{ success_url: url, error_url: url },
      };
      const lost = [
        ...[payment, open].map((id): Rebuilt => ['payment', id, texts]),
        ...[refunded, failed].map((id): Rebuilt => ['refund', id, { reason: null }]),
      ];
      const expectMore = async () => expect((await refund()).body.id).toBe(refunded);
      return { rebuilt: [['payment', early.id, null], ...lost], expectMore };
    },
    async function cryptoPaymentsAndSettlements(backup) {
      const later = '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed';
      await setting.registerWallet();
      const before = await setting.cryptoPayment();
      await backup();
      await simulate('crypto_payment', before, 'underpaid');
      await simulate('crypto_payment', before, 'received');
      const idempotencyKey = randomUUID();
      const released = await setting.cryptoPayment({ idempotencyKey });
      await simulate('crypto_payment', released, 'held');
      await untilAttention('crypto_payments', released);
      await setting.act('crypto_payment', released, 'release');
      await ended('crypto_payment', released);
      const open = await setting.cryptoPayment();
      await setting.simulate('crypto_payment', open, { amount: '7', confirmations: 1 });
      await setting.registerWallet(later);
      const settle = async (event: string): Promise<Rebuilt> => {
        // The chain reports nothing more once it is sent.
        const id = await setting.cryptoSettlement('66643');
        await setting.service.becomes('crypto_settlements', id, { status: 'sent' });
        await simulate('crypto_settlement', id, event);
        await ended('crypto_settlement', id);
        const stored = await setting.stores.crypto_settlements.get(id);
        expect(stored?.wallet_address).toBe(later);
        return ['crypto_settlement', id, {}];
      };
      const lost = [released, open].map((id): Rebuilt => ['crypto_payment', id, {}]);
      lost.push(await settle('completed'), await settle('failed'));
      const expectMore = async () =>
        expect(await setting.cryptoPayment({ idempotencyKey })).toBe(released);
      return { rebuilt: [['crypto_payment', before], ...lost], expectMore };
    },
    async function chargebackAfterRefund(backup) {
      const { id } = await setting.shop.settledPayment();
      await backup();
      const { id: refund } = await setting.refund({ payment_id: id });
      await simulate('refund', refund, 'settled');
      await report(id, 'clawed_back');
      await untilAttention('payments', id);
      await setting.act('payment', id, 'claw_back');
      await ended('payment', id);
      const { payments, disputes } = setting.stores;
      expect(await payments.get(id)).toMatchObject({ refunded: 300, disputed: 1_050 });
      const expectMore = async () => {
        const dispute = { amount: 1_050, transfers: [{ held: 1_050, owed: 0 }] };
        expect(await disputes.forPayment(id)).toMatchObject([dispute]);
      };
      const lost: Rebuilt = ['refund', refund, { reason: null }];
      return { rebuilt: [['payment', id], lost], expectMore };
    },
    async function disputeOfMoneyThatDoesNotFit(backup) {
      const { id } = await setting.shop.settledPayment();
      await simulate('refund', (await setting.refund({ payment_id: id })).id, 'settled');
      await backup();
      await report(id, 'dispute_opened', { dispute_id: 'D1', amount: 1_000 });
      const { _id, ...dispute } = await untilDispute(id, 'dispute_differs');
      expect(dispute).toMatchObject({ amount: 0, transfers: [], status: 'needs_response' });
      return { rebuilt: [['dispute', _id, {}]] };
    },
    async function moneyInSuspense(backup) {
      const id = await setting.payout(SILENT);
      await backup();
      await simulate('payout', id, 'completed');
      // A report that comes while it ends has the task, and with it the time of the event, repeated.
      await ended('payout', id);
      await setting.report('payout', id, 'completed', { bank_reference: 'again', amount: 700 });
      await untilAttention('payouts', id);
      await setting.act('payout', id, 'resolve_movement', { as: 'bank', amount: 300 });
      await setting.act('payout', id, 'resolve_movement', { as: 'loss', amount: 100 });
      await ended('payout', id);
      await simulate('payout', id, 'returned');
      expect(await setting.stores.movements.forResource(id)).toMatchObject([
        { direction: 'out', state: 'applied' },
        { direction: 'out', bank_reference: 'again', amount: 700, state: 'suspense' },
        { direction: 'in', amount: 300, state: 'applied' },
        { direction: 'in', amount: SILENT.amount, state: 'applied' },
      ]);
      return { rebuilt: [['payout', id]] };
    },
    /** The merchant bears them at first, and the service in the backup and later. */
    async function feesOfThatTime(backup) {
      const [own, held] = [await setting.payment(), await setting.payment()];
      const { id } = await setting.shop.settledPayment();
      await backup();
      await bear('merchant');
      await report(own, 'settled', { fee: 40 });
      await report(held, 'settled', { amount: 999, fee: 40 });
      await untilAttention('payments', held);
      await setting.act('payment', held, 'mark_settled');
      for (const each of [own, held]) await ended('payment', each);
      const of = { dispute_id: 'D1' };
      await report(id, 'dispute_opened', { ...of, amount: 400, fee: 15 });
      const { _id } = await untilDispute(id);
      await bear('service');
      await report(id, 'dispute_won', { ...of, amount: 0 });
      await ended('dispute', _id);
      // Comes back after its end.
      const back = { ...of, amount: 400, bank_reference: `B-${id}` };
      await report(id, 'dispute_reinstated', back);
      await eventually('the money', async () => (await untilDispute(id)).amount === 0);
      await ended('dispute', _id);
      const { ledger, payments } = setting.stores;
      const entries = (await Promise.all([own, held].map(ledger.forResource))).flat();
      const fees = entries.map(({ fee = 0 }) => Number(fee));
      expect(fees.toSorted()).toEqual([0, 40, 40]);
      expect(await payments.get(id)).toMatchObject({ disputed: 0, disputes_open: 0 });
      const behind = [own, held].map((each): Rebuilt => ['payment', each]);
      return { rebuilt: [...behind, ['payment', id, null], ['dispute', _id, {}]] };
    },
  ];

  test('rebuilds all that came since, each paid, posted and reported once, in the order of its money', async () => {
    const { opened, release } = gate();
    let prepared = 0;
    const happening = STORIES.map((happen) =>
      happen(() => {
        prepared += 1;
        return opened;
      }),
    );
    await eventually('all to be prepared', async () => prepared === STORIES.length);
    const backup = await setting.backUp();
    release();
    const stories = await Promise.all(happening);
    const rebuilt = stories.flatMap((story) => story.rebuilt);
    const state = await setting.read(...rebuilt);
    await setting.restore(backup);

    const lost = rebuilt.filter(([, , texts]) => texts !== null);
    const differences = await setting.left(lost.length);
    expect(differences.map(({ kind, resource, id, act }) => [kind, resource, id, act])).toEqual(
      expect.arrayContaining(
        lost.map(([kind, id, texts]) => [texts ? 'missing' : 'behind', kind, id, 'rebuild']),
      ),
    );
    const [before = '', since, failed, running] = rebuilt.map(([, id]) => id);
    const words = differences.map(({ id, document, workflow }) => [id, document, workflow]);
    expect(words).toEqual(
      expect.arrayContaining([
        [before, 'sent v3', 'completed v4, closed'],
        [since, null, 'completed v4, closed'],
        [failed, null, 'failed v4, closed'],
        [running, null, 'sent v3, running'],
      ]),
    );
    const { findings } = await setting.look(true);
    const done = findings.filter((each) => each.act === 'rebuild' && each.done && !each.key_lost);
    expect(done).toHaveLength(lost.length);
    await expectRebuilt(state, rebuilt, before);
    expect(await setting.left(0)).toEqual([]);
    for (const { expectMore } of stories) await expectMore?.();
    expect((await setting.read()).balances).toEqual(state.balances);
    expect(await setting.verified()).toEqual([]);
  });

  test('keeps the idempotency record that the backup has, names a key that Temporal does not hold, and lets a workflow that waits for its document go on', async () => {
    const { stores, shop, service } = setting;
    const backup = await setting.backUp();
    const [body, key] = [{ ...SILENT, reference: 'r-2', metadata: { order: 7 } }, randomUUID()];
    const { id } = (await shop.pay(body, key)).body;
    const waiting = await setting.payout(SILENT);
    const routing = buildRouting();
    const owner = { account_id: routing.account_id, livemode: false };
    const lost = { ...owner, operation: 'createPayout', key: 'k', fingerprint: 'f' };
    const { lifecycle: lifecycleQueue } = service.queues;
    const now = () => new Date();
    const temporal = createTemporalClient({
      client: service.temporal,
      lifecycleQueue,
      stores,
      now,
    });
    // A payout that a busy machine did not accept in time has released its key.
    const keyless = await retryUntilDone(async () => {
      const request = { payout: { reference: null, metadata: '{}' }, routing };
      const record = { ...lost, resource_id: randomUUID(), request_id: 'r', request };
      const { resource_id } = await stores.idempotency.reserveKey(record, new Date());
      await temporal.openPayout({ ...routing, payout_id: resource_id, request_id: 'r' });
      return resource_id;
    });
    await service.becomes('payouts', keyless, { status: 'sent' });
    // The record is written before anything else, so a backup between the two has it alone.
    const records = service.collection<{ _id: string } & Document>('idempotency_records');
    const record = await records.findOne({ resource_id: id }, { projection: { expires_at: 0 } });
    if (record === null) throw new Error('There is no idempotency record.');
    const texts = { reference: 'r-2', metadata: '{"order":7}' };
    await setting.restore(backup);
    const request = { payout: texts, routing };
    await records.insertOne({ ...record, request, status: null, body: null });
    const callback = { callback_id: randomUUID(), occurred_at: new Date().toISOString() };
    await setting.handle('payout', waiting).signal('completed', callback);

    await setting.left(3);
    const { findings } = await setting.look(true);
    const done = [id, keyless].map((of) => ({ id: of, done: true, key_lost: of === keyless }));
    expect(findings).toEqual(expect.arrayContaining(done.map(expect.objectContaining)));
    const repeated = await shop.pay(body, key);
    expect([repeated.status, repeated.body.id]).toEqual([201, id]);
    expect(await stores.payouts.get(id)).toMatchObject(texts);
    expect(await stores.payouts.get(keyless)).toMatchObject({ status: 'sent' });
    await ended('payout', waiting);
    const completed = { status: 'completed', version: 4 };
    expect(await stores.payouts.get(waiting)).toMatchObject(completed);
    expect(await setting.verified()).toEqual([]);
  });

  test('continues a rebuilding that stopped before any of its writes, and ends the same', async () => {
    const { stores } = setting;
    const backup = await setting.backUp();
    const id = await setting.payout(SILENT);
    await simulate('payout', id, 'completed');
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
    await setting.restore(backup);
    await setting.payout(whole);
    await setting.left(1);
    const { findings } = await setting.look(true);
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
  });

  test('restarts no lost workflow while its document still differs', async () => {
    const { service, handle } = setting;
    const id = await setting.payout(SILENT);
    await service.becomes('payouts', id, { status: 'sent' });
    await handle('payout', id).terminate('lost');
    const payouts = service.collection<{ _id: string }>('payouts');
    const set = (status: string) => payouts.updateOne({ _id: id }, { $set: { status } });
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

const LOAD_MS = 6_000;
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
  const setting = useFixture(
    () => openRestoreSetting({ temporal: temporal.address }),
    ({ close }) => close(),
  );

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

/** The whole product with a merchant, whose database can be put back to an earlier moment. */
async function openRestoreSetting(options: ServiceOptions = {}) {
  const began = new Date();
  const setting = await openResourceSetting(options);
  const { service } = setting;
  const { mongo, stores, temporal, queues, keys } = service;
  const { lifecycle: lifecycleQueue, webhooks: webhookQueue } = queues;
  const db = mongo.db(service.database);
  const rebuilderOn = (its: Stores) =>
    openRebuilder({ mongo, stores: its, temporal, payTokenKey: keys.pay_token, webhookQueue });
  const deps: ReconcileDeps = {
    ...{ db, stores, temporal, lifecycleQueue, webhookQueue },
    now: () => new Date(),
    progress: () => {},
    settleMs: 200,
    rebuilder: () => rebuilderOn(stores),
  };
  const look = (
    apply = false,
    other: Partial<ReconcileDeps> = {},
    options: { full?: boolean } = {},
  ) => reconcile({ ...deps, ...other }, { since: began, apply, ...options });
  return {
    ...setting,
    deps,
    stores,
    look,
    rebuilderOn,
    /** Findings that keep the stores apart, once as many as expected are listed as ended. */
    left: async (count: number) =>
      await eventually(`${count} differences`, async () => {
        const found = (await look()).findings.filter(isUnresolved);
        if (found.length !== count) return false;
        const current = await Promise.all(found.map((each) => isCurrent(setting, each)));
        return current.every(Boolean) && found;
      }),
    /** Acts as an operator, once the workflow knows what the document shows. */
    act: async (kind: CallbackResource, id: string, what: string, more: Partial<Act> = {}) =>
      await eventually(`${what} of ${kind} ${id}`, async () => {
        const act = { what, operator: 'mia', reason: 'their statement', ...more };
        return await actOn(deps, kind, id, act).catch((error: unknown) => {
          if (error instanceof ServiceError && error.code === 'wrong_state') return false;
          throw error;
        });
      }),
    report: (resource: CallbackResource, resource_id: string, name: CallbackName, facts = {}) =>
      deliverCallback(deps, {
        ...{ connector: service.connector, resource, resource_id, name },
        callback: { callback_id: randomUUID(), occurred_at: new Date().toISOString(), ...facts },
      }),
    verified: async () => (await verifyLedger(mongo, service.database, {})).differences,
    backUp: async (): Promise<Backup> => {
      await untilQuiet(setting);
      const names = (await db.listCollections().toArray()).map(({ name }) => name);
      const read = async (name: string) =>
        [name, await db.collection(name).find({}, { promoteLongs: false }).toArray()] as const;
      return new Map(await Promise.all(names.map(read)));
    },
    restore: async (backup: Backup) => {
      await untilQuiet(setting);
      for (const { name } of await db.listCollections().toArray()) {
        await db.collection(name).deleteMany();
        const rows = backup.get(name) ?? [];
        if (rows.length > 0) await db.collection(name).insertMany(rows);
      }
    },
    /** Reads what must be the same afterwards: balances, and documents, events, entries and movements of resources. */
    read: async (
      ...resources: (readonly [kind: CallbackResource, id: string, ...unknown[]])[]
    ) => ({
      balances: await stores.ledger.balances(setting.shop.account_id, false),
      documents: await Promise.all(
        resources.map(([kind, id]) =>
          db.collection<{ _id: string }>(`${kind}s`).findOne({ _id: id }),
        ),
      ),
      recorded: await Promise.all(resources.map(([, id]) => readRecorded(setting, id))),
    }),
  };
}

async function readRecorded({ service: { stores }, shop }: ResourceSetting, resource_id: string) {
  const filter = { account_id: shop.account_id, livemode: false, resource_id, limit: 50 };
  const events = await stores.events.list(filter);
  return {
    // The time of the insert is not what happened.
    entries: (await stores.ledger.forResource(resource_id))
      .toSorted(byId)
      .map(({ written_at, position, ...entry }) => entry),
    movements: await stores.movements.forResource(resource_id),
    events: events
      .map(({ _id, type, created, body }) => ({ _id, type, created, body }))
      .toSorted(byId),
  };
}

const byId = (a: { _id: string }, b: { _id: string }) => a._id.localeCompare(b._id);

/** Whether the list of workflows, which lags, has the run of a finding as it is. */
async function isCurrent({ handle }: ResourceSetting, { resource, id, workflow }: Finding) {
  const listed = /, (closed|running)$/.exec(workflow ?? '')?.[1];
  if (listed === undefined || resource === 'event') return true;
  const { status } = await handle(resource, id).describe();
  return (status.name === 'RUNNING') === (listed === 'running');
}

/** Waits until neither the bank, which repeats what was simulated, nor a workflow writes any more. */
async function untilQuiet({ service, handle }: ResourceSetting): Promise<void> {
  const { mongo, stores, database } = service;
  const outbox = mongo.db(sandboxBankDatabase(database)).collection('outbox');
  await eventually('the bank to have reported everything', async () => {
    if (await stores.sandboxReports.hasDue()) return false;
    const waiting = { state: 'pending' };
    const now = new Date();
    await outbox.updateMany({ ...waiting, due_at: { $gt: now } }, { $set: { due_at: now } });
    return (await outbox.countDocuments(waiting)) === 0;
  });
  for (const kind of KINDS) {
    // An operator's chargeback has no workflow of its own.
    const own = { kind: { $ne: 'clawed_back' } };
    const resources = await service.collection<Resource>(`${kind}s`).find(own).toArray();
    const ended = resources.filter(({ status }) => !isInFlight(kind, status));
    await Promise.all(ended.map(({ _id }) => handle(kind, _id).result()));
  }
}

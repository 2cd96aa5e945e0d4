import { randomUUID } from 'node:crypto';
import { NativeConnection, Worker } from '@temporalio/worker';
import type { CommandStartedEvent } from 'mongodb';
import type { RuleScope } from '../../src/domain/routing-rule';
import { connectorQueue } from '../../src/domain/task-queues';
import { createConnectors } from '../../src/routing';
import { setRule } from '../../src/service/routing/change';
import { pauseConnector, resumeConnector } from '../../src/service/routing/pause';
import { createStores } from '../../src/store';
import { CACHE_MS } from '../../src/store/cache';
import { runWorker } from '../../src/temporal/native';
import { operatorsAudit } from '../support/audit';
import { useFixture } from '../support/fixture';
import { call, eventually, idealPayment } from '../support/http';
import { scriptedBank } from '../support/scripted-bank';
import { temporalAddress } from '../support/servers';
import { useService } from '../support/service';
import { openShop, type Shop } from './payout-setting';

const RAIL = 'sepa_credit_transfer';
const NORTH = `north-${randomUUID().slice(0, 8)}`;
const SOUTH = `south-${randomUUID().slice(0, 8)}`;
const BANKS = { [NORTH]: scriptedBank(), [SOUTH]: scriptedBank() };
/** The last one serves what no rule routes. */
const sandboxConnectors = [NORTH, SOUTH].map((name) => `${name}=${RAIL}|card_payout|ideal`).join();

// Banks of its own, and a cache whose reads are counted.
const service = useService({ tests: sandboxConnectors, economical: true });

useFixture(
  async () => {
    const connection = await NativeConnection.connect({ address: temporalAddress() });
    const workers = await Promise.all(
      Object.entries(BANKS).map(([connector, { activities }]) =>
        Worker.create({
          ...{ connection, namespace: 'default', activities },
          taskQueue: connectorQueue(connector),
        }),
      ),
    );
    const running = workers.map(runWorker);
    return async () => {
      for (const worker of workers) worker.shutdown();
      await Promise.all(running);
      await connection.close();
    };
  },
  (stop) => stop(),
);

let ada: Shop;
let bob: Shop;
let rulesRead = 0;

beforeAll(async () => {
  [ada, bob] = await Promise.all([openShop(service), openShop(service)]);
  service.mongo.on('commandStarted', ({ commandName, command }: CommandStartedEvent) => {
    if (commandName === 'find' && command['find'] === 'routing_rules') rulesRead += 1;
  });
});

/** Sets a rule of the sandbox, as the command does in a process of its own. */
async function route(connector: string, changes: Partial<RuleScope>): Promise<void> {
  const { mongo, db } = service;
  const stores = createStores(db);
  const audit = operatorsAudit(stores);
  const scope = { livemode: false, method: RAIL, currency: null, account_id: null, ...changes };
  const deps = { mongo, stores, audit, now: () => new Date() };
  await setRule(
    { ...deps, liveConnectors: '', sandboxConnectors },
    scope,
    { connector, unseen: true },
    {},
  );
}

/** Serves the API as its process does: rules are cached for `CACHE_MS`. */
function withCache(run: (url: string) => Promise<void>): Promise<string> {
  return service.withApp({ stores: createStores(service.db, CACHE_MS) }, run);
}

async function pay(url: string, shop: Shop, changes: object = {}, idempotencyKey = randomUUID()) {
  const method = RAIL;
  const body = shop.ask({ method, recipient_id: shop.recipients[method], amount: 1, ...changes });
  const answer = await call(url, 'POST', '/v1/payouts', { key: shop.key, body, idempotencyKey });
  if (answer.status !== 201) throw new Error(answer.text);
  return String(answer.body.id);
}

async function findConnector(id: string): Promise<string | undefined> {
  return (await service.stores.payouts.get(id))?.connector;
}

/** Instructions that each bank got for a payout. */
function listSends(id: string): string[] {
  return Object.entries(BANKS).flatMap(([connector, { told }]) =>
    told.filter((line) => line === `sendPayout ${id}`).map(() => connector),
  );
}

test('payouts go to one bank each, once, while the routing rule changes', async () => {
  const { account_id } = ada;
  await withCache(async (url) => {
    const ids: string[] = [];
    let begun = 0;
    let isChanging = true;
    const payAll = async () => {
      while (isChanging) {
        const place = begun;
        begun += 1;
        ids[place] = await pay(url, ada);
      }
    };
    const senders = [payAll(), payAll(), payAll(), payAll()];
    const before = await pay(url, bob);
    const connectors = () => Promise.all(ids.map(findConnector));
    for (const connector of [NORTH, SOUTH, NORTH]) {
      await route(connector, { account_id });
      // One that began before may still follow an earlier rule.
      const first = begun;
      await eventually(`payouts over ${connector}`, async () =>
        (await connectors()).slice(first).includes(connector),
      );
    }
    isChanging = false;
    await Promise.all(senders);
    const after = [await pay(url, bob), await pay(url, ada)];
    expect(await Promise.all([before, ...after].map(findConnector))).toEqual([
      ...[SOUTH, SOUTH, NORTH],
    ]);
    expect(new Set(await connectors())).toEqual(new Set([NORTH, SOUTH]));
    for (const id of [...ids, before, ...after]) {
      const connector = await findConnector(id);
      await service.becomes('payouts', id, { status: 'sent' });
      expect(listSends(id)).toEqual([connector]);
    }
  });
});

test('the rule of an account takes precedence over the rule of a currency', async () => {
  const method = 'card_payout';
  await route(NORTH, { method, currency: 'JPY' });
  await route(SOUTH, { method, currency: 'JPY', account_id: bob.account_id });
  await withCache(async (url) => {
    const over = async (shop: Shop, currency: string) =>
      await findConnector(
        await pay(url, shop, { method, currency, recipient_id: shop.recipients[method] }),
      );
    expect([await over(ada, 'JPY'), await over(ada, 'EUR'), await over(bob, 'JPY')]).toEqual([
      ...[NORTH, SOUTH, SOUTH],
    ]);
  });
});

test('a repeat under the same idempotency key stays with the first connector', async () => {
  const { account_id } = ada;
  const key = randomUUID();
  await route(NORTH, { account_id });
  const [first, second] = [createStores(service.db), createStores(service.db)];
  let id = '';
  await service.withApp({ stores: first }, async (url) => {
    id = await pay(url, ada, {}, key);
  });
  await route(SOUTH, { account_id });
  await service.withApp({ stores: second }, async (url) => {
    expect(await pay(url, ada, {}, key)).toBe(id);
    expect(await findConnector(id)).toBe(NORTH);
    expect(await findConnector(await pay(url, ada))).toBe(SOUTH);
  });
  expect(listSends(id)).toEqual([NORTH]);
});

test('a refund goes to the bank of its payment, whatever the rules say now', async () => {
  const { account_id, key } = ada;
  await route(NORTH, { method: 'ideal', account_id });
  await service.withApp({ stores: createStores(service.db) }, async (url) => {
    const body = idealPayment();
    const created = await call(url, 'POST', '/v1/payments', { key, body });
    const payment_id = String(created.body.id);
    expect((await service.stores.payments.get(payment_id))?.connector).toBe(NORTH);
    const simulate = `/v1/sandbox/payments/${payment_id}/simulate`;
    await call(url, 'POST', simulate, { key, body: { event: 'settled' } });
    await service.becomes('payments', payment_id, { status: 'settled' });
    await route(SOUTH, { method: 'ideal', account_id });
    const refunded = await call(url, 'POST', '/v1/refunds', { key, body: { payment_id } });
    const refund_id = String(refunded.body.id);
    expect((await service.stores.refunds.get(refund_id))?.connector).toBe(NORTH);
    await eventually('the instruction', async () =>
      BANKS[NORTH]?.told.includes(`sendRefund ${refund_id}`),
    );
    expect(BANKS[SOUTH]?.told.filter((line) => line.startsWith('sendRefund'))).toEqual([]);
  });
});

test('a rule with an unknown connector refuses payouts as not enabled', async () => {
  const { account_id, key } = ada;
  await route(NORTH, { account_id });
  const left = sandboxConnectors.split(',').slice(1).join();
  const connectors = createConnectors(service.connector, '', left);
  await service.withApp({ connectors, stores: createStores(service.db) }, async (url) => {
    const body = ada.ask({ method: RAIL, recipient_id: ada.recipients[RAIL] });
    const { status, body: answer } = await call(url, 'POST', '/v1/payouts', { key, body });
    expect([status, answer.error.code]).toEqual([422, 'rail_requirements_not_met']);
    expect(answer.error.details).toMatchObject([{ code: 'method_not_enabled', field: 'method' }]);
    const list = async (of: Shop) => {
      const rails = await call(url, 'GET', '/v1/payout-methods', { key: of.key });
      return rails.body.data.map(({ method }: { method: string }) => method);
    };
    expect(await list(ada)).not.toContain(RAIL);
    expect(await list(bob)).toContain(RAIL);
    expect(await findConnector(await pay(url, bob))).toBe(SOUTH);
  });
});

test('a paused bank gets nothing new, and finishes what it has', async () => {
  const { account_id, key } = ada;
  const { mongo, stores: own } = service;
  const audit = operatorsAudit(own);
  const deps = { mongo, stores: own, audit, now: () => new Date() };
  const routes = { liveConnectors: '', sandboxConnectors };
  await route(NORTH, { account_id });
  await service.withApp({ stores: createStores(service.db) }, async (url) => {
    const body = idealPayment();
    const created = await call(url, 'POST', '/v1/payments', { key: bob.key, body });
    const payment_id = String(created.body.id);
    expect((await own.payments.get(payment_id))?.connector).toBe(SOUTH);
    await pauseConnector({ ...deps, ...routes }, SOUTH, {});
    const simulate = `/v1/sandbox/payments/${payment_id}/simulate`;
    await call(url, 'POST', simulate, { key: bob.key, body: { event: 'settled' } });
    await service.becomes('payments', payment_id, { status: 'settled' });
    const refund = await call(url, 'POST', '/v1/refunds', { key: bob.key, body: { payment_id } });
    expect(refund.status).toBe(201);
    await eventually('the instruction', async () =>
      BANKS[SOUTH]?.told.includes(`sendRefund ${refund.body.id}`),
    );
    const another = await call(url, 'POST', '/v1/payments', { key: bob.key, body });
    expect([another.status, another.body.error.details]).toMatchObject([
      ...[422, [{ code: 'method_not_enabled' }]],
    ]);
    const payoutBody = bob.ask({ method: RAIL, recipient_id: bob.recipients[RAIL] });
    const payout = await call(url, 'POST', '/v1/payouts', { key: bob.key, body: payoutBody });
    expect(payout.body.error.details).toMatchObject([{ code: 'method_not_enabled' }]);
    const rails = await call(url, 'GET', '/v1/payout-methods', { key: bob.key });
    const available = rails.body.data.map(({ method }: { method: string }) => method);
    expect(available).not.toContain(RAIL);
    expect(await findConnector(await pay(url, ada))).toBe(NORTH);
    await resumeConnector({ ...deps, ...routes }, SOUTH, {});
    expect(await findConnector(await pay(url, bob))).toBe(SOUTH);
    expect((await call(url, 'POST', '/v1/payments', { key, body })).status).toBe(201);
  });
});

test('a create reads no rule while they are cached', async () => {
  await withCache(async (url) => {
    await pay(url, bob);
    const startedAt = performance.now();
    rulesRead = 0;
    await Promise.all(Array.from({ length: 20 }, () => pay(url, bob)));
    const ages = Math.ceil((performance.now() - startedAt) / CACHE_MS);
    expect(rulesRead).toBeLessThanOrEqual(ages);
  });
});

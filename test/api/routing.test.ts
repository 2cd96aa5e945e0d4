import { randomUUID } from 'node:crypto';
import { NativeConnection, Worker } from '@temporalio/worker';
import type { RuleScope } from '../../src/domain/routing-rule';
import { connectorQueue } from '../../src/domain/task-queues';
import { createConnectors } from '../../src/routing';
import { setRule } from '../../src/service/banks/routing/change';
import { pauseConnector, resumeConnector } from '../../src/service/banks/routing/pause';
import { createStores } from '../../src/store';
import { CACHE_MS } from '../../src/store/cache';
import { runWorker } from '../../src/temporal/native';
import { operatorsAudit } from '../support/audit';
import { useFixture } from '../support/fixture';
import { type Client, call, eventually, idealPayment } from '../support/http';
import { quietTemporal } from '../support/quiet';
import { scriptedBank } from '../support/scripted-bank';
import { temporalAddress } from '../support/servers';
import { useAccount, useService } from '../support/service';
import { type Shop, useShop } from './payout-setting';
import { expectRefusal } from './refusal';

const RAIL = 'sepa_credit_transfer';
const NORTH = `north-${randomUUID().slice(0, 8)}`;
const SOUTH = `south-${randomUUID().slice(0, 8)}`;
const BANKS = { [NORTH]: scriptedBank(), [SOUTH]: scriptedBank() };
/** The last one serves what no rule routes. */
const sandboxConnectors = [NORTH, SOUTH].map((name) => `${name}=${RAIL}|card_payout|ideal`).join();

const service = useService();
const ada = useShop(service);
const bob = useShop(service);
useFixture(
  async () => {
    quietTemporal();
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

/** Dependencies of the commands, each in a process of its own. */
const openCommand = () => {
  const { mongo, db } = service;
  const stores = createStores(db);
  const audit = operatorsAudit(stores);
  return { mongo, stores, audit, now: () => new Date(), liveConnectors: '', sandboxConnectors };
};

/** Sets a rule of the sandbox for an account. */
async function route(
  connector: string,
  { account_id }: { account_id: string },
  changes: Partial<RuleScope> = {},
): Promise<void> {
  const scope = { livemode: false, method: RAIL, currency: null, account_id, ...changes };
  await setRule(openCommand(), scope, { connector, unseen: true }, {});
}

/** Serves the API with banks of this file. */
function serve(run: (url: string) => Promise<void>, cacheMs = 0) {
  const connectors = createConnectors(service.connector, '', sandboxConnectors);
  return service.withApp({ connectors, stores: createStores(service.db, cacheMs) }, run);
}

const post = (url: string, { key }: Shop, path: string, body: object) =>
  call(url, 'POST', path, { key, body });

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

async function listRails(url: string, { key }: { key: string }): Promise<string[]> {
  const { body } = await call(url, 'GET', '/v1/payout-methods', { key });
  return body.data.map(({ method }: { method: string }) => method);
}

/** Instructions that each bank got for a payout. */
function listSends(id: string): string[] {
  return Object.entries(BANKS).flatMap(([connector, { told }]) =>
    told.filter((line) => line === `sendPayout ${id}`).map(() => connector),
  );
}

test('sends each payout to one bank, once, also a repeat, while the routing rule changes', async () => {
  const key = randomUUID();
  const story = async (url: string) => {
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
    const before = [await pay(url, bob), await pay(url, ada, {}, key)];
    const connectors = () => Promise.all(ids.map(findConnector));
    for (const connector of [NORTH, SOUTH, NORTH]) {
      await route(connector, ada);
      // One that began before may still follow an earlier rule.
      const first = begun;
      await eventually(`payouts over ${connector}`, async () =>
        (await connectors()).slice(first).includes(connector),
      );
    }
    isChanging = false;
    await Promise.all(senders);
    const after = [await pay(url, bob), await pay(url, ada)];
    expect(await Promise.all([...before, ...after].map(findConnector))).toEqual([
      ...[SOUTH, SOUTH, SOUTH, NORTH],
    ]);
    // A repeat under its key keeps the first bank.
    expect(await pay(url, ada, {}, key)).toBe(before[1]);
    expect(new Set(await connectors())).toEqual(new Set([NORTH, SOUTH]));
    for (const id of [...ids, ...before, ...after]) {
      const connector = await findConnector(id);
      await service.becomes('payouts', id, { status: 'sent' });
      expect(listSends(id)).toEqual([connector]);
    }
  };
  // As its process does, the API caches rules.
  await serve(story, CACHE_MS);
});

// Choice of a rule: test/domain/routing.test.ts
test('follows a rule of one currency, and sends nothing new to a paused bank, which finishes its refunds', async () => {
  const method = 'card_payout';
  await route(NORTH, ada);
  await route(NORTH, ada, { method, currency: 'JPY' });
  await serve(async (url) => {
    const recipient_id = ada.recipients[method];
    const over = async (currency: string) =>
      await findConnector(await pay(url, ada, { method, currency, recipient_id }));
    expect([await over('JPY'), await over('EUR')]).toEqual([NORTH, SOUTH]);
    const ideal = idealPayment();
    const payment_id = String((await post(url, bob, '/v1/payments', ideal)).body.id);
    expect((await service.stores.payments.get(payment_id))?.connector).toBe(SOUTH);
    await pauseConnector(openCommand(), SOUTH, {});
    await post(url, bob, `/v1/sandbox/payments/${payment_id}/simulate`, { event: 'settled' });
    await service.becomes('payments', payment_id, { status: 'settled' });
    const another = await post(url, bob, '/v1/payments', ideal);
    expect([another.status, another.body.error.details]).toMatchObject([
      ...[422, [{ code: 'method_not_enabled' }]],
    ]);
    const body = bob.ask({ method: RAIL, recipient_id: bob.recipients[RAIL] });
    const refused = await post(url, bob, '/v1/payouts', body);
    expectRefusal(refused, 'rail_requirements_not_met', ['method']);
    expect(refused.body.error.details).toMatchObject([{ code: 'method_not_enabled' }]);
    expect(await listRails(url, bob)).not.toContain(RAIL);
    expect(await listRails(url, ada)).toContain(RAIL);
    expect(await findConnector(await pay(url, ada))).toBe(NORTH);

    // Nor does a rule that is set since send the refund to another bank.
    await route(NORTH, bob, { method: 'ideal' });
    const refund = await post(url, bob, '/v1/refunds', { payment_id });
    expect(refund.status).toBe(201);
    expect((await service.stores.refunds.get(refund.body.id))?.connector).toBe(SOUTH);
    await eventually('the instruction', async () =>
      BANKS[SOUTH]?.told.includes(`sendRefund ${refund.body.id}`),
    );
    expect(BANKS[NORTH]?.told.filter((line) => line.startsWith('sendRefund'))).toEqual([]);
    const { body: next } = await post(url, bob, '/v1/payments', ideal);
    expect((await service.stores.payments.get(next.id))?.connector).toBe(NORTH);

    await resumeConnector(openCommand(), SOUTH, {});
    expect(await findConnector(await pay(url, bob))).toBe(SOUTH);
    expect((await post(url, ada, '/v1/payments', ideal)).status).toBe(201);
  });
});

const AVAILABLE = '/v1/payment-methods/available';

const shop = useAccount(service);

const create = (body: object, as: Client = shop) => as.post('/v1/payments', body);
const listMethods = async (path: string, as: Client) => {
  const { data }: { data: { method: string }[] } = (await as.get(path)).body;
  return data.map(({ method }) => method);
};

test('available methods are those that the account has enabled, at once', async () => {
  const few = await service.account({ methods: ['visa', 'no-such-method'] });
  const { accounts } = service.stores;
  expect((await create(idealPayment(), few)).body.error.details).toEqual([
    { code: 'method_not_enabled', field: 'method', message: expect.stringContaining('iDEAL') },
  ]);
  await accounts.enableMethod(few.account_id, 'ideal');
  const { status, body } = await few.get(AVAILABLE);
  const ideal = { method: 'ideal', display_name: 'iDEAL', currencies: ['EUR'] };
  const currencies = expect.arrayContaining(['EUR', 'JPY']);
  const data = [ideal, { method: 'visa', display_name: 'Visa', currencies }];
  expect([status, body]).toEqual([200, { object: 'list', data }]);
  expect((await create(idealPayment(), few)).status).toBe(201);
  await accounts.disableMethod(few.account_id, 'ideal');
  expect(await listMethods(AVAILABLE, few)).toEqual(['visa']);
  expectRefusal(await create(idealPayment(), few), 'method_requirements_not_met');
});

test.each([AVAILABLE, '/v1/payment-methods', '/v1/payout-methods', '/v1/balances'])(
  '%s has no parameters',
  async (path) => {
    expectRefusal(await shop.get(`${path}?country=NL`), 'invalid_request', ['country']);
  },
);

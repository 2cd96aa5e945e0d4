import { execFile } from 'node:child_process';
import { createHmac, randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { NativeConnection, Worker } from '@temporalio/worker';
import type { RuleScope } from '../../src/domain/banks/capabilities';
import { connectorQueue } from '../../src/domain/task-queues';
import { createConnectors } from '../../src/routing';
import { pauseConnector, resumeConnector } from '../../src/service/banks/connectors';
import { setRule } from '../../src/service/banks/routing/change';
import { createStores } from '../../src/store';
import { CACHE_MS } from '../../src/store/cache';
import { runWorker } from '../../src/temporal/native';
import { asOperator, commandsIn, everythingStored, runApproved } from '../cli/cli';
import { useResourceSetting } from '../cli/resource-setting';
import { ROOT } from '../docs/pages';
import { operatorsAudit } from '../support/audit';
import { eventually } from '../support/eventually';
import { useFixture } from '../support/fixture';
import { type Answer, type Client, call, idealPayment } from '../support/http';
import { quietTemporal } from '../support/quiet';
import { scriptedBank } from '../support/scripted-bank';
import { temporalAddress } from '../support/servers';
import { useAccount, useService } from '../support/service';
import { exchange } from './exchange';
import { type Shop, useShop } from './payout-setting';
import { expectRefusal } from './refusal';

interface Key {
  key_id: string;
  secret: string;
}

/** A connector of this file alone, which no resource belongs to. */
const OTHER = `other-${randomUUID().slice(0, 8)}`;
const setting = useResourceSetting();
const commands = useFixture(async () => {
  const { env, service } = setting;
  const LIVE_CONNECTORS = `${service.connector}=visa`;
  return commandsIn({ ...env, KEYS_FILE: service.keysFile, LIVE_CONNECTORS });
});
const createKey = async (connector: string): Promise<Key> =>
  Object(await runApproved(commands, 'connector', 'key', 'create', connector));
let bank: string;
let bankKey: Key;
let otherKey: Key;

beforeAll(async () => {
  bank = setting.service.connector;
  bankKey = await createKey(bank);
  otherKey = await createKey(OTHER);
});

/** Signs a body as docs/connectors.md describes it. */
function sign(secret: string, body: string): string {
  const at = Math.floor(Date.now() / 1_000);
  return `t=${at},v1=${createHmac('sha256', secret).update(`${at}.${body}`).digest('hex')}`;
}

interface Sending {
  connector?: string;
  key?: Key;
  headers?: readonly (readonly [string, string])[];
}

/** Posts again, up to three times, while the answer is a 503: that of a busy API takes 8 s. */
async function postSigned(
  body: string,
  { connector = bank, key = bankKey, headers }: Sending = {},
): Promise<Answer> {
  for (let repeats = 0; ; repeats += 1) {
    const answer = await exchange(setting.service.url, {
      path: `/connectors/${connector}/callbacks`,
      headers: headers ?? [['Connector-Signature', sign(key.secret, body)]],
      body,
    });
    if (answer.status !== 503 || repeats === 3) return { ...answer, repeats };
  }
}

const report = (resource: string, resource_id: string, event: string, more: object = {}) => ({
  callback_id: `cb_${randomUUID()}`,
  resource,
  resource_id,
  event,
  occurred_at: '2026-03-01T12:00:00Z',
  ...more,
});
const send = (body: object, how?: Sending) => postSigned(JSON.stringify(body), how);
const summarize = ({ status, body }: Answer) => [status, body.error?.code ?? body.status];
const sendForSummary = async (body: object, how?: Sending) => summarize(await send(body, how));

const PARKED = [202, 'parked'];
const DUPLICATE = [202, 'duplicate'];
const CONFLICT = [409, 'callback_conflict'];
const NOT_SIGNED = [401, 'signature_invalid'];

/** A repeat may learn that the try before it, whose outcome was unknown, has delivered. */
function expectDelivery(answer: Answer): void {
  const isDuplicate = Number(answer.repeats) > 0 && answer.body.status === 'duplicate';
  expect(summarize(answer)).toEqual(isDuplicate ? DUPLICATE : [202, 'delivered']);
}
const listStored = (id: string) => setting.service.stores.callbacks.forResource(id);

describe('a signed callback', () => {
  test('is applied to its payment once, also when it names it in upper case, and is answered with its status alone', async () => {
    const id = await setting.payment();
    const authorized = report('payment', id.toUpperCase(), 'authorized', { bank_reference: 'B-1' });
    const first = await send(authorized);
    expectDelivery(first);
    expect(first.text).toBe(JSON.stringify({ status: first.body.status }));
    expect(first.headers.get('request-id')).toMatch(/^[0-9a-f-]{36}$/);
    expect(first.headers.get('ratelimit-limit')).toMatch(/^\d+$/);
    await setting.service.becomes('payments', id, { status: 'authorized' });
    expect(await sendForSummary({ ...authorized, resource_id: id })).toEqual(DUPLICATE);
    const { callback_id, occurred_at } = authorized;
    expect(await listStored(id)).toMatchObject([{ resource_id: id, unapplied: null }]);
    expect(await commands.json('callback', 'show', `${bank}:${callback_id}`)).toMatchObject({
      signed_by: bankKey.key_id,
      callback: { callback_id, bank_reference: 'B-1', occurred_at },
    });
  });

  // How a parked report is delivered later: test/connectors/sandbox-outgoing.test.ts
  test('about an unknown resource, or one of another connector, is parked, and keeps its facts', async () => {
    const known = await setting.service.stores.payments.get(await setting.payment());
    const id = randomUUID();
    const authorized = report('payment', id, 'authorized', { amount: 1_050, currency: 'EUR' });
    for (const _ of ['first', 'repeat']) expect(await sendForSummary(authorized)).toEqual(PARKED);
    // The id of a callback is unique per connector.
    const foreign = { ...authorized, resource_id: known?._id };
    const answer = await send(foreign, { connector: OTHER, key: otherKey });
    const message = `resource_id: ${OTHER} has no payment ${known?._id}, or not yet. The callback is stored for an operator, and nothing was applied.`;
    expect(answer.status).toBe(202);
    expect(answer.body).toEqual({ status: 'parked', applied: false, message });
    const after = await setting.service.stores.payments.get(known?._id ?? '');
    expect(after?.version).toBe(known?.version);
    const _id = `${bank}:${authorized.callback_id}`;
    const listed = await commands.json('callback', 'list', '--parked', '--resource-id', id);
    const parked = 'no such payment at this connector';
    expect(listed).toMatchObject({ data: [{ id: _id, parked, signed_by: bankKey.key_id }] });
    expect(await commands.json('callback', 'deliver', _id)).toEqual({ id: _id, status: 'parked' });
    for (const change of [
      ...[{ amount: 1_051 }, { currency: 'USD' }, { event: 'settled' }, { reason: 'More' }],
      ...[{ resource_id: randomUUID() }, { occurred_at: '2026-03-01T12:00:01Z' }, { code: 'x' }],
      { resource: 'refund', event: 'settled' },
    ]) {
      expect(await sendForSummary({ ...authorized, ...change })).toEqual(CONFLICT);
    }
    const occurred_at = '2026-03-01T13:00:00.000+01:00';
    expect(await sendForSummary({ ...authorized, occurred_at })).toEqual(PARKED);
  });

  test('is what the shell example of the docs sends', async () => {
    const id = await setting.payment();
    const page = readFileSync(join(ROOT, 'docs/connectors.md'), 'utf8');
    const local = 'http://localhost:8080/connectors/sandbox';
    const script = (/```sh\n(SECRET=.*?)```/s.exec(page)?.[1] ?? '')
      .replace('cnsec_…', bankKey.secret)
      .replace('PAYMENT_ID', id)
      .replace(local, `${setting.service.url}/connectors/${bank}`);
    const { stdout } = await promisify(execFile)('bash', ['-ec', script]);
    expect(stdout).toBe('{"status":"delivered"}');
    await setting.service.becomes('payments', id, { status: 'authorized' });
  });
});

// Old signatures: test/api/unit/connector-signature.test.ts
test('a callback that its connector has not signed, or that is no report, is refused, and nothing is stored', async () => {
  const id = await setting.payment();
  const facts = report('payment', id, 'authorized');
  const text = JSON.stringify(facts);
  const good = ['Connector-Signature', sign(bankKey.secret, text)] as const;
  const forgeries: [what: string, how: Sending][] = [
    ['no header', { headers: [] }],
    ['two headers', { headers: [good, good] }],
    ['the key of another connector', { key: otherKey }],
    ['the path of another connector', { connector: OTHER }],
    ['an unknown connector', { connector: 'nobody' }],
    ['an impossible connector', { connector: 'no.body' }],
  ];
  for (const [what, how] of forgeries) {
    const answer = await postSigned(text, how);
    expect([what, ...summarize(answer)]).toEqual([what, ...NOT_SIGNED]);
    expectRefusal(answer, 'signature_invalid');
  }
  const bodies: [text: string, fields: string[]][] = [
    ['{', []],
    ['[]', ['']],
    ['{"amount":1,"amount":2}', []],
    [JSON.stringify({ ...facts, resource: 'invoice' }), ['resource']],
    [text.replace('}', ',"amount":10.0}'), ['amount']],
    [JSON.stringify({ ...facts, occurred_at: 'now', note: 'x' }), ['note', 'occurred_at']],
  ];
  for (const [body, fields] of bodies) {
    expectRefusal(await postSigned(body), 'invalid_request', fields);
  }
  expectRefusal(await send({ ...facts, reason: 'x'.repeat(70_000) }), 'body_too_large');
  expect(await listStored(id)).toEqual([]);
  expectDelivery(await postSigned(text, { headers: [good] }));
});

test('each key of a connector signs until it is revoked, and no secret is shown or stored', async () => {
  const next = await createKey(OTHER);
  const secret = expect.stringMatching(/^cnsec_[\w-]{43}$/);
  expect(next).toEqual({ key_id: expect.any(String), secret });
  const sendWith = (key: Key) =>
    sendForSummary(report('payout', randomUUID(), 'sent'), { connector: OTHER, key });
  for (const key of [otherKey, next]) expect(await sendWith(key)).toEqual(PARKED);
  const mia = await asOperator(commands);
  const revoke = () => mia.json('connector', 'key', 'revoke', next.key_id, '--reason', 'Why');
  const revoked = await revoke();
  expect(await sendWith(next)).toEqual(NOT_SIGNED);
  expect(await sendWith(otherKey)).toEqual(PARKED);
  expect(await revoke()).toEqual(revoked);
  const key = { connector: OTHER, created_at: expect.any(String) };
  expect(Object(await commands.json('connector', 'key', 'list', OTHER)).data).toEqual([
    { ...key, key_id: otherKey.key_id, revoked_at: null },
    { ...key, key_id: next.key_id, revoked_at: expect.any(String) },
  ]);
  const auditLog = setting.deps.db.collection('audit_log');
  expect(await auditLog.find({ target: next.key_id }).sort({ _id: 1 }).toArray()).toMatchObject([
    { act: 'connector_key.created', account_id: null, after: { connector: OTHER } },
    { act: 'connector_key.revoked', account_id: null, before: { revoked_at: null } },
  ]);
  const stored = await everythingStored(setting.deps.db);
  expect(stored).not.toContain(otherKey.secret.slice('cnsec_'.length));
  for (const [command, name, code] of [
    ['create', 'no.body', 'connector_name_invalid'],
    ['list', 'no.body', 'connector_name_invalid'],
    ['revoke', 'cnkey_1', 'key_not_found'],
  ] as const) {
    expect((await commands.refusal('connector', 'key', command, name)).code).toBe(code);
  }
});

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

test('each payout goes to one bank, once, also a repeat, while the routing rule changes', async () => {
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
    const senders = [payAll(), payAll()];
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
test('a rule of one currency is followed, and a paused bank gets nothing new, but finishes its refunds', async () => {
  const method = 'card_payout';
  await route(NORTH, ada);
  await route(NORTH, ada, { method, currency: 'JPY' });
  await serve(async (url) => {
    const recipient_id = ada.recipients[method];
    const over = async (currency: string) =>
      await findConnector(await pay(url, ada, { method, currency, recipient_id }));
    expect([await over('JPY'), await over('EUR')]).toEqual([NORTH, SOUTH]);
    const createPayment = async () => (await post(url, bob, '/v1/payments', idealPayment())).body;
    const findBank = async (id: string) => (await service.stores.payments.get(id))?.connector;
    const payment_id = String((await createPayment()).id);
    expect(await findBank(payment_id)).toBe(SOUTH);
    await pauseConnector(openCommand(), SOUTH, {});
    await post(url, bob, `/v1/sandbox/payments/${payment_id}/simulate`, { event: 'settled' });
    await service.becomes('payments', payment_id, { status: 'settled' });
    expect((await createPayment()).error.details).toMatchObject([{ code: 'method_not_enabled' }]);
    const body = bob.ask({ method: RAIL, recipient_id: bob.recipients[RAIL] });
    const refused = await post(url, bob, '/v1/payouts', body);
    expectRefusal(refused, 'rail_requirements_not_met', ['method']);
    expect(refused.body.error.details).toMatchObject([{ code: 'method_not_enabled' }]);
    expect(await listRails(url, bob)).not.toContain(RAIL);
    expect(await listRails(url, ada)).toContain(RAIL);
    expect(await findConnector(await pay(url, ada))).toBe(NORTH);

    // Nor does a rule that is set since send the refund to another bank.
    await route(NORTH, bob, { method: 'ideal' });
    const { id } = (await post(url, bob, '/v1/refunds', { payment_id })).body;
    expect((await service.stores.refunds.get(id))?.connector).toBe(SOUTH);
    await eventually('the instruction', async () =>
      BANKS[SOUTH]?.told.includes(`sendRefund ${id}`),
    );
    expect(BANKS[NORTH]?.told.filter((line) => line.startsWith('sendRefund'))).toEqual([]);
    expect(await findBank((await createPayment()).id)).toBe(NORTH);
    await resumeConnector(openCommand(), SOUTH, {});
    expect(await findConnector(await pay(url, bob))).toBe(SOUTH);
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
  await accounts.enable(few.account_id, 'ideal', true);
  const { status, body } = await few.get(AVAILABLE);
  const ideal = { method: 'ideal', display_name: 'iDEAL', currencies: ['EUR'] };
  const currencies = expect.arrayContaining(['EUR', 'JPY']);
  const data = [ideal, { method: 'visa', display_name: 'Visa', currencies }];
  expect([status, body]).toEqual([200, { object: 'list', data }]);
  expect((await create(idealPayment(), few)).status).toBe(201);
  await accounts.enable(few.account_id, 'ideal', false);
  expect(await listMethods(AVAILABLE, few)).toEqual(['visa']);
  expectRefusal(await create(idealPayment(), few), 'method_requirements_not_met');
});

test.each([AVAILABLE, '/v1/payment-methods', '/v1/payout-methods', '/v1/balances'])(
  'the list %s takes no parameters',
  async (path) => {
    expectRefusal(await shop.get(`${path}?country=NL`), 'invalid_request', ['country']);
  },
);

import { execFile } from 'node:child_process';
import { createHmac, randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { commandsIn, everythingStored } from '../cli/cli';
import { useResourceSetting } from '../cli/resource-setting';
import { ROOT } from '../docs/pages';
import { useFixture } from '../support/fixture';
import { askUntilReady, type Exchanged, exchange } from './exchange';
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
  Object(await commands.json('connector', 'key', 'create', connector));
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

type Posted = Exchanged & { repeats: number };

async function post(
  text: string,
  { connector = bank, key = bankKey, headers }: Sending = {},
): Promise<Posted> {
  const { answer, repeats } = await askUntilReady(() =>
    exchange(setting.service.url, {
      path: `/connectors/${connector}/callbacks`,
      headers: headers ?? [['Connector-Signature', sign(key.secret, text)]],
      body: text,
    }),
  );
  return { ...answer, repeats };
}

const report = (resource: string, resource_id: string, event: string, more: object = {}) => ({
  callback_id: `cb_${randomUUID()}`,
  resource,
  resource_id,
  event,
  occurred_at: '2026-03-01T12:00:00Z',
  ...more,
});
const send = (body: object, how?: Sending) => post(JSON.stringify(body), how);
const summarize = ({ status, body }: Exchanged) => [status, body.error?.code ?? body.status];
const sendForSummary = async (body: object, how?: Sending) => summarize(await send(body, how));

const PARKED = [202, 'parked'];
const DUPLICATE = [202, 'duplicate'];
const CONFLICT = [409, 'callback_conflict'];
const NOT_SIGNED = [401, 'signature_invalid'];

/** A repeat may learn that the try before it, whose outcome was unknown, has delivered. */
function expectDelivery(answer: Posted): void {
  const isDuplicate = answer.repeats > 0 && answer.body.status === 'duplicate';
  expect(summarize(answer)).toEqual(isDuplicate ? DUPLICATE : [202, 'delivered']);
}
const listStored = (id: string) => setting.service.stores.callbacks.forResource(id);

describe('a signed callback', () => {
  test('pays a payment once, with an answer that says no more', async () => {
    const id = await setting.payment();
    const authorized = report('payment', id, 'authorized', { bank_reference: 'B-1' });
    const first = await send(authorized);
    expectDelivery(first);
    expect(first.text).toBe(JSON.stringify({ status: first.body.status }));
    expect(first.headers.get('request-id')).toMatch(/^[0-9a-f-]{36}$/);
    expect(first.headers.get('ratelimit-limit')).toMatch(/^\d+$/);
    await setting.service.becomes('payments', id, { status: 'authorized' });
    expect(await sendForSummary(authorized)).toEqual(DUPLICATE);
    const { callback_id, occurred_at } = authorized;
    expect(await commands.json('callback', 'show', `${bank}:${callback_id}`)).toMatchObject({
      signed_by: bankKey.key_id,
      callback: { callback_id, bank_reference: 'B-1', occurred_at },
    });
  });

  // How a parked report is delivered later: test/callbacks/deliver.test.ts
  test('about an unknown resource, or one of another connector, is parked, and keeps its facts', async () => {
    const known = await setting.service.stores.payments.get(await setting.payment());
    const id = randomUUID();
    const authorized = report('payment', id, 'authorized', { amount: 1_050, currency: 'EUR' });
    for (const _ of ['first', 'repeat']) expect(await sendForSummary(authorized)).toEqual(PARKED);
    // The id of a callback is unique per connector.
    const foreign = { ...authorized, resource_id: known?._id };
    const answer = await send(foreign, { connector: OTHER, key: otherKey });
    expect([answer.status, answer.text]).toEqual([202, '{"status":"parked"}']);
    const after = await setting.service.stores.payments.get(known?._id ?? '');
    expect(after?.version).toBe(known?.version);
    const _id = `${bank}:${authorized.callback_id}`;
    const listed = await commands.json('callback', 'list', '--parked', '--resource-id', id);
    expect(listed).toMatchObject({
      data: [{ id: _id, parked: 'no such payment at this connector', signed_by: bankKey.key_id }],
    });
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
test('refuses a callback that its connector has not signed, and stores nothing', async () => {
  const id = await setting.payment();
  const text = JSON.stringify(report('payment', id, 'authorized'));
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
    const answer = await post(text, how);
    expect([what, ...summarize(answer)]).toEqual([what, ...NOT_SIGNED]);
    expectRefusal(answer, 'signature_invalid');
  }
  expect(await listStored(id)).toEqual([]);
  expectDelivery(await post(text, { headers: [good] }));
});

test('refuses a signed body that is no report with each fault, and stores nothing', async () => {
  const id = randomUUID();
  const good = report('payment', id, 'settled');
  const bodies: [text: string, fields: string[]][] = [
    ['{', []],
    ['[]', ['']],
    ['{"amount":1,"amount":2}', []],
    [JSON.stringify({ ...good, resource: 'invoice' }), ['resource']],
    [JSON.stringify(good).replace('}', ',"amount":10.0}'), ['amount']],
    [JSON.stringify({ ...good, occurred_at: 'now', note: 'x' }), ['note', 'occurred_at']],
  ];
  for (const [text, fields] of bodies) expectRefusal(await post(text), 'invalid_request', fields);
  const large = { ...good, reason: 'x'.repeat(70_000) };
  expect(await sendForSummary(large)).toEqual([413, 'body_too_large']);
  expect(await listStored(id)).toEqual([]);
});

test('each key of a connector signs until it is revoked, and no secret is shown or stored', async () => {
  const next = await createKey(OTHER);
  expect(next).toEqual({
    key_id: expect.any(String),
    secret: expect.stringMatching(/^cnsec_[\w-]{43}$/),
  });
  const sendWith = (key: Key) =>
    sendForSummary(report('payout', randomUUID(), 'sent'), { connector: OTHER, key });
  for (const key of [otherKey, next]) expect(await sendWith(key)).toEqual(PARKED);
  const revoke = () => commands.json('connector', 'key', 'revoke', next.key_id);
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
});

test.each([
  ['create', 'no.body', 'connector_name_invalid'],
  ['list', 'no.body', 'connector_name_invalid'],
  ['revoke', 'cnkey_1', 'key_not_found'],
])('the command `connector key %s %s` is refused as %s', async (command, name, code) => {
  expect((await commands.refusal('connector', 'key', command, name)).code).toBe(code);
});

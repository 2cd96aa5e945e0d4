import { execFile } from 'node:child_process';
import { createHmac, randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { z } from 'zod';
import type { PaymentDocument } from '../../src/store/payments';
import { commandsIn, everythingStored } from '../cli/cli';
import { useResourceSetting } from '../cli/resource-setting';
import { ROOT } from '../docs/pages';
import { useFixture } from '../support/fixture';
import { askUntilReady, type Exchanged, exchange } from './exchange';

const Key = z.strictObject({ key_id: z.string(), secret: z.string() });
const Keys = z.object({
  data: z.array(
    z.strictObject({
      key_id: z.string(),
      connector: z.string(),
      created_at: z.string(),
      revoked_at: z.string().nullable(),
    }),
  ),
});
type Key = z.infer<typeof Key>;

/** A connector of this file alone, which no resource belongs to. */
const OTHER = `other-${randomUUID().slice(0, 8)}`;
const setting = useResourceSetting();
const commands = useFixture(async () => {
  const { env, service } = setting;
  const LIVE_CONNECTORS = `${service.connector}=visa`;
  return commandsIn({ ...env, KEYS_FILE: service.keysFile, LIVE_CONNECTORS });
});
const createKey = async (connector: string) =>
  Key.parse(await commands.json('connector', 'key', 'create', connector));
let bank: string;
let bankKey: Key;
let otherKey: Key;

beforeAll(async () => {
  bank = setting.service.connector;
  bankKey = await createKey(bank);
  otherKey = await createKey(OTHER);
});

/** Signs a body as docs/connectors.md describes it. */
function sign(secret: string, body: string, at = Math.floor(Date.now() / 1_000)): string {
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
const deliver = async (body: object, how?: Sending) => expectDelivery(await send(body, how));
const listStored = (id: string) => setting.service.stores.callbacks.forResource(id);

test('signed callbacks pay a payment, each counted once, and their answers say no more', async () => {
  const id = await setting.payment();
  const authorized = report('payment', id, 'authorized', { bank_reference: 'B-1' });
  const first = await send(authorized);
  expectDelivery(first);
  expect(first.text).toBe(JSON.stringify({ status: first.body.status }));
  expect(first.headers.get('request-id')).toMatch(/^[0-9a-f-]{36}$/);
  expect(first.headers.get('ratelimit-limit')).toMatch(/^\d+$/);
  await setting.service.becomes('payments', id, { status: 'authorized' });
  expect(await sendForSummary(authorized)).toEqual(DUPLICATE);
  await deliver(report('payment', id, 'settled'));
  await setting.service.becomes('payments', id, { status: 'settled' });
  expect((await listStored(id)).map(({ name, signed_by }) => [name, signed_by])).toEqual([
    ['authorized', bankKey.key_id],
    ['settled', bankKey.key_id],
  ]);
  const { callback_id, occurred_at } = authorized;
  expect(await commands.json('callback', 'show', `${bank}:${callback_id}`)).toMatchObject({
    signed_by: bankKey.key_id,
    callback: { callback_id, bank_reference: 'B-1', occurred_at },
  });
});

test('signed callbacks report refunds, another amount, and payouts whose workflow has ended', async () => {
  const { service } = setting;
  const [refund, other] = [await setting.refund(), await setting.refund()];
  const payout = await setting.payout();
  await deliver(report('refund', refund.id, 'settled'));
  await service.becomes('refunds', refund.id, { status: 'settled' });
  await deliver(report('refund', other.id, 'settled', { amount: 299, value_date: '2026-03-02' }));
  await service.becomes('refunds', other.id, { attention: 'amount_differs' });
  expect((await setting.cli('refund', 'show', other.id)).stdout).toContain('amount_differs');
  await deliver(report('payout', payout, 'completed'));
  await service.becomes('payouts', payout, { status: 'completed' });
  await deliver(report('payout', payout, 'returned', { code: 'closed', reason: 'Closed.' }));
  await service.becomes('payouts', payout, { status: 'returned' });
});

test('ten equal callbacks at once are stored, delivered and applied once', async () => {
  const id = await setting.payment();
  const settled = report('payment', id, 'settled');
  const all = await Promise.all(Array.from({ length: 10 }, () => send(settled)));
  expect(all.filter(({ status }) => status !== 202)).toEqual([]);
  const delivered = all.filter(({ body }) => body.status === 'delivered');
  // The one that delivers may get a 503, and its repeat is a duplicate.
  const isRepeated = all.some(({ repeats }) => repeats > 0);
  expect(isRepeated ? [0, 1] : [1]).toContain(delivered.length);
  await setting.service.becomes('payments', id, { status: 'settled' });
  expect(await listStored(id)).toHaveLength(1);
  expect(await setting.shop.events(id)).toEqual([
    'payment.awaiting_customer',
    'payment.authorized',
    'payment.settled',
  ]);
});

test('a callback about an unknown resource is parked, and a repeat delivers it later', async () => {
  const known = await setting.service.stores.payments.get(await setting.payment());
  if (known === null) throw new Error('The payment is not stored.');
  const id = randomUUID();
  const authorized = report('payment', id, 'authorized', { amount: 1_050, currency: 'EUR' });
  expect(await sendForSummary(authorized)).toEqual(PARKED);
  expect(await sendForSummary(authorized)).toEqual(PARKED);
  const _id = `${bank}:${authorized.callback_id}`;
  expect(await commands.json('callback', 'list', '--parked', '--resource-id', id)).toMatchObject({
    data: [{ id: _id, parked: 'no such payment at this connector', signed_by: bankKey.key_id }],
  });
  expect(await commands.json('callback', 'deliver', _id)).toEqual({ id: _id, status: 'parked' });
  for (const change of [
    { amount: 1_051 },
    { currency: 'USD' },
    { event: 'settled' },
    { reason: 'More' },
    { resource_id: randomUUID() },
    { occurred_at: '2026-03-01T12:00:01Z' },
    { resource: 'refund', event: 'settled' },
  ]) {
    expect(await sendForSummary({ ...authorized, ...change })).toEqual(CONFLICT);
  }
  const token_hash = randomUUID();
  const copy = { ...known, _id: id, token_hash, position: `${known.position}${id}` };
  await setting.deps.db.collection<PaymentDocument>('payments').insertOne(copy);
  await deliver({ ...authorized, occurred_at: '2026-03-01T13:00:00.000+01:00' });
  await setting.service.becomes('payments', id, { status: 'authorized' });
  expect(await sendForSummary(authorized)).toEqual(DUPLICATE);
  expect(await sendForSummary({ ...authorized, code: 'x' })).toEqual(CONFLICT);
});

test('a repeat delivers a callback that a process stored before it died', async () => {
  const resource_id = await setting.payment();
  const authorized = report('payment', resource_id, 'authorized');
  const { callback_id, occurred_at } = authorized;
  await setting.service.stores.callbacks.insertOnce({
    connector: bank,
    resource: 'payment',
    resource_id,
    name: 'authorized',
    body: { callback_id, occurred_at },
    received_at: new Date().toISOString(),
    signed_by: bankKey.key_id,
  });
  expect(await sendForSummary({ ...authorized, amount: 1 })).toEqual(CONFLICT);
  await deliver(authorized);
  await setting.service.becomes('payments', resource_id, { status: 'authorized' });
});

test('a connector learns nothing about a resource of another connector, and changes nothing', async () => {
  const id = await setting.payment();
  const how = { connector: OTHER, key: otherKey };
  const foreign = await send(report('payment', id, 'settled'), how);
  const unknown = await send(report('payment', randomUUID(), 'settled'), how);
  expect([foreign.status, foreign.text]).toEqual([202, '{"status":"parked"}']);
  expect([unknown.status, unknown.text]).toEqual([foreign.status, foreign.text]);
  expect((await setting.service.stores.payments.get(id))?.status).toBe('awaiting_customer');
  const authorized = report('payment', id, 'authorized');
  expect(await sendForSummary(authorized, how)).toEqual(PARKED);
  // The id of a callback is unique per connector.
  await deliver(authorized);
});

test('a callback with a wrong signature is refused, and nothing is stored', async () => {
  const id = await setting.payment();
  const text = JSON.stringify(report('payment', id, 'authorized'));
  const now = Math.floor(Date.now() / 1_000);
  const { secret } = bankKey;
  const good = sign(secret, text);
  const withHeaders = (...values: string[]): Sending => ({
    headers: values.map((value) => ['Connector-Signature', value]),
  });
  const forgeries: [what: string, how: Sending][] = [
    ['no header', withHeaders()],
    ['two signatures', withHeaders(`${good},${good.split(',')[1]}`)],
    ['two headers', withHeaders(good, good)],
    ['an old signature', withHeaders(sign(secret, text, now - 600))],
    ['a signature of the future', withHeaders(sign(secret, text, now + 3_600))],
    ['the signature of another body', withHeaders(sign(secret, `${text} `))],
    ['the signature of another secret', withHeaders(sign(`${secret}x`, text))],
    ['the key of another connector', { key: otherKey }],
    ['the path of another connector', { connector: OTHER }],
    ['an unknown connector', { connector: 'nobody' }],
    ['an impossible connector', { connector: 'no.body' }],
  ];
  for (const [what, how] of forgeries) {
    const answer = await post(text, how);
    expect([what, ...summarize(answer)]).toEqual([what, ...NOT_SIGNED]);
    expect(answer.body.error).toEqual({
      type: 'authentication_error',
      code: 'signature_invalid',
      message: expect.any(String),
      request_id: answer.headers.get('request-id'),
    });
  }
  expect(await listStored(id)).toEqual([]);
  expectDelivery(await post(text, withHeaders(sign(secret, text, now - 200))));
});

test('a signed body that is no report is refused with each fault, and nothing is stored', async () => {
  const id = randomUUID();
  const good = report('payment', id, 'settled');
  const bodies: [text: string, fields: string[]][] = [
    ['', []],
    ['{', []],
    ['[]', ['']],
    ['{"amount":1,"amount":2}', []],
    [JSON.stringify({ ...good, callback_id: undefined }), ['callback_id']],
    [JSON.stringify({ ...good, resource: 'invoice' }), ['resource']],
    [JSON.stringify(good).replace('}', ',"amount":10.0}'), ['amount']],
    [JSON.stringify({ ...good, occurred_at: 'now', note: 'x' }), ['occurred_at', 'note']],
  ];
  for (const [text, fields] of bodies) {
    const answer = await post(text);
    expect([text, ...summarize(answer)]).toEqual([text, 400, 'invalid_request']);
    const details: { field: string }[] = answer.body.error.details ?? [];
    expect([text, details.map(({ field }) => field)]).toEqual([text, fields]);
  }
  const large = { ...good, reason: 'x'.repeat(70_000) };
  expect(await sendForSummary(large)).toEqual([413, 'body_too_large']);
  expect(await listStored(id)).toEqual([]);
});

test('the shell example of the docs delivers a callback as it is written', async () => {
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

test('callbacks have one path and one method', async () => {
  const path = `/connectors/${bank}/callbacks`;
  const got = await exchange(setting.service.url, { method: 'GET', path });
  expect([got.status, got.headers.get('allow')]).toEqual([405, 'POST']);
  expect((await exchange(setting.service.url, { path: `${path}/` })).status).toBe(404);
});

test('each key of a connector signs until it is revoked, and no secret is shown or stored', async () => {
  const next = await createKey(OTHER);
  expect(next.secret).toMatch(/^cnsec_[\w-]{43}$/);
  const sendWith = (key: Key) =>
    sendForSummary(report('payout', randomUUID(), 'sent'), { connector: OTHER, key });
  for (const key of [otherKey, next]) expect(await sendWith(key)).toEqual(PARKED);
  const revoke = () => commands.json('connector', 'key', 'revoke', next.key_id);
  const revoked = await revoke();
  expect(await sendWith(next)).toEqual(NOT_SIGNED);
  expect(await sendWith(otherKey)).toEqual(PARKED);
  expect(await revoke()).toEqual(revoked);
  const { data } = Keys.parse(await commands.json('connector', 'key', 'list', OTHER));
  expect(data.map(({ key_id, revoked_at }) => [key_id, revoked_at !== null])).toEqual([
    [otherKey.key_id, false],
    [next.key_id, true],
  ]);
  const auditLog = setting.deps.db.collection('audit_log');
  expect(await auditLog.find({ target: next.key_id }).sort({ _id: 1 }).toArray()).toMatchObject([
    { act: 'connector_key.created', account_id: null, after: { connector: OTHER } },
    { act: 'connector_key.revoked', account_id: null, before: { revoked_at: null } },
  ]);
  const stored = await everythingStored(setting.deps.db);
  expect(stored).toContain(otherKey.key_id);
  expect(stored).not.toContain(otherKey.secret.slice('cnsec_'.length));
  const refusal = async (...args: string[]) =>
    (await commands.refusal('connector', 'key', ...args)).code;
  expect(await refusal('create', 'no.body')).toBe('connector_name_invalid');
  expect(await refusal('list', 'no.body')).toBe('connector_name_invalid');
  expect(await refusal('revoke', 'cnkey_1')).toBe('key_not_found');
});

test('a connector with a thousand parked callbacks gets 429 for the next unknown resource', async () => {
  const row = { connector: OTHER, resource: 'payment', name: 'settled', body: {} };
  const parked = { ...row, received_at: '2026-03-01T12:00:00Z', signalled_at: null, parked: 'x' };
  const rows = setting.deps.db.collection<{ _id: string }>('bank_callbacks');
  await rows.insertMany(Array.from({ length: 1_000 }, () => ({ ...parked, _id: randomUUID() })));
  const how = { connector: OTHER, key: otherKey };
  // The service counts when it parks one, and refuses the next.
  const last = report('payment', randomUUID(), 'settled');
  expect(await sendForSummary(last, how)).toEqual(PARKED);
  const before = await rows.countDocuments({ connector: OTHER });
  const refused = await send(report('payment', randomUUID(), 'settled'), how);
  expect(summarize(refused)).toEqual([429, 'rate_limited']);
  expect(refused.headers.get('Retry-After')).toBe('10');
  expect(await rows.countDocuments({ connector: OTHER })).toBe(before);
  expect(await sendForSummary(last, how)).toEqual(PARKED);
});

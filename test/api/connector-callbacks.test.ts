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

const OTHER = 'other-bank';
const setting = useResourceSetting();
const commands = useFixture(async () =>
  commandsIn({
    ...setting.env,
    KEYS_FILE: setting.service.keysFile,
    LIVE_CONNECTORS: `${setting.service.connector}=visa`,
  }),
);
let bank: string;
let ours: Key;
let theirs: Key;

beforeAll(async () => {
  bank = setting.service.connector;
  ours = Key.parse(await commands.json('connector', 'key', 'create', bank));
  theirs = Key.parse(await commands.json('connector', 'key', 'create', OTHER));
});

/** Output of a script; it runs beside the server that it asks. */
async function bash(script: string): Promise<string> {
  return (await promisify(execFile)('bash', ['-ec', script])).stdout;
}

/** Signature as a bank makes it, in its own words. */
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
  { connector = bank, key = ours, headers }: Sending = {},
): Promise<Posted> {
  const { url } = setting.service;
  const { answer, repeats } = await askUntilReady(() =>
    exchange(url, {
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
const answerOf = ({ status, body }: Exchanged) => [status, body.error?.code ?? body];
const answers = async (body: object, how?: Sending) => answerOf(await send(body, how));
const told = (status: string) => [202, { status }];
/** A repeat may learn that the try before it, whose outcome was unknown, has delivered. */
function expectDelivery(answer: Posted): void {
  const isDuplicate = answer.repeats > 0 && answer.body.status === 'duplicate';
  expect(answerOf(answer)).toEqual(told(isDuplicate ? 'duplicate' : 'delivered'));
}
const deliver = async (body: object, how?: Sending) => expectDelivery(await send(body, how));
const rowsOf = (id: string) => setting.service.stores.callbacks.forResource(id);

test('a payment is paid by signed callbacks, each counted once, and no answer tells more', async () => {
  const id = await setting.payment();
  const authorized = report('payment', id, 'authorized', { bank_reference: 'B-1' });
  const first = await send(authorized);
  expectDelivery(first);
  expect(first.text).toBe(JSON.stringify(first.body));
  expect(first.headers.get('request-id')).toMatch(/^[0-9a-f-]{36}$/);
  expect(first.headers.get('ratelimit-limit')).toMatch(/^\d+$/);
  await setting.service.becomes('payments', id, { status: 'authorized' });
  expect(await answers(authorized)).toEqual(told('duplicate'));
  await deliver(report('payment', id, 'settled'));
  await setting.service.becomes('payments', id, { status: 'settled' });
  const rows = await rowsOf(id);
  expect(rows.map(({ name, signed_by }) => [name, signed_by])).toEqual([
    ['authorized', ours.key_id],
    ['settled', ours.key_id],
  ]);
  const { callback_id } = authorized;
  expect(await commands.json('callback', 'show', `${bank}:${callback_id}`)).toMatchObject({
    signed_by: ours.key_id,
    callback: { callback_id, bank_reference: 'B-1', occurred_at: authorized.occurred_at },
  });
});

test('refunds and payouts are reported in the same way', async () => {
  const refund = await setting.refund();
  const payout = await setting.payout();
  await deliver(report('refund', refund.id, 'settled'));
  await deliver(report('payout', payout, 'completed'));
  await setting.service.becomes('refunds', refund.id, { status: 'settled' });
  await setting.service.becomes('payouts', payout, { status: 'completed' });
  // Its workflow has ended: it is started again.
  const returned = report('payout', payout, 'returned', { code: 'closed', reason: 'Closed.' });
  await deliver(returned);
  await setting.service.becomes('payouts', payout, { status: 'returned' });
});

test('other money than was asked for is kept, and shown with the resource', async () => {
  const { id } = await setting.refund();
  const settled = report('refund', id, 'settled', { amount: 299, value_date: '2026-03-02' });
  await deliver(settled);
  await setting.service.becomes('refunds', id, { attention: 'amount_differs' });
  expect((await setting.cli('refund', 'show', id)).stdout).toContain('amount_differs');
});

test('ten equal ones at once are one row, one delivery, and one move', async () => {
  const id = await setting.payment();
  const settled = report('payment', id, 'settled');
  const all = await Promise.all(Array.from({ length: 10 }, () => send(settled)));
  expect(all.filter(({ status }) => status !== 202)).toEqual([]);
  const delivered = all.filter(({ body }) => body.status === 'delivered');
  // The one that delivers may get a 503, and its repeat is a duplicate.
  const isRepeated = all.some(({ repeats }) => repeats > 0);
  expect(isRepeated ? [0, 1] : [1]).toContain(delivered.length);
  await setting.service.becomes('payments', id, { status: 'settled' });
  expect(await rowsOf(id)).toHaveLength(1);
  const events = await setting.deps.db.collection('events').find({ resource_id: id }).toArray();
  expect(events.map(({ type }) => type).toSorted()).toEqual([
    'payment.authorized',
    'payment.awaiting_customer',
    'payment.settled',
  ]);
});

test('an unknown resource is parked; once it is there, a repeat delivers', async () => {
  const known = await setting.service.stores.payments.get(await setting.payment());
  if (known === null) throw new Error('no payment');
  const id = randomUUID();
  const authorized = report('payment', id, 'authorized', { amount: 1_050, currency: 'EUR' });
  expect(await answers(authorized)).toEqual(told('parked'));
  expect(await answers(authorized)).toEqual(told('parked'));
  const _id = `${bank}:${authorized.callback_id}`;
  expect(await commands.json('callback', 'list', '--parked', '--resource-id', id)).toMatchObject({
    data: [{ id: _id, parked: 'no such payment at this connector', signed_by: ours.key_id }],
  });
  expect(await commands.json('callback', 'deliver', _id)).toEqual({ id: _id, status: 'parked' });
  // Any other fact is a conflict, also while it waits.
  const other = [
    { amount: 1_051 },
    { currency: 'USD' },
    { event: 'settled' },
    { reason: 'More' },
    { resource_id: randomUUID() },
    { occurred_at: '2026-03-01T12:00:01Z' },
    { resource: 'refund', event: 'settled' },
  ];
  for (const change of other) {
    expect(await answers({ ...authorized, ...change })).toEqual([409, 'callback_conflict']);
  }
  const token_hash = randomUUID();
  const copy = { ...known, _id: id, token_hash, position: `${known.position}${id}` };
  await setting.deps.db.collection<PaymentDocument>('payments').insertOne(copy);
  const sameTime = { ...authorized, occurred_at: '2026-03-01T13:00:00.000+01:00' };
  await deliver(sameTime);
  await setting.service.becomes('payments', id, { status: 'authorized' });
  expect(await answers(authorized)).toEqual(told('duplicate'));
  expect(await answers({ ...authorized, code: 'x' })).toEqual([409, 'callback_conflict']);
});

test('one that was kept by a process that died before the signal is delivered by the repeat', async () => {
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
    signed_by: ours.key_id,
  });
  expect(await answers({ ...authorized, amount: 1 })).toEqual([409, 'callback_conflict']);
  await deliver(authorized);
  await setting.service.becomes('payments', resource_id, { status: 'authorized' });
});

test('a resource of another connector is like an unknown one, in each word of the answer', async () => {
  const id = await setting.payment();
  const how = { connector: OTHER, key: theirs };
  const [known, unknown] = [
    await send(report('payment', id, 'settled'), how),
    await send(report('payment', randomUUID(), 'settled'), how),
  ];
  expect([known.status, known.text]).toEqual([202, '{"status":"parked"}']);
  expect([unknown.status, unknown.text]).toEqual([known.status, known.text]);
  expect((await setting.service.stores.payments.get(id))?.status).toBe('awaiting_customer');
  // An id of theirs is not taken from us.
  const mine = report('payment', id, 'authorized');
  expect(await answers(mine, how)).toEqual(told('parked'));
  await deliver(mine);
});

test('who is not proved is refused, and nothing is kept', async () => {
  const id = await setting.payment();
  const text = JSON.stringify(report('payment', id, 'authorized'));
  const now = Math.floor(Date.now() / 1_000);
  const good = sign(ours.secret, text);
  const [, v1] = good.split(',');
  const refused: Sending[] = [
    { headers: [] },
    { headers: [['Connector-Signature', `${good},${v1}`]] },
    {
      headers: [
        ['Connector-Signature', good],
        ['Connector-Signature', good],
      ],
    },
    { headers: [['Connector-Signature', sign(ours.secret, text, now - 600)]] },
    { headers: [['Connector-Signature', sign(ours.secret, text, now + 3_600)]] },
    { headers: [['Connector-Signature', sign(ours.secret, `${text} `)]] },
    { headers: [['Connector-Signature', sign(`${ours.secret}x`, text)]] },
    { key: theirs },
    { connector: OTHER },
    { connector: 'nobody' },
    { connector: 'no.body' },
  ];
  for (const how of refused) {
    const answer = await post(text, how);
    expect(answerOf(answer)).toEqual([401, 'signature_invalid']);
    expect(answer.body.error).toEqual({
      type: 'authentication_error',
      code: 'signature_invalid',
      message: expect.any(String),
      request_id: answer.headers.get('request-id'),
    });
  }
  expect(await rowsOf(id)).toEqual([]);
  const shortlyAgo = Math.floor(Date.now() / 1_000) - 200;
  const slow = [['Connector-Signature', sign(ours.secret, text, shortlyAgo)]] as const;
  expectDelivery(await post(text, { headers: slow }));
});

test('a body that is no report is refused with each fault, once its sender is proved', async () => {
  const id = randomUUID();
  const good = report('payment', id, 'settled');
  const { callback_id: _, ...nameless } = good;
  const bodies: [string, string[]][] = [
    ['', []],
    ['{', []],
    ['[]', ['']],
    ['{"amount":1,"amount":2}', []],
    [JSON.stringify(nameless), ['callback_id']],
    [JSON.stringify({ ...good, resource: 'invoice' }), ['resource']],
    [JSON.stringify({ ...good, event: 'completed' }), ['event']],
    [JSON.stringify({ ...good, amount: 0 }), ['amount']],
    [JSON.stringify(good).replace('}', ',"amount":10.0}'), ['amount']],
    [JSON.stringify({ ...good, occurred_at: 'now', note: 'x' }), ['occurred_at', 'note']],
  ];
  for (const [text, fields] of bodies) {
    const answer = await post(text);
    expect([text, ...answerOf(answer)]).toEqual([text, 400, 'invalid_request']);
    const details: { field: string }[] = answer.body.error.details ?? [];
    expect([text, details.map(({ field }) => field)]).toEqual([text, fields]);
  }
  const large = JSON.stringify({ ...good, reason: 'x'.repeat(70_000) });
  expect(answerOf(await post(large))).toEqual([413, 'body_too_large']);
  expect(await rowsOf(id)).toEqual([]);
});

test('the example of the docs is delivered as it stands there', async () => {
  const id = await setting.payment();
  const page = readFileSync(join(ROOT, 'docs/connectors.md'), 'utf8');
  const example = /```sh\n(SECRET=.*?)```/s.exec(page)?.[1] ?? '';
  const script = example
    .replace('cnsec_…', ours.secret)
    .replace('PAYMENT_ID', id)
    .replace(
      'http://localhost:8080/connectors/sandbox',
      `${setting.service.url}/connectors/${bank}`,
    );
  expect(await bash(script)).toBe('{"status":"delivered"}');
  await setting.service.becomes('payments', id, { status: 'authorized' });
});

test('other methods and paths are none', async () => {
  const { url } = setting.service;
  const path = `/connectors/${bank}/callbacks`;
  const got = await exchange(url, { method: 'GET', path });
  expect([got.status, got.headers.get('allow')]).toEqual([405, 'POST']);
  expect((await exchange(url, { path: `${path}/` })).status).toBe(404);
});

test('several keys count side by side, until each is revoked; no secret is shown or stored', async () => {
  const next = Key.parse(await commands.json('connector', 'key', 'create', bank));
  expect(next.secret).toMatch(/^cnsec_[\w-]{43}$/);
  const id = randomUUID();
  for (const key of [ours, next]) {
    expect(await answers(report('payout', id, 'sent'), { key })).toEqual(told('parked'));
  }
  const revoked = await commands.json('connector', 'key', 'revoke', next.key_id);
  expect(await answers(report('payout', id, 'sent'), { key: next })).toEqual([
    401,
    'signature_invalid',
  ]);
  expect(await answers(report('payout', id, 'sent'))).toEqual(told('parked'));
  expect(await commands.json('connector', 'key', 'revoke', next.key_id)).toEqual(revoked);
  const { data } = Keys.parse(await commands.json('connector', 'key', 'list', bank));
  expect(data.map(({ key_id, revoked_at }) => [key_id, revoked_at !== null])).toEqual([
    [ours.key_id, false],
    [next.key_id, true],
  ]);
  const lines = await setting.deps.db
    .collection('audit_log')
    .find({ target: next.key_id })
    .sort({ _id: 1 })
    .toArray();
  expect(lines).toMatchObject([
    { act: 'connector_key.created', account_id: null, after: { connector: bank } },
    { act: 'connector_key.revoked', account_id: null, before: { revoked_at: null } },
  ]);
  const stored = await everythingStored(setting.deps.db);
  expect(stored).toContain(ours.key_id);
  expect(stored).not.toContain(ours.secret.slice('cnsec_'.length));
});

test('what can be no connector, and an unknown key, is refused on the command line', async () => {
  const refusal = async (...args: string[]) => (await commands.refusal(...args)).code;
  for (const act of ['create', 'list']) {
    expect(await refusal('connector', 'key', act, 'no.body')).toBe('connector_name_invalid');
  }
  expect(await refusal('connector', 'key', 'revoke', 'cnkey_1')).toBe('key_not_found');
});

test('a connector has a thousand parked at most: the next is a 429, what it has goes on', async () => {
  const id = await setting.payment();
  const unknown = () => report('payment', randomUUID(), 'settled');
  const row = { connector: bank, resource: 'payment', name: 'settled', body: {} };
  const parked = { ...row, received_at: '2026-03-01T12:00:00Z', signalled_at: null, parked: 'x' };
  const rows = setting.deps.db.collection<{ _id: string }>('bank_callbacks');
  const documents = Array.from({ length: 1_000 }, () => ({ ...parked, _id: randomUUID() }));
  await rows.insertMany(documents);
  const last = unknown();
  expect(await answers(last)).toEqual(told('parked'));
  const stored = await rows.countDocuments();
  const refused = await send(unknown());
  expect(answerOf(refused)).toEqual([429, 'rate_limited']);
  expect(refused.headers.get('Retry-After')).toBe('10');
  expect(await rows.countDocuments()).toBe(stored);
  expect(await answers(last)).toEqual(told('parked'));
  await deliver(report('payment', id, 'authorized'));
  const foreign = await answers(unknown(), { connector: OTHER, key: theirs });
  expect(foreign).toEqual(told('parked'));
  await rows.deleteMany({ _id: { $in: documents.map(({ _id }) => _id) } });
});

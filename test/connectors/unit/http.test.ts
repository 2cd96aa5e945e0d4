import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { z } from 'zod';
import { ACTIVITIES, type ActivityName } from '../../../connectors/contract/schemas';
import { defineHttp } from '../../../connectors/http/definition';
import { type HttpSettings, httpSettings } from '../../../connectors/http/settings';
import { BankFailure, createTestTools } from '../../../connectors/kit';
import { readKitConfig } from '../../../connectors/kit/config';
import { parseEnvironment } from '../../../src/config';
import { verifySignature } from '../../../src/webhooks/signature';

const SECRET = 'a secret of 24 characters';
const RECIPIENT = { first_name: 'Zephyrine', last_name: 'Li', iban: 'DE89370400440532013000' };

interface Received {
  method: string | undefined;
  url: string | undefined;
  headers: NodeJS.Dict<string | string[]>;
  body: string;
}

const received: Received[] = [];
const answers: { status: number; body: unknown }[] = [];
const server = createServer(async (request, response) => {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  const { method, url, headers } = request;
  received.push({ method, url, headers, body: Buffer.concat(chunks).toString() });
  const { status, body } = answers.shift() ?? { status: 500, body: {} };
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  response.writeHead(status, { Location: 'http://127.0.0.1:9/' }).end(text);
});
let url = '';
beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/base`;
});
afterAll(() => server.close());

const ALL = ['payments', 'refunds', 'payouts', 'cancelPayout'] as const;
const bank = defineHttp({ INSTRUCTIONS_FOR: [...ALL], INSTRUCTIONS_PER_SECOND: 1_000 });
const openTools = () => {
  const settings = { INSTRUCTIONS_URL: url, INSTRUCTIONS_SECRET_FILE: SECRET };
  const more = { INSTRUCTIONS_FOR: [...ALL], INSTRUCTIONS_PER_SECOND: 1_000 };
  return createTestTools<HttpSettings>({ ...settings, ...more }, RECIPIENT);
};

const payment_id = randomUUID();
const refund_id = randomUUID();
const payout_id = randomUUID();
const money = { amount: 1_000, currency: 'EUR' };
const route = { method: 'ideal', livemode: false };
const session = {
  ...{ payment_id, ...money, ...route, country: 'NL', return_url: 'http://localhost/pay' },
  expires_at: '2026-11-26T12:00:00.000Z',
};
const refund = { refund_id, version: 1, payment_id, payment_bank_reference: 'B-1' };
const payout = { payout_id, version: 1, ...money, method: 'sepa_instant', livemode: false };
const reversal = { payment_id, instruction_id: `reversal:${payment_id}`, ...money };
const closing = { payment_id, bank_reference: null };
const voiding = { ...closing, instruction_id: `void:${payment_id}` };
const opened = {
  outcome: 'opened',
  ...{ bank_reference: 'B-1', session_url: 'http://127.0.0.1/pay' },
};
const accepted = { outcome: 'accepted', bank_reference: 'B-2' };
const submitted = { outcome: 'submitted', bank_reference: 'B-3' };
const refusedWords = { code: 'account_closed', message: 'The account is closed.' };

interface Case {
  input: object;
  key: string | undefined;
  answer: object;
  /** Outcome of a refusal; undefined where the bank cannot refuse. */
  refused: string | undefined;
}

const CASES: Record<ActivityName, Case> = {
  openSession: { input: session, key: payment_id, answer: opened, refused: 'declined' },
  closeSession: {
    ...{ input: closing, key: `close:${payment_id}`, answer: { outcome: 'closed' } },
    refused: undefined,
  },
  voidPayment: {
    ...{ input: voiding, key: `void:${payment_id}`, refused: undefined },
    answer: { outcome: 'already_settled', ...money },
  },
  reversePayment: {
    ...{ input: reversal, key: reversal.instruction_id, answer: accepted, refused: 'refused' },
  },
  sendRefund: {
    input: { ...refund, ...money, ...route },
    ...{ key: refund_id, answer: accepted, refused: 'refused' },
  },
  lookUpRefund: {
    ...{ input: { refund_id }, key: undefined, answer: accepted, refused: 'refused' },
  },
  sendPayout: { input: payout, key: payout_id, answer: submitted, refused: 'refused' },
  lookUpPayout: {
    ...{ input: { payout_id }, key: undefined, refused: 'refused' },
    answer: { outcome: 'not_found' },
  },
  cancelPayout: {
    ...{ input: { payout_id }, key: undefined, answer: { outcome: 'too_late' } },
    refused: undefined,
  },
};
const NAMES = Object.keys(CASES) as ActivityName[];

/** Calls a function of the connector by its name. */
async function instruct(name: ActivityName, input: object, answer?: (typeof answers)[number]) {
  answers.splice(0);
  received.splice(0);
  if (answer !== undefined) answers.push(answer);
  const call = bank[name] as (input: object, tools: object) => Promise<unknown>;
  return await call(input, openTools());
}

test.each(NAMES)('%s is posted, signed and in the form of its schema', async (name) => {
  const { input, key, answer } = CASES[name];
  expect(await instruct(name, input, { status: 200, body: answer })).toEqual(answer);
  const [first] = received;
  if (first === undefined) throw new Error('Nothing was posted.');
  const { method, url: path, headers, body } = first;
  expect({ method, path }).toEqual({ method: 'POST', path: `/base/instructions/${name}` });
  expect(headers).toMatchObject({ 'content-type': 'application/json', 'contract-version': '1' });
  expect(headers['idempotency-key']).toBe(key);
  const header = String(headers['service-signature']);
  const now = Date.now() / 1_000;
  expect(verifySignature({ header, body, secret: SECRET, now, toleranceSeconds: 5 })).toBe(true);
  const sent = JSON.parse(body);
  expect(sent).toMatchObject({ activity: name, ...input });
  expect(ACTIVITIES[name].instruction.parse(sent)).toEqual(sent);
});

test('a payout has the recipient, and no other instruction has', async () => {
  await instruct('sendPayout', { ...payout, more: 1 }, { status: 200, body: submitted });
  const { recipient, reference, ...rest } = JSON.parse(String(received[0]?.body));
  expect(recipient).toMatchObject({ ...RECIPIENT, type: 'bank_account' });
  expect({ reference, rest }).toEqual({
    reference: null,
    rest: { activity: 'sendPayout', ...payout },
  });
});

test.each(NAMES)('422 of %s is a refusal, or an outage where it cannot be one', async (name) => {
  const { input, refused } = CASES[name];
  const answering = instruct(name, input, { status: 422, body: { ...refusedWords, more: 1 } });
  if (refused === undefined) return await expect(answering).rejects.toThrow('answered 422');
  const message = name === 'lookUpPayout' ? 'The bank refused the payout.' : refusedWords.message;
  expect(await answering).toEqual({ outcome: refused, code: refusedWords.code, message });
});

const FAULTS = [
  { status: 201, body: submitted },
  { status: 302, body: '' },
  { status: 400, body: refusedWords },
  { status: 401, body: refusedWords },
  { status: 404, body: { outcome: 'not_found' } },
  { status: 500, body: submitted },
  { status: 200, body: '' },
  { status: 200, body: '<html>' },
  { status: 200, body: {} },
  { status: 200, body: { outcome: 'not an outcome' } },
  { status: 200, body: { outcome: 'refused', ...refusedWords } },
  { status: 422, body: { detail: 'Not valid.' } },
  { status: 422, body: { ...refusedWords, code: 'DE89 3704 0044' } },
  { status: 422, body: { ...refusedWords, message: '' } },
  { status: 422, body: { ...refusedWords, message: 'x'.repeat(501) } },
];
const EACH = NAMES.flatMap((name) => FAULTS.map((fault) => ({ name, ...fault })));

test.each(EACH)('$name answered $status $body is an outage', async ({ name, ...fault }) => {
  await expect(instruct(name, CASES[name].input, fault)).rejects.toThrow(BankFailure);
});

test.each([
  ['sendRefund', { outcome: 'accepted' }],
  ['sendRefund', { ...accepted, bank_reference: 'x'.repeat(201) }],
  ['sendPayout', { outcome: 'not_found' }],
  ['voidPayment', { outcome: 'already_settled', amount: 10.5 }],
  ['openSession', { ...opened, session_url: 'javascript:alert(1)' }],
] as const)('%s answered %j is an outage', async (name, body) => {
  await expect(instruct(name, CASES[name].input, { status: 200, body })).rejects.toThrow('fit');
});

const instructions = {
  ...{ iban: 'DE89370400440532013000', account_holder: 'ACME Corporation', bic: null },
  ...{ reference: 'RF18539007547034', amount: session.amount },
};
const transferred = { outcome: 'opened', bank_reference: 'B-1', instructions };

test('bank details may come in place of a page', async () => {
  const answer = { status: 200, body: { ...transferred, more: 1 } };
  expect(await instruct('openSession', session, answer)).toEqual(transferred);
});

test.each([
  ['IBAN', { iban: 'DE88370400440532013000' }],
  ['BIC', { bic: 'deutdeff' }],
  ['reference', { reference: 'RF19539007547034' }],
  ['amount', { amount: 10.5 }],
])('bank details with a wrong %s are an outage', async (_what, change) => {
  const body = { ...transferred, instructions: { ...instructions, ...change } };
  await expect(instruct('openSession', session, { status: 200, body })).rejects.toThrow('fit');
});

test('a page of live is https', async () => {
  const open = (session_url: string) =>
    instruct(
      'openSession',
      { ...session, livemode: true },
      { status: 200, body: { ...opened, session_url } },
    );
  await expect(open('http://bank.example/pay')).rejects.toThrow('not https');
  expect(await open('https://bank.example/pay')).toMatchObject({ outcome: 'opened' });
});

test.each([
  'Zephyrine has moved.',
  'zephy-RINE has moved.',
  'Mr. Li has moved.',
  'DE89 3704 0044 0532 0130 00 is closed.',
  'Account 0532013000 is closed.',
  'Not valid: {"iban":"DE89370400440532013000"}',
])('a refusal that quotes the recipient loses its words: %s', async (message) => {
  const body = { code: 'account_closed', message };
  expect(await instruct('sendPayout', payout, { status: 422, body })).toEqual({
    ...{ outcome: 'refused', code: 'account_closed', message: 'The bank refused the payout.' },
  });
});

test('a code that quotes the recipient is replaced, and other words stay', async () => {
  const body = { code: 'Zephyrine', message: 'The limit of 12345 is reached.' };
  expect(await instruct('sendPayout', payout, { status: 422, body })).toEqual({
    ...{ outcome: 'refused', code: 'refused', message: body.message },
  });
});

describe('the settings', () => {
  const read = (env: NodeJS.ProcessEnv) =>
    parseEnvironment(z.object(httpSettings), {
      ...{ INSTRUCTIONS_URL: 'https://bank.example/payments/', INSTRUCTIONS_FOR: 'payouts' },
      ...{ INSTRUCTIONS_SECRET_FILE: __filename, ...env },
    });

  test('have an address without a final slash, and groups in any order', () => {
    expect(read({ INSTRUCTIONS_FOR: 'cancelPayout | payouts' })).toMatchObject({
      INSTRUCTIONS_URL: 'https://bank.example/payments',
      INSTRUCTIONS_FOR: ['payouts', 'cancelPayout'],
      INSTRUCTIONS_PER_SECOND: 20,
    });
  });

  test.each([
    [{ INSTRUCTIONS_URL: 'ftp://bank.example' }, 'INSTRUCTIONS_URL'],
    [{ INSTRUCTIONS_URL: 'https://me:secret@bank.example' }, 'must have no user name'],
    [{ INSTRUCTIONS_URL: 'https://bank.example/?key=1' }, 'must have no user name'],
    [{ INSTRUCTIONS_SECRET_FILE: '/none' }, 'the file /none cannot be read'],
    [{ INSTRUCTIONS_SECRET_FILE: '/dev/null' }, 'at least 24 characters'],
    [{ INSTRUCTIONS_FOR: '' }, 'INSTRUCTIONS_FOR'],
    [{ INSTRUCTIONS_FOR: 'payouts|crypto' }, 'must be some of payments, refunds'],
    [{ INSTRUCTIONS_FOR: 'refunds|cancelPayout' }, 'cancelPayout needs payouts'],
    [{ INSTRUCTIONS_PER_SECOND: '0' }, 'INSTRUCTIONS_PER_SECOND'],
  ])('%j are refused', (env, message) => {
    expect(() => read(env)).toThrow(message);
  });

  test('say what is served, and need no key of callbacks', () => {
    const env = {
      ...{ MONGODB_URI: 'mongodb://127.0.0.1', CONNECTOR_NAME: 'acme', KEYS_DIR: '/keys' },
      ...{ INSTRUCTIONS_URL: 'https://bank.example', INSTRUCTIONS_FOR: 'payouts' },
      INSTRUCTIONS_SECRET_FILE: __filename,
    };
    const settings = read(env);
    const route = (LIVE_CONNECTORS: string) =>
      readKitConfig(defineHttp(settings), { ...env, LIVE_CONNECTORS });
    expect(route('acme=sepa_instant')).toMatchObject({ environment: 'live', name: 'acme' });
    expect(() => route('acme=sepa_instant|visa')).toThrow('acme does not serve visa');
  });
});

import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { ACTIVITIES, type ActivityName } from '../../../connectors/contract/schemas';
import { defineHttp, type HttpSettings, httpSettings } from '../../../connectors/http/definition';
import { BankFailure, createTestTools } from '../../../connectors/kit';
import { readKitConfig } from '../../../connectors/kit/config';
import { parseEnvironment } from '../../../src/config';
import { verifySignature } from '../../../src/webhooks/attempt';
import { answer, useScriptedServer } from '../../clients/unit/scripted-server';

const SECRET = 'a secret of 24 characters';
const RECIPIENT = { first_name: 'Zephyrine', last_name: 'Li', iban: 'DE89370400440532013000' };
const SERVED: Parameters<typeof defineHttp>[0] = {
  INSTRUCTIONS_FOR: ['payments', 'refunds', 'payouts', 'cancelPayout', 'disputes'],
  INSTRUCTIONS_PER_SECOND: 1_000,
  REFERENCE_PER_STEP: 'no',
};

const server = useScriptedServer();
const bank = defineHttp(SERVED);

/** Calls a function of the connector, which the bank answers with this status and body. */
async function instruct(name: ActivityName, input: object, status: number, body: unknown) {
  server.script.push(answer(status, body, { Location: 'http://127.0.0.1:9/' }));
  const INSTRUCTIONS_URL = `${server.url}/base`;
  const settings = { ...SERVED, INSTRUCTIONS_URL, INSTRUCTIONS_SECRET_FILE: SECRET };
  const call = bank[name] as (input: object, tools: object) => Promise<unknown>;
  return await call(input, createTestTools<HttpSettings>(settings, RECIPIENT));
}

const payment_id = randomUUID();
const refund_id = randomUUID();
const payout_id = randomUUID();
const money = { amount: 1_000, currency: 'EUR' };
const route = { method: 'ideal', livemode: false };
const session = {
  ...{ payment_id, ...money, ...route, country: 'NL', return_url: 'http://localhost/pay' },
  expires_at: '2026-11-26T12:00:00.000Z',
};
const closing = { payment_id, bank_reference: null };
const voiding = { ...closing, instruction_id: `void:${payment_id}` };
const reversal = { payment_id, instruction_id: `reversal:${payment_id}`, ...money };
const refundFacts = { payment_id, payment_bank_reference: 'B-1', ...money, ...route };
const refund = { refund_id, version: 1, ...refundFacts };
const payout = { payout_id, version: 1, ...money, method: 'sepa_instant', livemode: false };

const page = { bank_reference: 'B-1', session_url: 'http://127.0.0.1/pay' };
const opened = { outcome: 'opened', ...page };
const accepted = { outcome: 'accepted', bank_reference: 'B-2' };
const submitted = { outcome: 'submitted', bank_reference: 'B-3' };
const settledBefore = { outcome: 'already_settled', ...money };
const refusal = { code: 'account_closed', message: 'The account is closed.' };

const told = { outcome: 'accepted' };
const dispute_id = `dp_${payment_id}`;
const asking = {
  ...{ instruction_id: `evidence:${dispute_id}`, dispute_id, payment_id },
  bank_dispute_id: 'D1',
};
const answering = { ...asking, version: 1, livemode: false };

/** `refused`: outcome of a refusal, if the bank can refuse. */
type Case = readonly [input: object, key: string | undefined, answer: object, refused?: string];

const CASES: Record<ActivityName, Case> = {
  openSession: [session, payment_id, opened, 'declined'],
  closeSession: [closing, `close:${payment_id}`, { outcome: 'closed' }],
  voidPayment: [voiding, `void:${payment_id}`, settledBefore],
  reversePayment: [reversal, reversal.instruction_id, accepted, 'refused'],
  sendRefund: [refund, refund_id, accepted, 'refused'],
  lookUpRefund: [{ refund_id }, undefined, accepted, 'refused'],
  sendPayout: [payout, payout_id, submitted, 'refused'],
  lookUpPayout: [{ payout_id }, undefined, { outcome: 'not_found' }, 'refused'],
  cancelPayout: [{ payout_id }, undefined, { outcome: 'too_late' }],
  submitEvidence: [answering, asking.instruction_id, told, 'refused'],
  lookUpEvidence: [asking, undefined, told, 'refused'],
  acceptDispute: [answering, asking.instruction_id, told, 'refused'],
  lookUpAcceptance: [asking, undefined, { outcome: 'not_found' }, 'refused'],
};
const NAMES = Object.keys(CASES) as ActivityName[];

test.each(NAMES)('%s is posted with a signature and in the form of its schema', async (name) => {
  const [input, key, outcome] = CASES[name];
  expect(await instruct(name, input, 200, outcome)).toEqual(outcome);
  const [call] = server.calls;
  if (call === undefined) throw new Error('Nothing was posted.');
  const { method, url, headers, body } = call;
  expect({ method, url }).toEqual({ method: 'POST', url: `/base/instructions/${name}` });
  expect(headers).toMatchObject({ 'content-type': 'application/json', 'contract-version': '1' });
  expect(headers['idempotency-key']).toBe(key);
  const header = String(headers['service-signature']);
  const now = Date.now() / 1_000;
  expect(verifySignature({ header, body, secret: SECRET, now, toleranceSeconds: 5 })).toBe(true);
  const sent = JSON.parse(body);
  expect(sent).toMatchObject({ activity: name, ...input });
  expect(ACTIVITIES[name].instruction.parse(sent)).toEqual(sent);
});

test('a payout is posted with its recipient, and with no field that the contract does not have', async () => {
  await instruct('sendPayout', { ...payout, more: 1 }, 200, submitted);
  const { recipient, reference, ...rest } = JSON.parse(String(server.calls[0]?.body));
  expect(recipient).toMatchObject({ ...RECIPIENT, type: 'bank_account' });
  expect(reference).toBeNull();
  expect(rest).toEqual({ activity: 'sendPayout', ...payout });
});

test.each(NAMES)('422 of %s is a refusal, or an outage if the bank cannot refuse', async (name) => {
  const [input, , , outcome] = CASES[name];
  const result = instruct(name, input, 422, { ...refusal, more: 1 });
  if (outcome === undefined) return await expect(result).rejects.toThrow('answered 422');
  const hidden: Partial<Record<ActivityName, string>> = {
    lookUpPayout: 'The bank refused the payout.',
    submitEvidence: 'The bank did not take the evidence.',
    lookUpEvidence: 'The bank did not take the evidence.',
  };
  const message = hidden[name] ?? refusal.message;
  expect(await result).toEqual({ outcome, code: refusal.code, message });
});

const FAULTS = [
  [201, submitted],
  [302, ''],
  [400, refusal],
  [401, refusal],
  [404, { outcome: 'not_found' }],
  [500, submitted],
  [200, ''],
  [200, '<html>'],
  [200, {}],
  [200, { outcome: 'not an outcome' }],
  [200, { outcome: 'refused', ...refusal }],
  [422, { detail: 'Not valid.' }],
  [422, { ...refusal, code: 'DE89 3704 0044' }],
  [422, { ...refusal, message: '' }],
  [422, { ...refusal, message: 'x'.repeat(501) }],
] as const;
const EACH = NAMES.flatMap((name) => FAULTS.map((fault) => [name, ...fault] as const));

test.each(EACH)('%s answered with %d %j is an outage', async (name, status, body) => {
  await expect(instruct(name, CASES[name][0], status, body)).rejects.toThrow(BankFailure);
});

const details = {
  ...{ iban: 'DE89370400440532013000', account_holder: 'ACME Corporation', bic: null },
  ...{ reference: 'RF18539007547034', amount: session.amount },
};
const transfer = { outcome: 'opened', bank_reference: 'B-1', instructions: details };
const changeDetails = (change: object) => ({
  ...transfer,
  instructions: { ...details, ...change },
});

test.each([
  ['sendRefund', { outcome: 'accepted' }],
  ['sendRefund', { ...accepted, bank_reference: 'x'.repeat(201) }],
  ['sendPayout', { outcome: 'not_found' }],
  ['voidPayment', { outcome: 'already_settled', amount: 10.5 }],
  ['openSession', { ...opened, session_url: 'javascript:alert(1)' }],
  ['openSession', changeDetails({ iban: 'DE88370400440532013000' })],
  ['openSession', changeDetails({ bic: 'deutdeff' })],
  ['openSession', changeDetails({ reference: 'RF19539007547034' })],
  ['openSession', changeDetails({ amount: 10.5 })],
] as const)('%s answered with the wrong field of %j is an outage', async (name, body) => {
  await expect(instruct(name, CASES[name][0], 200, body)).rejects.toThrow('fit');
});

test('a session may have bank details in place of a page', async () => {
  const body = { ...transfer, more: 1 };
  expect(await instruct('openSession', session, 200, body)).toEqual(transfer);
});

test('the page of a live session is https', async () => {
  const open = (scheme: string) => {
    const body = { ...opened, session_url: `${scheme}://bank.example/pay` };
    return instruct('openSession', { ...session, livemode: true }, 200, body);
  };
  await expect(open('http')).rejects.toThrow('not https');
  expect(await open('https')).toMatchObject({ outcome: 'opened' });
});

test.each([
  'Zephyrine has moved.',
  'zephy-RINE has moved.',
  'Mr. Li has moved.',
  'DE89 3704 0044 0532 0130 00 is closed.',
  'Account 0532013000 is closed.',
  'Not valid: {"iban":"DE89370400440532013000"}',
])('a message that quotes the recipient is replaced: %s', async (message) => {
  const { code } = refusal;
  expect(await instruct('sendPayout', payout, 422, { code, message })).toEqual({
    ...{ outcome: 'refused', code, message: 'The bank refused the payout.' },
  });
});

test('a code that quotes the recipient is replaced, and the message stays', async () => {
  const message = 'The limit of 12345 is reached.';
  const result = await instruct('sendPayout', payout, 422, { code: 'Zephyrine', message });
  expect(result).toEqual({ outcome: 'refused', code: 'refused', message });
});

describe('the settings', () => {
  const ENV = {
    INSTRUCTIONS_URL: 'https://bank.example/payments/',
    INSTRUCTIONS_FOR: 'payouts',
    INSTRUCTIONS_SECRET_FILE: __filename,
  };
  // Others can read these files, of which the kit warns.
  beforeEach(() => void jest.spyOn(process, 'emitWarning').mockReturnValue());
  afterEach(() => jest.restoreAllMocks());
  const read = (env: NodeJS.ProcessEnv = {}) =>
    parseEnvironment(z.object(httpSettings), { ...ENV, ...env });

  test('have an address without a final slash, and groups in any order', () => {
    expect(read({ INSTRUCTIONS_FOR: 'cancelPayout | payouts' })).toMatchObject({
      INSTRUCTIONS_URL: 'https://bank.example/payments',
      INSTRUCTIONS_FOR: ['payouts', 'cancelPayout'],
      INSTRUCTIONS_PER_SECOND: 20,
    });
  });

  test.each([
    [{ INSTRUCTIONS_URL: 'ftp://bank.example' }, 'INSTRUCTIONS_URL'],
    [{ INSTRUCTIONS_URL: 'bank.example' }, 'INSTRUCTIONS_URL'],
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
    const places = { KEYS_DIR: '/keys', CONNECTOR_STATE_DIR: '/state' };
    const names = { MONGODB_URI: 'mongodb://127.0.0.1', CONNECTOR_NAME: 'acme', ...places };
    const route = (LIVE_CONNECTORS: string) =>
      readKitConfig(defineHttp(read()), { ...ENV, ...names, LIVE_CONNECTORS });
    expect(route('acme=sepa_instant')).toMatchObject({ environment: 'live', name: 'acme' });
    expect(() => route('acme=sepa_instant|visa')).toThrow('acme does not serve visa');
  });
});

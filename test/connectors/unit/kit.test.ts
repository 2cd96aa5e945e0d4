import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { z } from 'zod';
import { BankFailure, createBankClient, createLimiter } from '../../../connectors/kit/bank-client';
import { readKitConfig } from '../../../connectors/kit/config';
import { defineConnector } from '../../../connectors/kit/definition';
import { findEnvironment } from '../../../connectors/kit/environment';
import { assertSigned } from '../../../connectors/kit/webhook-request';

const sends = {
  sendPayout: async () => ({ outcome: 'sent', bank_reference: 'B-1' }) as const,
  lookUpPayout: async () => ({ outcome: 'not_found' }) as const,
};
const poll = { seconds: 1, read: async () => ({ reports: [], cursor: null }) };
const acme = defineConnector({
  ...{ name: 'acme', serves: ['sepa_instant'], settings: { ACME_URL: z.url() }, poll, ...sends },
});

describe('a definition', () => {
  test('of a method needs the functions for it', () => {
    const define = (serves: 'visa' | 'sepa_instant') => () =>
      defineConnector({ name: 'acme', serves: [serves], settings: {}, poll });
    expect(define('visa')).toThrow('The connector acme serves visa, so it needs openSession.');
    expect(define('sepa_instant')).toThrow('serves sepa_instant, so it needs sendPayout.');
  });

  test('needs a way to learn of results', () => {
    expect(() => defineConnector({ name: 'acme', serves: [], settings: {} })).toThrow(
      'The connector acme learns of no result: it needs webhook or poll.',
    );
  });
});

describe('the environment of a connector', () => {
  const find = (live: string, tests: string) =>
    findEnvironment(acme, 'acme', { LIVE_CONNECTORS: live, SANDBOX_CONNECTORS: tests });

  test('is the one that routes to it', () => {
    expect(find('acme=sepa_instant', '')).toBe('live');
    expect(find('other=visa', 'acme=sepa_instant')).toBe('sandbox');
  });

  test.each([
    [
      'other=visa',
      '',
      'Nothing is routed to acme: name it in LIVE_CONNECTORS or SANDBOX_CONNECTORS',
    ],
    ['acme=sepa_instant|visa', '', 'LIVE_CONNECTORS: acme does not serve visa.'],
    [
      '',
      'acme=faster_payments|ideal',
      'SANDBOX_CONNECTORS: acme does not serve ideal, faster_payments.',
    ],
    ['acme=eth_ethereum', '', 'LIVE_CONNECTORS: acme does not serve eth_ethereum.'],
  ])('LIVE %j and SANDBOX %j are refused in words', (live, tests, message) => {
    expect(() => find(live, tests)).toThrow(message);
  });
});

test('a connector names every variable that it needs', () => {
  const env = { MONGODB_URI: 'mongodb://127.0.0.1', LIVE_CONNECTORS: 'acme=sepa_instant' };
  expect(() => readKitConfig(acme, env)).toThrow(
    'The connector acme needs KEYS_DIR, CONNECTOR_KEY_FILE.',
  );
  const more = { ...env, KEYS_DIR: '/keys', CONNECTOR_KEY_FILE: '/key' };
  expect(() => readKitConfig(acme, more)).toThrow('ACME_URL');
  const config = readKitConfig(acme, { ...more, ACME_URL: 'https://bank.example' });
  expect(config).toMatchObject({ environment: 'live', isLive: true, name: 'acme' });
  const other = { ...more, ACME_URL: 'https://bank.example', CONNECTOR_NAME: 'other' };
  expect(() => readKitConfig(acme, other)).toThrow('Nothing is routed to other');
});

describe('a call to the bank', () => {
  const answers: { status: number; body: string }[] = [];
  const server = createServer((_request, response) => {
    const { status, body } = answers.shift() ?? { status: 200, body: '{}' };
    response.writeHead(status, { Location: 'http://127.0.0.1:9/' }).end(body);
  });
  let url = '';
  beforeAll(async () => {
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  });
  afterAll(() => server.close());

  const counted: string[] = [];
  const count = (outcome: string) => counted.push(outcome);
  const call = (needsTls = false) => createBankClient({ needsTls, count })();
  const schema = z.object({ name: z.string() });

  test('answers the status with the body of its schema', async () => {
    answers.push({ status: 201, body: '{"name":"Ada"}' });
    const answer = await call()({ url }, { 200: z.null(), 201: schema });
    expect(answer).toEqual({ status: 201, body: { name: 'Ada' } });
  });

  test.each([
    [{ status: 500, body: 'Ada Lovelace' }, 'The bank answered 500.'],
    [{ status: 302, body: '' }, 'The bank does not answer (TypeError).'],
    [{ status: 200, body: 'Ada Lovelace' }, 'The bank answered 200, but the body does not fit.'],
    [{ status: 200, body: '{"name":7}' }, 'The bank answered 200, but name does not fit.'],
    [{ status: 200, body: 'x'.repeat(1_048_577) }, 'The bank does not answer (RangeError).'],
  ])('fails without a word of the answer: %#', async (answer, message) => {
    answers.push(answer);
    const failure = await call()({ url }, { 200: schema }).catch((error: unknown) => error);
    expect(failure).toEqual(new BankFailure(message));
    expect(failure).not.toHaveProperty('cause');
    expect(counted.at(-1)).toBe('failed');
  });

  test('is not made without TLS where real money is sent', async () => {
    await expect(call(true)({ url }, { 200: z.object({}) })).rejects.toThrow('is not https');
    expect(await call()({ url }, { 200: z.object({}) })).toEqual({ status: 200, body: {} });
  });
});

test('calls beyond the limit wait: in parallel, and for the next one', async () => {
  const inTurn = createLimiter({ perSecond: 50, atOnce: 2 });
  let running = 0;
  let most = 0;
  const began = performance.now();
  const work = async () => {
    running += 1;
    most = Math.max(most, running);
    await new Promise((resolve) => setTimeout(resolve, 30));
    running -= 1;
  };
  await Promise.all([1, 2, 3, 4, 5].map(() => inTurn(work)));
  expect(most).toBe(2);
  // The fifth begins four fiftieths of a second after the first.
  expect(performance.now() - began).toBeGreaterThan(79);
});

test.each([undefined, '', 'ab', ['ab'], 'zz'.repeat(32), '00'.repeat(32), '00'.repeat(33)])(
  'the signature %j is refused',
  (signature) => {
    const assert = () => assertSigned({ body: 'text', secret: 'secret', signature });
    expect(assert).toThrow('The signature is not valid.');
  },
);

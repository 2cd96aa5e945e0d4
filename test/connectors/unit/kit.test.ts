import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { z } from 'zod';
import {
  AnswerMalformed,
  BankFailure,
  countSlots,
  createBankClient,
  createLimiter,
} from '../../../connectors/kit/bank-client';
import { findEnvironment, readKitConfig } from '../../../connectors/kit/config';
import { assertSigned, defineConnector, type Report } from '../../../connectors/kit/definition';
import { startLoop } from '../../../connectors/kit/loop';
import { HIDDEN, hide, hidePath } from '../../../connectors/kit/page/hide';
import { createStepLog } from '../../../connectors/kit/page/steps';
import { secretFile } from '../../../connectors/kit/secret-file';
import { answer, useScriptedServer } from '../../clients/unit/scripted-server';
import { gate } from '../../support/gate';

const poll = { seconds: 1, read: async () => ({ reports: [], cursor: null }) };
const acme = defineConnector({
  name: 'acme',
  serves: ['sepa_instant'],
  settings: { ACME_URL: z.url() },
  poll,
  sendPayout: async () => ({ outcome: 'sent', bank_reference: 'B-1' }) as const,
  lookUpPayout: async () => ({ outcome: 'not_found' }) as const,
});

test.each([
  [['visa'] as const, { poll }, 'The connector acme serves visa, so it needs openSession.'],
  [['sepa_instant'] as const, { poll }, 'serves sepa_instant, so it needs sendPayout.'],
  [[], {}, 'The connector acme learns of no result: it needs webhook or poll.'],
])(
  'a connector that serves %j is refused without the functions for it',
  (serves, rest, message) => {
    const named = { name: 'acme', serves: [...serves], settings: {} };
    expect(() => defineConnector({ ...named, ...rest })).toThrow(message);
  },
);

test('a file with a secret is read without its end of line, and others who may read it are named', () => {
  const folder = mkdtempSync(join(tmpdir(), 'secret-'));
  const path = join(folder, 'key');
  const warn = jest.spyOn(process, 'emitWarning').mockImplementation(() => {});
  writeFileSync(path, 'secret\n', { mode: 0o600 });
  expect(secretFile.parse(path)).toBe('secret');
  expect(warn).not.toHaveBeenCalled();
  chmodSync(path, 0o644);
  expect(secretFile.parse(path)).toBe('secret');
  expect(warn).toHaveBeenCalledWith(expect.stringContaining('others can read the key file'));
  warn.mockRestore();
  rmSync(folder, { recursive: true });
  expect(() => secretFile.parse(path)).toThrow('cannot be read');
});

describe('the environment of a connector', () => {
  const find = (live: string, sandbox: string) =>
    findEnvironment(acme, 'acme', { LIVE_CONNECTORS: live, SANDBOX_CONNECTORS: sandbox });

  test('is the one that routes to it', () => {
    expect(find('acme=sepa_instant', '')).toBe('live');
    expect(find('other=visa', 'acme=sepa_instant')).toBe('sandbox');
  });

  test.each([
    ['other=visa', '', 'to acme: name it in LIVE_CONNECTORS or SANDBOX_CONNECTORS'],
    ['acme=sepa_instant|visa', '', 'LIVE_CONNECTORS: acme does not serve visa.'],
    ['', 'acme=faster_payments|ideal', 'SANDBOX_CONNECTORS: acme does not serve ideal, faster_'],
    ['acme=eth_ethereum', '', 'LIVE_CONNECTORS: acme does not serve eth_ethereum.'],
  ])('is refused for LIVE_CONNECTORS %j and SANDBOX_CONNECTORS %j', (live, sandbox, message) => {
    expect(() => find(live, sandbox)).toThrow(message);
  });
});

test('the configuration names every variable that a connector needs', () => {
  const env = { MONGODB_URI: 'mongodb://127.0.0.1', LIVE_CONNECTORS: 'acme=sepa_instant' };
  const read = (more: NodeJS.ProcessEnv) => readKitConfig(acme, { ...env, ...more });
  const missing = 'The connector acme needs CONNECTOR_STATE_DIR, KEYS_DIR, CONNECTOR_KEY_FILE.';
  expect(() => read({})).toThrow(missing);
  const keys = { KEYS_DIR: '/keys', CONNECTOR_KEY_FILE: '/key', CONNECTOR_STATE_DIR: '/state' };
  expect(() => read(keys)).toThrow('ACME_URL');
  const all = { ...keys, ACME_URL: 'https://bank.example' };
  expect(read(all)).toMatchObject({ environment: 'live', isLive: true, name: 'acme' });
  const other = { ...all, CONNECTOR_NAME: 'other' };
  expect(() => read(other)).toThrow('Nothing is routed to other');
});

describe('a call to the bank', () => {
  const server = useScriptedServer();
  const counted: string[] = [];
  const count = (outcome: string) => counted.push(outcome);
  const createCall = (needsTls = false) => createBankClient({ needsTls, count })();
  const schema = z.object({ name: z.string() });

  test('returns the status, and the body of the schema of this status', async () => {
    server.script.push(answer(201, { name: 'Ada' }));
    const result = await createCall()({ url: server.url }, { 200: z.null(), 201: schema });
    expect(result).toEqual({ status: 201, body: { name: 'Ada' } });
  });

  test.each([
    [500, 'Ada Lovelace', 'The bank answered 500.'],
    [302, '', 'The bank does not answer (TypeError).'],
    [200, 'Ada Lovelace', 'The bank answered 200 without JSON.'],
    [200, '"Ada"', 'The bank answered 200, but the body does not fit.'],
    [200, '{"name":7}', 'The bank answered 200, but name does not fit.'],
    [200, 'x'.repeat(1_048_577), 'The bank does not answer (RangeError).'],
  ])('fails without a word of the answer: %#', async (status, body, message) => {
    server.script.push(answer(status, body, { Location: 'http://127.0.0.1:9/' }));
    const call = createCall()({ url: server.url }, { 200: schema });
    const failure = await call.catch((error: unknown) => error);
    expect(failure).toEqual(new BankFailure(message));
    // Each repeat is malformed, too: it may be set aside.
    expect(failure instanceof AnswerMalformed).toBe(message.endsWith('fit.'));
    expect(failure).not.toHaveProperty('cause');
    expect(counted.at(-1)).toBe('failed');
  });

  test('may have a body of another type, and a failure has the headers of its answer', async () => {
    server.script.push(answer(503, {}, { 'Retry-After': '7' }));
    const headers = { 'Content-Type': 'application/x-www-form-urlencoded' };
    const request = { method: 'POST' as const, url: server.url, text: 'a=1', headers };
    const failure = await createCall()(request, { 200: z.unknown() }).catch((error) => error);
    const sent = { body: 'a=1', headers: { 'content-type': headers['Content-Type'] } };
    expect(server.calls[0]).toMatchObject(sent);
    expect([failure.answer.status, failure.answer.headers.get('Retry-After')]).toEqual([503, '7']);
  });

  test('is refused without TLS if real money is sent', async () => {
    server.script.push(answer(200, {}));
    const call = (needsTls: boolean) =>
      createCall(needsTls)({ url: server.url }, { 200: z.object({}) });
    await expect(call(true)).rejects.toThrow('is not https');
    expect(await call(false)).toEqual({ status: 200, body: {} });
  });

  test('is shown on the page with its activity, and without data of the recipient', async () => {
    const result = { outcome: 'submitted', bank_reference: 'B-1' } as const;
    server.script.push(answer(200, result));
    const steps = createStepLog({ now: () => new Date(), log: { warn: () => undefined } });
    const call = steps.watchCall(createCall());
    const payout_id = '7b1e2c90-6a41-4c65-9a0b-2f64d50cf0aa';
    const facts = { payout_id, amount: 1_000, currency: 'EUR' };
    const instruction = { activity: 'sendPayout', ...facts };
    const text = JSON.stringify({ ...instruction, recipient: { first_name: 'Ada' } });
    const url = `${server.url}/instructions/sendPayout`;
    const outcome = z.enum(['submitted', 'sent']);
    const { sendPayout } = steps.watchActivities({
      sendPayout: async () => {
        const fields = { outcome, bank_reference: z.string() };
        await call({ method: 'POST', url, text }, { 200: z.object(fields) });
        return result;
      },
    });
    await sendPayout?.({ ...facts, version: 1, method: 'sepa_instant', livemode: false });
    const sent = { ...instruction, recipient: { first_name: HIDDEN } };
    const exchange = { name: 'POST /instructions/sendPayout', sent, received: result };
    expect(steps.list()).toMatchObject([{ source: 'sendPayout', exchanges: [exchange] }]);
  });
});

test('a report that was not applied is shown as such on the page', async () => {
  const steps = createStepLog({ now: () => new Date(), log: { warn: () => undefined } });
  const reports = ['sent', 'completed'].map((name) => {
    const callback = { callback_id: name, occurred_at: '2026-11-26T10:00:00Z' };
    return { resource: 'payout', resource_id: 'p', name, callback } as Report;
  });
  await steps.watchDelivery(async (all) => all.slice(1))(reports);
  const [sent, completed] = reports.map(({ name, callback }) => ({ name, ...callback }));
  expect(steps.list()).toMatchObject([{ callbacks: [sent, { ...completed, applied: false }] }]);
  expect(steps.list()[0]?.callbacks[0]).not.toHaveProperty('applied');
});

test('calls beyond the limits of concurrency and rate wait', async () => {
  // One is left for operators.
  const limit = createLimiter({ perSecond: 50, atOnce: 3 });
  let running = 0;
  let most = 0;
  const begun: number[] = [];
  const work = async () => {
    begun.push(performance.now());
    running += 1;
    most = Math.max(most, running);
    await new Promise((resolve) => setTimeout(resolve, 30));
    running -= 1;
  };
  const start = performance.now();
  await Promise.all([1, 2, 3, 4, 5].map(() => limit(work)));
  expect(most).toBe(2);
  // The fifth begins four fiftieths of a second after the first was allowed, which may begin late.
  expect(Math.max(...begun) - start).toBeGreaterThan(79);
});

test('the question of an operator takes the next turn', async () => {
  const limit = createLimiter({ perSecond: 1_000, atOnce: 1 });
  const begun: string[] = [];
  const call = (name: string, isUrgent = false) =>
    limit(async () => void begun.push(name), undefined, isUrgent);
  await Promise.all([call('first'), call('second'), call('question', true)]);
  expect(begun).toEqual(['first', 'question', 'second']);
});

test('calls that hang, and a slow rate, leave a call for the question of an operator', async () => {
  const limit = createLimiter({ perSecond: 5, atOnce: 4 });
  const begun: string[] = [];
  const call = (name: string, isUrgent = false) => {
    const work = async () => void begun.push(name);
    const hangs = () => work().then(() => new Promise<void>(() => undefined));
    return limit(isUrgent ? work : hangs, undefined, isUrgent);
  };
  for (const name of ['first', 'second', 'third', 'fourth']) void call(name);
  await call('question', true);
  expect(begun).toEqual(['first', 'question']);
});

test('a call that nobody waits for any more takes no turn', async () => {
  const limit = createLimiter({ perSecond: 10, atOnce: 1 });
  const began = performance.now();
  const over = () => {
    throw new Error('over');
  };
  const work = jest.fn(async () => undefined);
  const abandoned = Array.from({ length: 50 }, () => limit(work, over));
  await Promise.allSettled([limit(work), ...abandoned, limit(work)]);
  expect(work).toHaveBeenCalledTimes(2);
  expect(performance.now() - began).toBeLessThan(1_000);
});

test.each([
  [{}, 20],
  [{ perSecond: 10, atOnce: 50 }, 50],
  [{ perSecond: 1 }, 5],
  [{ perSecond: 0.1 }, 1],
  [{ perSecond: 1_000, atOnce: 1_000 }, 200],
])('a process with the limits %j takes %d activities at a time', (limits, slots) => {
  expect(countSlots(limits)).toBe(slots);
});

test.each([undefined, '', 'ab', ['ab'], 'zz'.repeat(32), '00'.repeat(32), '00'.repeat(33)])(
  'a webhook with the signature %j is refused',
  (signature) => {
    const assert = () => assertSigned({ body: 'text', secret: 'secret', signature });
    expect(assert).toThrow('The signature is not valid.');
  },
);

/** Loop whose round ends once it is released. */
function startHeldLoop(options: { graceMs?: number } = {}) {
  const { opened, release } = gate();
  const counts = { begun: 0, ended: 0 };
  const round = async () => {
    counts.begun += 1;
    await opened;
    counts.ended += 1;
    return true;
  };
  const log = { error: () => {} };
  const loop = startLoop({ pollMs: 60_000, failureText: 'failed', log, round, ...options });
  return { loop, counts, release };
}

test('a loop ends its round before it stops, or stops although it hangs, and begins no other', async () => {
  const patient = startHeldLoop();
  const stopped = patient.loop.stop();
  patient.release();
  await stopped;
  expect(patient.counts).toEqual({ begun: 1, ended: 1 });
  const { loop, counts, release } = startHeldLoop({ graceMs: 1 });
  await loop.stop();
  expect(counts).toEqual({ begun: 1, ended: 0 });
  release();
  await loop.stop();
  expect(counts.begun).toBe(1);
});

describe('the page of a connector', () => {
  const ID = '7b1e2c90-6a41-4c65-9a0b-2f64d50cf0aa';
  const knowledge = { known: new Set([ID, '1000', 'EUR', 'ada-1']), personal: ['lovelace', 'ada'] };

  test('shows values of the contract, and hides all others', () => {
    const shown = { reference: ID, amount: 1_000, currency: 'EUR', instant: true, text: null };
    const to = { name: 'Ada Lovelace', iban: 'DE89370400440532013000' };
    const body = { ...shown, to, born: 1815, notes: ['EUR', 'EUR of Ada Lovelace'] };
    expect(hide(body, knowledge)).toEqual({
      ...shown,
      to: { name: HIDDEN, iban: HIDDEN },
      born: HIDDEN,
      notes: ['EUR', HIDDEN],
    });
  });

  test('shows states, literals, UUIDs and times as the schema of an answer lists them', () => {
    const ofTexts = { born: z.iso.date(), name: z.string(), reason: z.string().nullable() };
    const schema = z.object({
      ...{ state: z.enum(['queued', 'sent']), kind: z.literal('transfer') },
      ...{ id: z.uuid(), at: z.iso.datetime(), ...ofTexts },
      lines: z.array(z.object({ state: z.enum(['queued']) })),
      either: z.union([z.object({ a: z.enum(['yes']) }), z.object({ b: z.string() })]),
    });
    const id = '00000000-6a41-4c65-9a0b-2f64d50cf0aa';
    const shown = { state: 'queued', kind: 'transfer', id, at: '2026-11-26T10:00:00Z' };
    const lines = [{ state: 'queued' }, { state: 'other' }];
    const texts = { born: '1815-12-10', name: 'Grace', reason: 'Grace' };
    const body = { ...shown, ...texts, lines, either: { a: 'yes', b: 'Grace' } };
    expect(hide(body, knowledge, schema)).toEqual({
      ...shown,
      ...{ born: HIDDEN, name: HIDDEN, reason: HIDDEN },
      lines: [{ state: 'queued' }, { state: HIDDEN }],
      either: { a: 'yes', b: HIDDEN },
    });
  });

  test('hides what a schema is about that JSON cannot describe, and known values with data of the recipient', () => {
    const schema = z.string().transform((text) => text.length);
    expect(hide('Grace', knowledge, schema)).toBe(HIDDEN);
    const leaky = { known: new Set(['REF-LOVELACE', 'ada', 'EUR']), personal: ['lovelace', 'ada'] };
    expect(hide(['REF-LOVELACE', 'ada', 'EUR'], leaky)).toEqual([HIDDEN, HIDDEN, 'EUR']);
  });

  test.each([
    [`https://b.example/v1/by-reference/${ID}?key=secret`, `/v1/by-reference/${ID}`],
    ['https://key:secret@b.example/accounts/DE89370400440532013000', `/accounts/${HIDDEN}`],
    ['https://b.example/names/lovelace', `/names/${HIDDEN}`],
    ['https://b.example/%E0%A4%A/x', `/${HIDDEN}/x`],
  ])('shows the path of the address %s alone, without values', (url, path) => {
    expect(hidePath(url, knowledge)).toBe(path);
  });

  test('shows no unknown text, wherever it is', () => {
    const secret = fc.string({ minLength: 3 }).map((text) => `§${text}`);
    const key = fc.oneof(fc.constantFrom('name', 'iban', 'lines'), secret);
    const { tree } = fc.letrec((tie) => ({
      tree: fc.oneof(
        { maxDepth: 5 },
        secret,
        fc.array(tie('tree'), { maxLength: 4 }),
        fc.dictionary(key, tie('tree'), { maxKeys: 4 }),
      ),
    }));
    fc.assert(
      fc.property(tree, (value) => {
        expect(JSON.stringify(hide(value, knowledge))).not.toContain('§');
      }),
    );
  });
});

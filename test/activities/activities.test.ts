import { randomBytes, randomUUID } from 'node:crypto';
import { MongoNetworkError, MongoServerError } from 'mongodb';
import { createPaymentActivities } from '../../activities/payments';
import { openWithRetry } from '../../activities/shared/opening';
import type { WebhookActivityDeps } from '../../activities/webhooks/record';
import type { SessionAnswer } from '../../connectors/contract/activities';
import { createLogger } from '../../src/base/log';
import { attemptOffsetMs } from '../../src/domain/events/delivery';
import { webhookWorkflowId } from '../../src/domain/events/event';
import type { PaymentAttention, PaymentStatus } from '../../src/domain/payment/payment';
import { listAttempts } from '../../src/store/deliveries';
import { secretOwner } from '../../src/store/endpoints';
import type { EventDocument } from '../../src/store/events';
import { verifySignature } from '../../src/webhooks/attempt';
import { createEndpointLimits } from '../../src/webhooks/endpoint-limits';
import type { WebhookPost } from '../../src/webhooks/post';
import type { PostResult } from '../../src/webhooks/post-result';
import { retryTransient } from '../support/database';
import { readPayloads } from '../support/histories';
import { mockActivityEnvironment } from '../support/quiet';
import { recordKey, useRecords } from '../support/records';
import {
  buildActivities,
  buildInput,
  recordEvent,
  SECRET,
  setEndpoint,
  toEndpointKey,
  useStores,
} from '../workflows/webhook/setting';

/**
 * A workflow task that is lost takes the reports of all its writes with it, so each write may be
 * requested again after later ones were made.
 */
const records = useRecords();

const SESSION: SessionAnswer = {
  outcome: 'opened',
  bank_reference: 'b',
  session_url: 'https://b.example',
};

/** A payment whose key is reserved, and the activities that a workflow calls about it. */
async function reservePayment() {
  const payment_id = randomUUID();
  const owner = { account_id: `acct_${payment_id}`, livemode: false, request_id: 'req-1' };
  const facts = {
    ...{ payment_id, ...owner, amount: 1_050, currency: 'EUR', method: 'ideal', country: 'NL' },
    ...{ connector: 'bank', settlement_due_seconds: 86_400 },
  };
  const routing = { ...facts, expires_in_seconds: 1_800 };
  const customer = { reference: null, ciphertext: null };
  const urls = { success_url: 'https://s.example', error_url: 'https://e.example' };
  const stored = { reference: null, customer, metadata: '{}', ...urls };
  await recordKey(records.stores, 'createPayment', payment_id, owner, { stored, routing });
  const created_at = new Date().toISOString();
  const times = { created_at, expires_at: created_at };
  const open = (session: SessionAnswer | null = SESSION) => {
    const input = { ...facts, ...times, session, return_url: 'https://pay.example/return' };
    return retryTransient(() => records.payments.openPayment(input));
  };
  const buildTransition = (
    { status, version }: { status: PaymentStatus; version: number },
    to: PaymentStatus[],
    attention: PaymentAttention | null = null,
  ) => ({
    ...{ resource_id: payment_id, ...owner, to, change: {}, attention },
    from: { status, version, transition: version },
    at: new Date().toISOString(),
  });
  return {
    ...{ ...owner, payment_id, open, buildTransition },
    advance: (
      status: PaymentStatus,
      version: number,
      to: PaymentStatus[],
      attention?: PaymentAttention,
    ) => {
      const input = buildTransition({ status, version }, to, attention);
      return retryTransient(() => records.payments.recordPaymentMove(input));
    },
    setAttention: (attention: PaymentAttention, attention_at: number, version = 2) =>
      records.payments.recordPaymentAttention({
        ...{ resource_id: payment_id, request_id: 'req-1', version, transition: 2 },
        ...{ attention, attention_at, audit: null },
      }),
    read: () => records.stores.payments.get(payment_id),
    listEvents: async () => {
      const filter = { ...owner, resource_id: payment_id, limit: 10 };
      return (await records.stores.events.list(filter)).map(({ type }) => type).reverse();
    },
  };
}

/** A payment that waits for its customer, at version 2. */
async function openPayment() {
  const payment = await reservePayment();
  const opened = await payment.open();
  return { ...payment, opened };
}

describe('opening a payment again', () => {
  test('answers by the record, whatever has happened since and the bank answers this time', async () => {
    const slow = await reservePayment();
    const created = await slow.open(null);
    expect(created).toMatchObject({ status: 'created', version: 1 });
    expect(await slow.open()).toEqual(created);
    const { open, opened, advance, payment_id } = await openPayment();
    expect(await open(null)).toEqual(opened);
    expect(await open({ outcome: 'declined', code: 'no', message: 'No.' })).toEqual(opened);
    await advance('awaiting_customer', 2, ['authorized']);
    expect(await open()).toEqual(opened);
    // Without its idempotency record, the payment answers as it is now.
    await records.db.collection('idempotency_records').deleteOne({ resource_id: payment_id });
    const counts = { version: 3, transition: 3 };
    const state = { status: 'authorized', ...counts, verification: 'checked' };
    expect(await open(null)).toEqual(state);
  });

  const duplicate = 'E11000 duplicate key error index: position';
  test.each([
    ['twice when another process chose the same key', 11_000, duplicate, 3, 'open'],
    ['no more than twice, since there is no pause between', 11_000, duplicate, 3, duplicate],
    ['never after another error', 1, 'the database is away', 1, 'the database is away'],
  ])('retries %s', async (_rule, code, message, tries, outcome) => {
    let calls = 0;
    const opened = openWithRetry(async () => {
      calls += 1;
      if (outcome === 'open' && calls === tries) return 'open';
      throw new MongoServerError({ code, message });
    });
    expect(await opened.catch((error: Error) => error.message)).toBe(outcome);
    expect(calls).toBe(tries);
  });
});

test('the time of a sandbox payment, which its merchant advances, is not compared with the clock of a worker', async () => {
  const observe = jest.fn();
  const measured = createPaymentActivities({
    ...{ ...records, log: createLogger('test', 'silent'), webhookQueue: 'unused' },
    ...{ payTokenKey: randomBytes(32), clock: { observe } },
  });
  const payment = await reservePayment();
  const transition = payment.buildTransition({ status: 'awaiting_customer', version: 2 }, []);
  for (const livemode of [false, true]) {
    await measured.recordPaymentMove({ ...transition, livemode });
  }
  expect(observe.mock.calls).toEqual([[Date.parse(transition.at)]]);
});

describe('a transition', () => {
  type Step = [from: PaymentStatus, version: number, to: PaymentStatus[]];
  const AUTHORIZE: Step = ['awaiting_customer', 2, ['authorized']];
  const SETTLE: Step = ['authorized', 3, ['settled']];
  const STATUSES = ['awaiting_customer', 'authorized', 'settled'];
  const AUTHORIZED = { status: 'authorized', version: 3, transition: 3 };
  const moved = [expect.objectContaining({ direction: 'in', amount: 1_050, reason: null })];
  const SETTLED = { status: 'settled', version: 4, transition: 4, moved };

  test.each<[string, Step[], Step, object | string, number]>([
    ['that was made answers the same again', [AUTHORIZE, SETTLE], SETTLE, SETTLED, 4],
    ['before later ones answers the same again', [AUTHORIZE, SETTLE], AUTHORIZE, AUTHORIZED, 4],
    [
      'of several steps completes a record that has made the first',
      [AUTHORIZE],
      ['awaiting_customer', 2, ['authorized', 'settled']],
      SETTLED,
      4,
    ],
    [
      'answers with the stale state of a record on another path',
      [AUTHORIZE],
      ['awaiting_customer', 2, ['cancelled']],
      { ...AUTHORIZED, stale: { attention: null } },
      3,
    ],
    ['that begins later is refused', [], SETTLE, 'is not at version 3', 2],
    [
      'that is in no table is refused',
      [],
      ['awaiting_customer', 2, ['settled']],
      'There is no transition from awaiting_customer to settled.',
      2,
    ],
  ])('%s', async (_title, before, step, result, version) => {
    const { advance, listEvents, read } = await openPayment();
    for (const each of before) await advance(...each);
    const advanced = advance(...step);
    if (typeof result === 'string') await expect(advanced).rejects.toThrow(result);
    else expect(await advanced).toEqual(result);
    const statuses = STATUSES.slice(0, version - 1);
    expect(await listEvents()).toEqual(statuses.map((status) => `payment.${status}`));
    expect(await read()).toMatchObject({ status: statuses.at(-1), version });
  });

  test('that many request at once is made once', async () => {
    const { open, advance, listEvents } = await reservePayment();
    const callers = [1, 2, 3, 4, 5];
    await Promise.all(callers.map(() => open()));
    const results = await Promise.all(
      callers.map(() => advance('awaiting_customer', 2, ['authorized', 'settled'])),
    );
    expect(results.map(({ version }) => version)).toEqual(callers.map(() => 4));
    expect(await listEvents()).toHaveLength(3);
  });

  test('loses no delivery when the worker is killed between its event and the deliveries', async () => {
    const payment = await openPayment();
    const { payment_id: resource_id, account_id, livemode } = payment;
    const { mongo, stores, temporal } = records;
    const endpoint_id = `we_${resource_id}`;
    const at = '2026-03-01T12:00:00.000Z';
    await stores.endpoints.insert({
      ...{ account_id, livemode, endpoint_id, slot: 0, position: at, secrets: [] },
      ...{ url: 'https://shop.example/', description: null, created_at: at, updated_at: at },
    });
    const killed = () => Promise.reject(new Error('killed'));
    const dying = createPaymentActivities({
      ...{ mongo, stores, log: createLogger('test', 'silent'), webhookQueue: 'unused' },
      temporal: Object.assign(Object.create(temporal), { workflow: { start: killed } }),
      payTokenKey: randomBytes(32),
    });
    const from = { status: 'awaiting_customer', version: 2 } as const;
    const transition = payment.buildTransition(from, ['authorized']);
    const recording = retryTransient(() => dying.recordPaymentMove(transition));
    await expect(recording).rejects.toThrow('killed');
    const [event] = await stores.events.list({ account_id, livemode, resource_id, limit: 1 });
    const id = event?._id ?? '';
    const pending = await stores.deliveries.pending(resource_id, account_id, livemode);
    expect(pending).toMatchObject([{ event_id: id, endpoint_id }]);
    await retryTransient(() => records.payments.recordPaymentMove(transition));
    const handle = temporal.workflow.getHandle(webhookWorkflowId(id));
    expect((await handle.describe()).status.name).toBe('RUNNING');
    const { input } = await readPayloads(temporal, webhookWorkflowId(id));
    expect(input.endpoints).toEqual([{ endpoint_id, run: 0 }]);
    await handle.terminate('end of test');
  });
});

describe('an attention reason', () => {
  const STALE = { status: 'authorized', version: 3, transition: 3, stale: { attention: null } };

  test('counts in the version, and is not replaced by an older one', async () => {
    const { setAttention, read, payment_id } = await openPayment();
    expect(await setAttention('late_money_pending', 10)).toEqual({ version: 3 });
    expect(await setAttention('late_settlement_reversed', 20, 3)).toEqual({ version: 4 });
    // An abandoned attempt arrives late.
    expect(await setAttention('late_money_pending', 10, 4)).toEqual({ version: 4 });
    expect(await read()).toMatchObject({ attention: 'late_settlement_reversed', version: 4 });
    const load = { resource_id: payment_id, request_id: 'req-2' };
    expect(await records.payments.loadPayment(load)).toMatchObject({
      attention_at: 20,
      version: 4,
    });
  });

  test('whose answer was lost has its version, unless more has been written since', async () => {
    const { advance, setAttention, read } = await openPayment();
    await setAttention('malformed_callback', 10);
    expect(await setAttention('malformed_callback', 11)).toEqual({ version: 3 });
    await setAttention('message_given_up', 20, 3);
    await setAttention('malformed_callback', 30, 4);
    expect(await setAttention('malformed_callback', 31)).toEqual({ version: 2 });
    expect(await advance('awaiting_customer', 2, ['authorized'])).toMatchObject({
      ...{ status: 'awaiting_customer', version: 5, stale: { attention: 'malformed_callback' } },
    });
    expect((await read())?.version).toBe(5);
  });

  test('of an earlier version is not written, and answered with the stored state', async () => {
    const { advance, setAttention, read } = await openPayment();
    await advance('awaiting_customer', 2, ['authorized']);
    expect(await setAttention('amount_differs', 10)).toEqual(STALE);
    expect((await read())?.attention).toBeNull();
    await expect(setAttention('amount_differs', 10, 4)).rejects.toThrow('is not at version 4');
    expect((await read())?.attention).toBe('record_behind');
  });

  test('is cleared once by an act of an operator, which answers with a later state', async () => {
    const { advance, setAttention, read, payment_id } = await openPayment();
    const act = (id: string, version: number) =>
      records.payments.recordPaymentAttention({
        ...{ resource_id: payment_id, request_id: 'req-1', version, transition: 2 },
        ...{ attention: null, attention_at: 50 },
        audit: { id, who: 'ada', what: 'snooze', why: 'a call', at: new Date().toISOString() },
      });
    await setAttention('malformed_callback', 40);
    expect(await act('one', 3)).toEqual({ version: 4 });
    expect(await act('one', 3)).toEqual({ version: 4 });
    expect(await setAttention('settlement_overdue', 35, 4)).toEqual({ version: 4 });
    expect(await read()).toMatchObject({ attention: null, version: 4 });
    await expect(act('two', 5)).rejects.toThrow('is not at version 5');
    await advance('awaiting_customer', 4, ['authorized']);
    expect(await act('three', 4)).toMatchObject({ status: 'authorized', version: 5, stale: {} });
    expect((await read())?.audit).toHaveLength(1);
  });
});

/** Time of the first attempt; MongoDB is real, nothing is posted. */
const FIRST_AT = Date.parse('2026-03-01T12:00:00.000Z');
const URL_1 = 'https://one.example.com/hook';
const URL_2 = 'https://two.example.com/hook';

const stores = useStores();

const buildAnswer = (status: number, more: object = {}): PostResult => ({
  outcome: 'response',
  ...{ status, excerpt: '', durationMs: 1, ...more },
});
const FAILED = { result: buildAnswer(500) };

interface AttemptOptions extends Partial<WebhookActivityDeps> {
  /** The server's count of tries. */
  attempt?: number;
  run?: number;
  atMs?: number;
  result?: PostResult;
  /** Left by an earlier try. */
  heartbeatDetails?: unknown;
  /** Whether the server was made to try now, and counts from 1 again. */
  isReset?: boolean;
}

async function attemptAt(
  event: EventDocument,
  {
    attempt = 1,
    run = 0,
    atMs = FIRST_AT + attemptOffsetMs(Math.min(attempt, 12)) + 60_000,
    result = buildAnswer(200),
    heartbeatDetails,
    isReset = false,
    ...changes
  }: AttemptOptions = {},
) {
  const posts: WebhookPost[] = [];
  const heartbeats: unknown[] = [];
  const { deliverWebhook } = buildActivities(stores, {
    now: () => atMs,
    post: async (sent) => {
      posts.push(sent);
      return result;
    },
    ...changes,
  });
  const currentAttemptScheduledTimestampMs = isReset ? atMs : FIRST_AT;
  const times = { scheduledTimestampMs: FIRST_AT, currentAttemptScheduledTimestampMs };
  const environment = mockActivityEnvironment({ attempt, ...times, heartbeatDetails });
  environment.on('heartbeat', (details: unknown) => heartbeats.push(details));
  const outcome: unknown = await environment
    .run(deliverWebhook, buildInput(event, run))
    .catch((error: unknown) => error);
  return { outcome, posts, heartbeats };
}

const readDelivery = async ({ _id }: EventDocument) =>
  (await stores.deliveries.forEvents([_id]))[0];
const readRows = async ({ _id }: EventDocument) =>
  listAttempts(await stores.deliveries.readLogs([_id]));

describe('an attempt', () => {
  test('reads the endpoint again unless it is the first of the event', async () => {
    const event = await recordEvent(stores, URL_1);
    const before = await stores.endpoints.list(event.account_id, event.livemode);
    const endpoints = { list: stores.endpoints.list, listCached: async () => before };
    await setEndpoint(stores, event, URL_2);
    const urls = [];
    for (const [run, attempt, status] of [
      [0, 1, 500],
      [0, 2, 500],
      [1, 1, 500],
      [1, 2, 200],
    ] as const) {
      const result = buildAnswer(status);
      const { posts } = await attemptAt(event, { run, attempt, result, endpoints });
      urls.push(posts[0]?.url);
    }
    expect(urls).toEqual([URL_1, URL_2, URL_2, URL_2]);
    // A redelivery has attempts of its own, though the event counts them all.
    const rows = (await readRows(event)).map(({ run, attempt }) => `${run}.${attempt}`);
    expect(rows).toEqual(['1.2', '1.1', '0.2', '0.1']);
    expect(await readDelivery(event)).toMatchObject({ status: 'delivered', attempts: 4 });
  });

  /** @returns the attempt of the event's delivery, and a roll of its endpoint's secret */
  async function openSigned() {
    const event = await recordEvent(stores, URL_1);
    const { account_id, livemode } = event;
    const owner = secretOwner(toEndpointKey(event));
    const secrets = [SECRET];
    const roll = async (secret: string, atMs: number, afterMs: number) => {
      const ciphertext = await stores.encrypter.encrypt(secret, owner);
      await stores.endpoints.roll({
        ...{ account_id, livemode, ciphertext, now: new Date(atMs), afterMs },
      });
      secrets.push(secret);
    };
    const findSecrets = async (attempt: number, atMs: number) => {
      const nextDelayMs = () => 500;
      const { posts } = await attemptAt(event, { ...FAILED, attempt, atMs, nextDelayMs });
      return secrets.filter((secret) =>
        posts.some(({ headers, body }) => {
          const header = headers['Service-Signature'];
          return verifySignature({ header, body, secret, now: atMs / 1_000 });
        }),
      );
    };
    return { roll, findSecrets };
  }

  test('is signed with a rolled secret from its time on, and with the old one until then', async () => {
    const { roll, findSecrets } = await openSigned();
    const afterMs = 3_600_000;
    await roll('whsec_new', FIRST_AT, afterMs);
    expect(await findSecrets(1, FIRST_AT + afterMs - 1_000)).toEqual([SECRET]);
    expect(await findSecrets(2, FIRST_AT + afterMs)).toEqual(['whsec_new']);
  });

  test('is signed with the only secret by a process whose clock is behind that of the API', async () => {
    const { roll, findSecrets } = await openSigned();
    await roll('whsec_now', FIRST_AT + 500, 0);
    expect(await findSecrets(1, FIRST_AT)).toEqual(['whsec_now']);
    // Nor does a roll by such a process drop it.
    await roll('whsec_later', FIRST_AT, 3_600_000);
    expect(await findSecrets(2, FIRST_AT + 1_000)).toEqual(['whsec_now']);
  });

  test('ends the delivery when the endpoint has been removed', async () => {
    const event = await recordEvent(stores, URL_1);
    await attemptAt(event, FAILED);
    const [endpoint] = await stores.endpoints.list(event.account_id, event.livemode);
    if (endpoint !== undefined) await stores.endpoints.remove(endpoint);
    const { outcome, posts } = await attemptAt(event, { attempt: 2 });
    expect({ outcome, posts }).toEqual({ outcome: 'no_endpoint', posts: [] });
    expect(await readDelivery(event)).toMatchObject({
      ...{ status: 'no_endpoint', attempts: 1, next_attempt_at: null },
    });
  });

  test.each([
    { livemode: false, allowPrivate: true, isPrivate: true },
    { livemode: false, allowPrivate: false, isPrivate: false },
    { livemode: true, allowPrivate: true, isPrivate: false },
  ])('reaches this machine only in a sandbox that allows it: %j', async (params) => {
    const event = await recordEvent(stores, URL_1, params.livemode);
    const { posts } = await attemptAt(event, { allowPrivate: params.allowPrivate });
    expect(posts.map(({ allowPrivate }) => allowPrivate)).toEqual([params.isPrivate]);
  });

  test('of a sandbox event never reaches the live endpoint', async () => {
    const event = await recordEvent(stores, URL_1, true);
    const sandbox = { ...event, _id: `${event._id}s`, livemode: false, position: `${event._id}s` };
    await stores.db.collection<EventDocument>('events').insertOne(sandbox);
    expect(await attemptAt(sandbox)).toMatchObject({ outcome: 'no_endpoint', posts: [] });
  });

  test('that an operator has made Temporal begin early counts after the attempts before it', async () => {
    const event = await recordEvent(stores, URL_1);
    await attemptAt(event, FAILED);
    const atMs = FIRST_AT + attemptOffsetMs(2) + 60_000;
    const { outcome } = await attemptAt(event, { ...FAILED, isReset: true, atMs });
    expect(outcome).toMatchObject({ message: expect.stringContaining('(attempt 2 of 12)') });
    expect((await readDelivery(event))?.attempts).toBe(2);
  });

  test('is not repeated when its success was stored but not reported', async () => {
    const event = await recordEvent(stores, URL_1);
    await attemptAt(event);
    const again = await attemptAt(event, { attempt: 2 });
    expect(again).toMatchObject({ outcome: 'delivered', posts: [] });
    expect((await readDelivery(event))?.status).toBe('delivered');
  });

  test('that succeeds prevails over a failed try of the same number', async () => {
    const event = await recordEvent(stores, URL_1);
    const post = async (): Promise<PostResult> => {
      // A try that was given up ends late, while this one is in progress.
      await attemptAt(event, FAILED);
      return buildAnswer(200);
    };
    expect(await attemptAt(event, { post })).toMatchObject({ outcome: 'delivered' });
    expect(await readDelivery(event)).toMatchObject({ status: 'delivered', attempts: 1 });
  });

  test('over the limit of its endpoint is made later, and is not used up', async () => {
    const event = await recordEvent(stores, URL_1);
    const limits = createEndpointLimits({ slots: 1, random: () => 0.5, now: () => 0 });
    const others: Promise<unknown>[] = [];
    const post = (): Promise<PostResult> => {
      others.push(attemptAt(event, { limits, heartbeatDetails: { carried: true } }));
      return Promise.all(others).then(() => buildAnswer(200));
    };
    const first = await attemptAt(event, { limits, post });
    expect(first.outcome).toBe('delivered');
    expect(await others[0]).toEqual({
      outcome: expect.objectContaining({
        ...{ type: 'EndpointBusy', nonRetryable: false, category: 'BENIGN' },
        nextRetryDelay: 1_000,
      }),
      posts: [],
      heartbeats: [{ carried: true }],
    });
    expect(await readRows(event)).toMatchObject([{ attempt: 1 }]);
  });

  test('that resumes as the first is looked up, and not made again if it was stored', async () => {
    const event = await recordEvent(stores, URL_1);
    const limits = createEndpointLimits({ slots: 1, promptSlots: 1 });
    await attemptAt(event, { limits });
    let posts = 0;
    const post = async (): Promise<PostResult> => {
      posts += 1;
      return buildAnswer(200);
    };
    const { firstAttempt } = buildActivities(stores, { limits, post });
    const attempt = (resume: { resume?: true }) =>
      mockActivityEnvironment().run(firstAttempt, { ...buildInput(event), ...resume });
    expect(await attempt({ resume: true })).toBe('delivered');
    expect(posts).toBe(0);
    expect(await attempt({})).toBe('delivered');
    expect(posts).toBe(1);
    expect((await readDelivery(event))?.attempts).toBe(1);
  });

  test('logs the request, the event, the endpoint and the attempt, and nothing else', async () => {
    const event = await recordEvent(stores, URL_1);
    const lines: unknown[] = [];
    const write = (fields: object) => lines.push(fields);
    const log = { info: write, warn: write };
    await attemptAt(event, { ...FAILED, log });
    await attemptAt(event, { attempt: 2, log });
    const { endpoint_id } = toEndpointKey(event);
    const fields = { request_id: 'req_1', event_id: event._id, endpoint_id };
    expect(lines).toEqual([1, 2].map((attempt) => ({ ...fields, attempt })));
  });
});

describe('a failed attempt', () => {
  test('names the host, the fault and the time of the next one, and nothing that was sent', async () => {
    const event = await recordEvent(stores, URL_1);
    const timeout = { outcome: 'error', kind: 'timeout', message: 'No answer.' } as const;
    const result = { ...timeout, durationMs: 9 };
    const { outcome } = await attemptAt(event, { atMs: FIRST_AT, result, random: () => 0 });
    expect(outcome).toMatchObject({
      ...{ type: 'WebhookAttemptFailed', nonRetryable: false, category: 'BENIGN' },
      message: 'one.example.com: No answer. (attempt 1 of 12)',
      nextRetryDelay: 42_000,
    });
    expect(await readRows(event)).toMatchObject([
      {
        ...{ status_code: null, error: 'No answer.', outcome: 'failed' },
        next_attempt_at: '2026-03-01T12:00:42.000Z',
      },
    ]);
  });

  test('is followed by one as late as Retry-After asks for', async () => {
    const result = buildAnswer(503, { retryAfterSeconds: 600 });
    const { outcome } = await attemptAt(await recordEvent(stores, URL_1), {
      atMs: FIRST_AT,
      result,
    });
    expect(outcome).toMatchObject({ nextRetryDelay: 600_000 });
  });
});

describe('an outage of the database', () => {
  const fail = () => Promise.reject(new MongoNetworkError('connection refused'));
  const unreachable = { type: 'RecordUnreachable', nonRetryable: false, nextRetryDelay: 15_000 };
  const withoutRows = () => ({
    deliveries: { ...stores.deliveries, addAttempt: fail },
    patienceMs: 0,
  });

  test('before the POST uses up no attempt, and the next try comes soon', async () => {
    const event = await recordEvent(stores, URL_1);
    const away = { endpoints: { ...stores.endpoints, listCached: fail }, patienceMs: 0 };
    expect(await attemptAt(event, away)).toMatchObject({ outcome: unreachable, posts: [] });
    expect(await readRows(event)).toEqual([]);
    const next = await attemptAt(event, { attempt: 300 });
    expect(next).toMatchObject({ outcome: 'delivered', posts: [{ url: URL_1 }] });
    expect(await readRows(event)).toMatchObject([{ attempt: 1 }]);
  });

  test('after a failed POST leaves it to the next try, which stores it and keeps its wait', async () => {
    const event = await recordEvent(stores, URL_1);
    const first = await attemptAt(event, { ...withoutRows(), ...FAILED, atMs: FIRST_AT });
    expect(first).toMatchObject({ outcome: unreachable, posts: [{ url: URL_1 }] });
    const [heartbeatDetails] = first.heartbeats;
    expect(heartbeatDetails).toMatchObject({ url: new URL(URL_1).origin, response_excerpt: '' });
    const soon = { attempt: 2, atMs: FIRST_AT + 15_000, heartbeatDetails };
    const second = await attemptAt(event, soon);
    expect(second.posts).toEqual([]);
    expect(second.outcome).toMatchObject({ type: 'WebhookAttemptFailed' });
    const due = { attempt: 3, atMs: FIRST_AT + 45_000, heartbeatDetails };
    expect(await attemptAt(event, due)).toMatchObject({ outcome: 'delivered' });
    const rows = await readRows(event);
    expect(rows.map(({ attempt, outcome }) => [attempt, outcome])).toEqual([
      [2, 'delivered'],
      [1, 'failed'],
    ]);
  });

  test('after a successful POST does not repeat it', async () => {
    const event = await recordEvent(stores, URL_1);
    const { heartbeats } = await attemptAt(event, withoutRows());
    const again = await attemptAt(event, { attempt: 2, heartbeatDetails: heartbeats[0] });
    expect(again).toMatchObject({ outcome: 'delivered', posts: [] });
    expect(await readDelivery(event)).toMatchObject({ attempts: 1 });
  });
});

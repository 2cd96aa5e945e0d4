import { z } from 'zod';
import { isAlive } from '../../src/base/process-table';
import { DELIVERY_STATUSES } from '../../src/domain/webhook/event';
import { eventually } from '../support/http';
import { type Books, findEventFaults, openBooks } from './books';
import { type Acknowledged, startLoad } from './load';
import { KILLS, wreak } from './nemesis';
import { createPatientClient, type PatientClient } from './patient-client';
import { reconcile } from './reconcile';
import { type RunningStack, serversOn, startStack } from './running-stack';
import { summarize } from './summary';
import { startWebhookReceiver, type WebhookReceiver } from './webhook-receiver';

const PAYMENTS = 200;
const CONCURRENCY = 20;
/** Longest wait for a delivery: an attempt that was cut off is followed after 42 s, 84 s or 168 s. */
const DELIVERY_MS_MAX = 200_000;
const VISIBILITY_MS_MAX = 90_000;

/** The fields that a payment's moves change. */
const MOVING = [
  ...['status', 'failure', 'amount_settled', 'updated_at'],
  ...['authorized_at', 'settled_at', 'cancelled_at'],
];

const NewAccount = z.object({ account_id: z.string() });
const NewKey = z.object({ key: z.string() });
const NewEndpoint = z.object({ signing_secret: z.string() });
const EventPage = z.object({
  data: z.array(
    z.object({ id: z.string(), delivery: z.object({ status: z.enum(DELIVERY_STATUSES) }) }),
  ),
  next_cursor: z.string().nullable(),
});
const PaymentPage = z.object({
  data: z.array(z.object({ id: z.string() })),
  next_cursor: z.string().nullable(),
});

const over = new AbortController();
let stack: RunningStack;
let receiver: WebhookReceiver;
let books: Books | undefined;
let account: string;
let client: PatientClient;

beforeAll(async () => {
  [receiver, stack] = await Promise.all([startWebhookReceiver(), startStack()]);
  const created = NewAccount.parse(await stack.cli('account', 'create', '--name', 'Chaos'));
  account = created.account_id;
  const { key } = NewKey.parse(await stack.cli('key', 'create', account, '--env', 'sandbox'));
  const place = [account, '--env', 'sandbox', '--url', receiver.url];
  const endpoint = NewEndpoint.parse(await stack.cli('webhook', 'set', ...place));
  receiver.setSecret(endpoint.signing_secret);
  client = createPatientClient(stack.url, key, over.signal);
});

afterAll(async () => {
  over.abort();
  await books?.close();
  await stack?.destroy();
  await receiver?.close();
});

test('keeps each acknowledged payment, transition and event exactly once while parts are killed', async () => {
  const began = performance.now();
  const load = startLoad(client, PAYMENTS, CONCURRENCY);
  const batch = Math.ceil(PAYMENTS / (KILLS.length + 1));
  const [kills, made] = await Promise.all([wreak(stack, load, batch), load.done]);
  const drivenMs = performance.now() - began;
  expect(kills.map(({ part }) => part)).toEqual(KILLS);
  expect(kills.filter(({ inFlight }) => inFlight === 0)).toEqual([]);
  expect(made).toHaveLength(PAYMENTS);

  await everyAcknowledgementHolds(made);
  books = await openBooks(stack);
  const events = await expectOneEventPerTransition(books, made);
  const waited = performance.now();
  await everyEventIsDelivered(books, events);
  const deliveredMs = performance.now() - waited;
  console.info(summarize({ made, events, kills, drivenMs, deliveredMs, receiver, client }));
  await expectNothingInFlight(books);
  await reconcile(stack);
}, 600_000);

test('ends every process and frees every port on SIGTERM after kills', async () => {
  await books?.close();
  books = undefined;
  const pids = stack.pids();
  expect(pids).toHaveLength(6);
  expect(pids.filter((pid) => !isAlive(pid))).toEqual([]);
  expect(serversOn(stack.dataDir)).toHaveLength(2);
  expect(await stack.stop()).toBe(0);
  expect(pids.filter(isAlive)).toEqual([]);
  expect(serversOn(stack.dataDir)).toEqual([]);
  expect(await stack.takenPorts()).toEqual([]);
  expect(stack.state()).toBeUndefined();
});

/** Checks that a key gives its answer again, that each payment is as driven, and that there is no other. */
async function everyAcknowledgementHolds(made: readonly Acknowledged[]): Promise<void> {
  for (const { id, idempotencyKey, request, body, goal } of made) {
    const path = '/v1/payments';
    const again = await client.insist({ method: 'POST', path, body: request, idempotencyKey });
    expect([again.status, again.text]).toEqual([201, body]);
    expect(again.headers.get('Idempotent-Replayed')).toBe('true');
    const read = await client.insist({ method: 'GET', path: `${path}/${id}` });
    const acknowledged = z.looseObject({}).parse(JSON.parse(body));
    const lasting = Object.entries(acknowledged).filter(([name]) => !MOVING.includes(name));
    expect(JSON.parse(read.text)).toMatchObject({ ...Object.fromEntries(lasting), status: goal });
  }
  const listed: string[] = [];
  let before = '';
  for (let more = true; more; ) {
    const path = `/v1/payments?limit=100${before}`;
    const { data, next_cursor } = PaymentPage.parse(
      JSON.parse((await client.insist({ method: 'GET', path })).text),
    );
    listed.push(...data.map(({ id }) => id));
    before = `&created_before=${encodeURIComponent(next_cursor ?? '')}`;
    more = next_cursor !== null;
  }
  expect(listed.sort()).toEqual(made.map(({ id }) => id).sort());
}

/** In MongoDB: one payment per key, its events exactly its transitions. Returns all event ids. */
async function expectOneEventPerTransition(
  { payments, events, parked }: Books,
  made: readonly Acknowledged[],
): Promise<string[]> {
  const stored = await payments();
  expect(stored.map(({ _id }) => _id).sort()).toEqual(made.map(({ id }) => id).sort());
  expect(new Set(stored.map(({ reference }) => reference)).size).toBe(PAYMENTS);
  const told = await events();
  expect(stored.flatMap((payment) => findEventFaults(payment, told))).toEqual([]);
  expect(told).toHaveLength(stored.reduce((count, { version }) => count + version - 1, 0));
  expect(await parked()).toBe(0);
  return told.map(({ _id }) => _id).sort();
}

/** By the service's own account and by the receiver's, signature and bytes included. */
async function everyEventIsDelivered(
  { undelivered }: Books,
  events: readonly string[],
): Promise<void> {
  await untilNone('an event that is not delivered', undelivered, DELIVERY_MS_MAX);
  const listed: z.infer<typeof EventPage>['data'] = [];
  let before: string[] = [];
  for (let more = true; more; ) {
    const range = ['--env', 'sandbox', '--limit', '100', ...before];
    const page = EventPage.parse(await stack.cli('event', 'list', account, ...range));
    listed.push(...page.data);
    before = ['--before', page.next_cursor ?? ''];
    more = page.next_cursor !== null;
  }
  expect(listed.map(({ id }) => id).sort()).toEqual(events);
  expect(listed.filter(({ delivery }) => delivery.status !== 'delivered')).toEqual([]);
  expect(receiver.faults).toEqual([]);
  expect([...receiver.received.keys()].sort()).toEqual(events);
}

/**
 * Every payment has reached its end, so none waits for anything, and nothing has broken. A delivery
 * whose report was cut off ends only when its next attempt finds the event delivered.
 */
async function expectNothingInFlight({ workflows }: Books): Promise<void> {
  const payments = 'WorkflowType="payment"';
  await untilNone(
    'a payment workflow that still runs',
    () => workflows(`${payments} AND ExecutionStatus="Running"`),
    VISIBILITY_MS_MAX,
  );
  const broken = ['Failed', 'TimedOut', 'Terminated', 'Canceled'].map((name) => `"${name}"`);
  expect(await workflows(`ExecutionStatus IN (${broken.join(', ')})`)).toEqual([]);
  const ended = await workflows(`${payments} AND ExecutionStatus="Completed"`);
  expect(new Set(ended).size).toBe(PAYMENTS);
}

/** Fails with what is left when it has not gone in time. */
async function untilNone(
  what: string,
  look: () => Promise<string[]>,
  timeoutMs: number,
): Promise<void> {
  let left: string[] = [];
  const none = async (): Promise<boolean> => {
    left = await look();
    return left.length === 0;
  };
  await eventually(`no sign of ${what}`, none, timeoutMs).catch((error) => {
    if (left.length === 0) throw error;
  });
  expect({ what, left }).toEqual({ what, left: [] });
}

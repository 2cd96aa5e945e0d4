import { Client, Connection } from '@temporalio/client';
import { eventId } from '../../src/base/ids';
import { connectMongo } from '../../src/base/mongo';
import { isAlive } from '../../src/base/process-table';
import type { WebhookEvent } from '../../src/domain/events/event';
import {
  PAYMENT_EVENTS,
  PAYMENT_TRANSITIONS,
  type PaymentStatus,
} from '../../src/domain/payment/payment';
import type { CallbackDocument } from '../../src/store/callbacks';
import type { DeliveryRow } from '../../src/store/deliveries';
import type { EventDocument } from '../../src/store/events';
import type { PaymentDocument } from '../../src/store/payments';
import type { PartName } from '../../stack/data-dir';
import { eventually } from '../support/eventually';

import { useFixture } from '../support/fixture';
import { noteForFailure } from '../support/quiet';
import { type Acknowledged, type Load, STEPS_PER_PAYMENT, startLoad } from './load';
import { listAll, useMerchant } from './race';
import { reconcile } from './reconcile';
import { RECOVERY_MS_MAX, type RunningStack, serversOn } from './running-stack';
import { startWebhookReceiver } from './webhook-receiver';

const PAYMENTS = 200;
const CONCURRENCY = 20;
/** Longest wait for a delivery: an attempt that was cut off is followed after 42 s, 84 s or 168 s. */
const DELIVERY_MS_MAX = 200_000;
const VISIBILITY_MS_MAX = 90_000;

/** Fields that a payment's transitions change. */
const CHANGING = [
  ...['status', 'failure', 'amount_settled', 'updated_at'],
  ...['authorized_at', 'settled_at', 'cancelled_at'],
];

const receiver = useFixture(startWebhookReceiver, (started) => started.close());
const merchant = useMerchant('Chaos');
let books: Books | undefined;
afterAll(() => books?.close());

test('each acknowledged payment, transition and event is stored exactly once while parts are killed', async () => {
  const { stack, client, account } = merchant;
  await receiver.register(stack, account);
  const load = startLoad(client, PAYMENTS, CONCURRENCY);
  const batch = Math.ceil(PAYMENTS / (KILLS.length + 1));
  const [inFlight, made] = await Promise.all([wreak(stack, load, batch), load.done]);
  expect(inFlight).toHaveLength(KILLS.length);
  expect(inFlight).not.toContain(0);
  expect(made).toHaveLength(PAYMENTS);

  books = await openBooks(stack);
  const events = await expectOneEventPerTransition(books, made);
  // Repeated creates change nothing, and deliveries that were cut off come in the meantime.
  await Promise.all([everyAcknowledgementHolds(made), everyEventIsDelivered(books, events)]);
  await expectOneEventPerTransition(books, made);
  const { sent, retries } = client.counts;
  noteForFailure(
    `${PAYMENTS} payments, ${KILLS.length} kills, ${sent} requests, ${retries} retries.`,
  );
  await expectNothingInFlight(books);
  await reconcile(stack);
}, 900_000);

test('the launcher ends every process and frees every port on SIGTERM after kills', async () => {
  await books?.close();
  books = undefined;
  const { stack } = merchant;
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
  const { client } = merchant;
  for (const { idempotencyKey, request, answer, goal } of made) {
    const again = await client.post('/v1/payments', request, idempotencyKey);
    expect([again.status, again.text]).toEqual([201, answer.text]);
    expect(again.headers.get('Idempotent-Replayed')).toBe('true');
    const lasting = Object.entries(answer.body).filter(([name]) => !CHANGING.includes(name));
    const { body } = await client.get(`/v1/payments/${answer.body.id}`);
    expect(body).toMatchObject({ ...Object.fromEntries(lasting), status: goal });
  }
  const listed = await listAll(client, '/v1/payments');
  expect(listed.map(({ id }) => id).sort()).toEqual(listIds(made));
}

const listIds = (made: readonly Acknowledged[]) => made.map(({ answer }) => answer.body.id).sort();

/** In MongoDB: one payment per key, its events exactly its transitions. Returns all event ids. */
async function expectOneEventPerTransition(
  { payments, events, parked }: Books,
  made: readonly Acknowledged[],
): Promise<string[]> {
  const stored = await payments();
  expect(stored.map(({ _id }) => _id).sort()).toEqual(listIds(made));
  expect(new Set(stored.map(({ reference }) => reference)).size).toBe(PAYMENTS);
  const told = await events();
  expect(stored.flatMap((payment) => findEventFaults(payment, told))).toEqual([]);
  expect(told).toHaveLength(stored.reduce((count, { transition }) => count + transition - 1, 0));
  expect(await parked()).toBe(0);
  return told.map(({ _id }) => _id).sort();
}

/** By the service's own account and by the receiver's, signature and bytes included. */
async function everyEventIsDelivered(
  { undelivered }: Books,
  events: readonly string[],
): Promise<void> {
  await untilNone('an event that is not delivered', undelivered, DELIVERY_MS_MAX);
  const { stack, account } = merchant;
  const listed: { id: string; delivery: { status: string } }[] = [];
  let before: string[] = [];
  for (let more = true; more; ) {
    const range = ['--env', 'sandbox', '--limit', '100', ...before];
    const { data, next_cursor } = await stack.cli('event', 'list', account, ...range);
    listed.push(...data);
    before = ['--before', next_cursor ?? ''];
    more = next_cursor !== null;
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

type Books = Awaited<ReturnType<typeof openBooks>>;

/** Reads the stack's own MongoDB and Temporal, past the service. */
async function openBooks(stack: RunningStack) {
  const state = stack.state();
  if (state === undefined) throw new Error('stack.json is missing while the stack runs.');
  const mongo = await connectMongo(state.mongodb.uri, 'chaos-test');
  const db = mongo.db(state.settings.MONGODB_DB);
  const payments = db.collection<PaymentDocument>('payments');
  const events = db.collection<EventDocument>('events');
  const { address, namespace } = state.temporal;
  const connection = await Connection.connect({ address });
  const { workflow } = new Client({ connection, namespace });
  return {
    payments: () => payments.find().toArray(),
    events: () => events.find().toArray(),
    /** Ids of events whose delivery is not recorded. */
    undelivered: async (): Promise<string[]> => {
      const stored = db.collection<DeliveryRow>('deliveries').find({ status: 'delivered' });
      const delivered = new Set((await stored.toArray()).map(({ event_id }) => event_id));
      const ids = (await events.find().toArray()).map(({ _id }) => _id);
      return ids.filter((id) => !delivered.has(id));
    },
    /** Callbacks that nobody could place. */
    parked: () =>
      db.collection<CallbackDocument>('bank_callbacks').countDocuments({ parked: { $ne: null } }),
    /** Ids of the workflows that fit a visibility query. */
    workflows: async (query: string): Promise<string[]> => {
      const ids: string[] = [];
      for await (const { workflowId } of workflow.list({ query })) ids.push(workflowId);
      return ids;
    },
    close: async () => {
      await Promise.all([mongo.close(), connection.close()]);
    },
  };
}

/**
 * Faults of the events of one payment: they must be its transitions, each once and in order,
 * from `created` to the state it is in, one per transition.
 */
function findEventFaults(payment: PaymentDocument, all: readonly EventDocument[]): string[] {
  const ids = Array.from({ length: payment.transition - 1 }, (_, index) =>
    eventId('payment', payment._id, index + 2),
  );
  const own = all.filter((event) => event.resource_id === payment._id);
  const faults = own.filter(({ _id }) => !ids.includes(_id)).map(({ _id }) => `${_id} is extra`);
  let status: PaymentStatus = 'created';
  for (const [index, id] of ids.entries()) {
    const event = own.find(({ _id }) => _id === id);
    const next: PaymentStatus | undefined = nextStatus(status, event?.type);
    if (next === undefined) {
      faults.push(`transition ${index + 2}: ${event?.type ?? 'no event'} after ${status}`);
    } else status = next;
  }
  if (status !== payment.status) faults.push(`is ${payment.status}; its events end at ${status}`);
  return faults.map((fault) => `payment ${payment._id}: ${fault}`);
}

function nextStatus(
  status: PaymentStatus,
  type: WebhookEvent['type'] | undefined,
): PaymentStatus | undefined {
  const lawful: readonly PaymentStatus[] = PAYMENT_TRANSITIONS[status];
  return lawful.find((next) => type !== undefined && PAYMENT_EVENTS[next] === type);
}

/** Generous: two cores may be busy with other tests. */
const STEPS_MS_MAX = 120_000;

/**
 * Each part twice and the bank once, in two orders; payments are under way at every kill. The worker
 * is not the last: what it was delivering comes again while the others are killed.
 */
const KILLS: readonly PartName[] = [
  ...(['api', 'worker', 'mongodb', 'temporal'] as const),
  'sandbox_bank',
  ...(['worker', 'temporal', 'mongodb', 'api'] as const),
];

/**
 * Kills one part after the other with SIGKILL, each once the one before it has recovered. The work
 * is spread over all kills: of each batch much is done when the next part is killed, every time
 * somewhere else in it, and the next batch begins while that part is away.
 * @returns payments at each kill that had begun and not ended
 */
async function wreak(stack: RunningStack, load: Load, batch: number): Promise<number[]> {
  const inFlight: number[] = [];
  load.release(batch);
  for (const [index, part] of KILLS.entries()) {
    const share = 0.25 + 0.1 * ((index * 3) % 5);
    const steps = Math.floor((index + share) * batch * STEPS_PER_PAYMENT);
    const hasWorked = async () => load.countSteps() >= steps;
    await eventually(`some work before ${part} is killed`, hasWorked, STEPS_MS_MAX);
    inFlight.push(load.countInFlight());
    const isBack = stack.kill(part);
    const killedAt = performance.now();
    // These begin while the part is away.
    load.release(batch);
    await eventually(`a new ${part}`, isBack, 2 * RECOVERY_MS_MAX);
    const isServed = async () => load.lastGoodRequestAt() > killedAt;
    await eventually(`work done after ${part} was killed`, isServed, RECOVERY_MS_MAX);
  }
  return inFlight;
}

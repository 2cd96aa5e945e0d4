import { isAlive } from '../../src/base/process-table';
import { useFixture } from '../support/fixture';
import { eventually } from '../support/http';
import { noteForFailure } from '../support/quiet';
import { type Books, findEventFaults, openBooks } from './books';
import { type Acknowledged, startLoad } from './load';
import { KILLS, wreak } from './nemesis';
import { listAll, useMerchant } from './race';
import { reconcile } from './reconcile';
import { serversOn } from './running-stack';
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

test('keeps each acknowledged payment, transition and event exactly once while parts are killed', async () => {
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

test('ends every process and frees every port on SIGTERM after kills', async () => {
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

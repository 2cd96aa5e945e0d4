import { randomInt } from 'node:crypto';
import { eventId } from '../../src/base/ids';
import { isAlive } from '../../src/base/process-table';
import { ServiceError } from '../../src/domain/errors';
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
import { useFixture } from '../support/fixture';
import { eventually, idealPayment } from '../support/http';
import { retryUntilDone } from '../support/insist';
import { noteForFailure } from '../support/test-log';
import { openTools, runHistory } from './histories';
import { type Acknowledged, type Load, STEPS_PER_PAYMENT, startLoad } from './load';
import { findDifferences, listAll, raceWithKills, readBalance, useMerchant } from './race';
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
const tools = useFixture(
  () => openTools(merchant.stack),
  ({ close }) => close(),
);
/** Least number of movements that the bank has made. */
let moved = 0;

test('keeps each acknowledged payment, transition and event exactly once while parts are killed', async () => {
  const { stack, client, account } = merchant;
  await receiver.register(stack, account);
  const load = startLoad(client, PAYMENTS, CONCURRENCY);
  const batch = Math.ceil(PAYMENTS / (KILLS.length + 1));
  const [inFlight, made] = await Promise.all([wreak(stack, load, batch), load.done]);
  expect(inFlight).toHaveLength(KILLS.length);
  expect(inFlight).not.toContain(0);
  expect(made).toHaveLength(PAYMENTS);
  moved += made.filter(({ goal }) => goal === 'settled').length;

  await expectOneEventPerTransition(made);
  // Repeated creates change nothing.
  await everyAcknowledgementHolds(made);
  await expectOneEventPerTransition(made);
  const { sent, retries } = client.counts;
  noteForFailure(
    `${PAYMENTS} payments, ${KILLS.length} kills, ${sent} requests, ${retries} retries.`,
  );
  await expectNothingInFlight();
}, 600_000);

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

const readEvents = () =>
  tools.db.collection<EventDocument>('events').find({ account_id: merchant.account }).toArray();

/** In MongoDB: one payment per key, its events exactly its transitions. */
async function expectOneEventPerTransition(made: readonly Acknowledged[]): Promise<void> {
  const stored = await tools.db.collection<PaymentDocument>('payments').find().toArray();
  expect(stored.map(({ _id }) => _id).sort()).toEqual(listIds(made));
  expect(new Set(stored.map(({ reference }) => reference)).size).toBe(PAYMENTS);
  const events = await readEvents();
  expect(stored.flatMap((payment) => findEventFaults(payment, events))).toEqual([]);
  expect(events).toHaveLength(stored.reduce((count, { transition }) => count + transition - 1, 0));
  const callbacks = tools.db.collection<CallbackDocument>('bank_callbacks');
  expect(await callbacks.countDocuments({ parked: { $ne: null } })).toBe(0);
}

/**
 * Finds faults of the events of one payment: they must be its transitions, each once and in order,
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
    const type = own.find(({ _id }) => _id === id)?.type;
    const lawful: readonly PaymentStatus[] = PAYMENT_TRANSITIONS[status];
    const next = lawful.find((each) => type !== undefined && PAYMENT_EVENTS[each] === type);
    if (next === undefined) faults.push(`transition ${index + 2}: ${type} after ${status}`);
    else status = next;
  }
  if (status !== payment.status) faults.push(`is ${payment.status}; its events end at ${status}`);
  return faults.map((fault) => `payment ${payment._id}: ${fault}`);
}

async function listWorkflows(query: string): Promise<string[]> {
  const ids: string[] = [];
  for await (const { workflowId } of tools.temporal.workflow.list({ query })) ids.push(workflowId);
  return ids;
}

/** Every payment has reached its end, so none waits for anything, and nothing has broken. */
async function expectNothingInFlight(): Promise<void> {
  const payments = 'WorkflowType="payment"';
  await untilNone(
    'a payment workflow that still runs',
    () => listWorkflows(`${payments} AND ExecutionStatus="Running"`),
    VISIBILITY_MS_MAX,
  );
  const broken = ['Failed', 'TimedOut', 'Terminated', 'Canceled'].map((name) => `"${name}"`);
  expect(await listWorkflows(`ExecutionStatus IN (${broken.join(', ')})`)).toEqual([]);
  const ended = await listWorkflows(`${payments} AND ExecutionStatus="Completed"`);
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

/**
 * Holds docs/ledger.md#money-that-goes-wrong under kills: banks take settled money back and two
 * operators book it at once, late funds come and go, each is reported twice, and the worker is
 * killed while they do.
 */
const AMOUNT = 1_000;
const CHARGEBACKS = 6;
const LATE = 6;
/** Left in the balance, which is less than the chargebacks. */
const HELD = 3_500;
const CHARGEBACK_ENTRIES = ['payment_clawed_back', 'payment_settled'];
const [CAME, WENT] = ['payment_held', 'payment_resolved'];
const CAME_AND_WENT = [CAME, CAME, WENT, WENT];

test('books each chargeback and each late fund once, through kills', async () => {
  const { stack, openOther } = merchant;
  const { account, client } = await openOther('Wrong money');
  const report = async (id: string, event: string): Promise<void> => {
    const answer = await client.post(`/v1/sandbox/payments/${id}/simulate`, { event });
    expect(answer.status).toBe(200);
  };
  const pay = async (key: string, event: 'settled' | 'failed'): Promise<string> => {
    const { id } = (await client.post('/v1/payments', idealPayment({ amount: AMOUNT }), key)).body;
    await report(id, event);
    return await client.persevere(`${id} to be ${event}`, async () =>
      (await client.get(`/v1/payments/${id}`)).body.status === event ? id : undefined,
    );
  };
  /** Repeats an act whose outcome is unknown; a second booking is refused in words. */
  const clawBack = (id: string, operator: string, index: number) =>
    client.persevere(`claw_back of ${id} by ${operator}`, async () => {
      const act = { what: 'claw_back', operator, reason: `Statement line ${index}.` };
      return await tools.act('payment', id, act).catch((error: unknown) => {
        if (!(error instanceof ServiceError)) throw error;
        if (/chargeback of the payment is posted already/.test(error.message)) return 'booked';
        if (/^outcome_unknown$|_unavailable$/.test(error.code)) return undefined;
        throw error;
      });
    });
  const many = (count: number, event: 'settled' | 'failed') =>
    Promise.all(Array.from({ length: count }, (_, n) => pay(`${event}-${n}`, event)));
  const settled = await many(CHARGEBACKS, 'settled');
  const failed = await many(LATE, 'failed');
  const draw = HELD - (await readBalance(stack, account, 'main')).available;
  const from = ['--balance-account', 'main', '--currency', 'EUR', '--amount', String(draw)];
  const by = ['--env', 'sandbox', '--operator', 'ana', '--reason', 'Paid out elsewhere.'];
  await stack.cli('balance', 'adjust', account, ...from, ...by);

  let done = 0;
  const countEach = (...works: Promise<unknown>[]) =>
    Promise.all(works.map((each) => each.then(() => (done += 1))));
  const work = [
    ...settled.map(async (id, index) => {
      await report(id, 'clawed_back');
      await countEach(...['ana', 'ben'].map((who) => clawBack(id, who, index)));
    }),
    ...failed.map(async (id) => {
      await countEach(report(id, 'settled'), report(id, 'settled'));
      await countEach(report(id, 'reversed'), report(id, 'reversed'));
    }),
  ];
  const { kills } = await raceWithKills(stack, work, async () => done);
  expect(kills).toBeGreaterThanOrEqual(2);

  const posted = async (id: string) =>
    (await retryUntilDone(() => tools.stores.ledger.forResource(id)))
      .map(({ kind }) => kind)
      .sort();
  for (const id of settled) expect(await posted(id)).toEqual(CHARGEBACK_ENTRIES);
  for (const id of failed) {
    // A repeated simulation reports a different amount, which is sent back a little later.
    const whole = async () => {
      const kinds = await posted(id);
      const came = kinds.filter((kind) => kind === CAME).length;
      const went = kinds.filter((kind) => kind === WENT).length;
      return kinds.length >= CAME_AND_WENT.length && came === went && came + went === kinds.length;
    };
    await eventually(`late funds of ${id} to come and go`, whole, RECOVERY_MS_MAX);
  }
  moved += 2 * (CHARGEBACKS + LATE);
  expect(await readBalance(stack, account, 'main')).toEqual({ available: 0, reserved: 0 });
  const shown = await stack.cli('balance', 'show', account, '--env', 'sandbox');
  const owed = CHARGEBACKS * AMOUNT - HELD;
  expect(shown.receivables).toMatchObject([{ currency: 'EUR', owed }]);
  const statuses = (await listAll(client, '/v1/payments')).map(({ status }) => status).sort();
  expect(statuses).toEqual([...Array(LATE).fill('failed'), ...Array(CHARGEBACKS).fill('settled')]);
  noteForFailure(`${done} reports and bookings, ${kills} kills, ${client.counts.retries} retries.`);
}, 400_000);

/**
 * Random histories under kills of the worker. `HISTORIES=1000` runs as many, and `HISTORY_SEED=7`
 * begins with that seed; each history follows from its own seed.
 */
const HISTORIES = Number(process.env['HISTORIES'] ?? 12);
const FIRST_SEED = Number(process.env['HISTORY_SEED'] ?? randomInt(2 ** 30));
const ARE_MANY = HISTORIES > 100;
/** More at once for many: a history mostly waits for the worker after a killed one, and all wait together. */
const AT_ONCE = ARE_MANY ? 64 : 8;
/** Histories that end between two kills. */
const ENDED_PER_KILL = ARE_MANY ? 16 : 4;
/** Histories of one merchant, so that its test funds suffice. */
const PER_ACCOUNT = 12;
const HISTORY_MS = 30_000;
const STATE_MS_MAX = ARE_MANY ? 180_000 : 90_000;

test(
  'ledger and bank agree after random reports of banks and random kills',
  async () => {
    const { stack, openOther } = merchant;
    noteForFailure(`${HISTORIES} histories from HISTORY_SEED=${FIRST_SEED} on`);
    const histories = new Map<number, string[]>();
    const merchants: ReturnType<typeof openOther>[] = [];
    let next = 0;
    const loop = async () => {
      while (next < HISTORIES) {
        const number = Math.floor(next / PER_ACCOUNT);
        const seed = FIRST_SEED + next;
        next += 1;
        merchants[number] ??= openOther(`Histories ${number}`);
        const told = await merchants[number]
          .then(({ client }) => runHistory(tools, client, seed, STATE_MS_MAX))
          .catch((cause: unknown) => {
            throw new Error(`The history of seed ${seed} ended early.`, { cause });
          });
        histories.set(seed, told);
      }
    };
    const loops = Array.from({ length: AT_ONCE }, loop);
    const { kills } = await raceWithKills(stack, loops, async () => histories.size, {
      ...{ every: ENDED_PER_KILL, killsMax: HISTORIES, waitMs: HISTORY_MS * AT_ONCE },
    });
    expect(kills).toBeGreaterThan(0);

    const movements = await reconcile(stack, (reference) =>
      [...histories].filter(([, told]) => told.join().replaceAll('-', '').includes(reference)),
    );
    expect(movements).toBeGreaterThan(moved + HISTORIES / 2);
    const areConfirmed = async () => {
      const disputes = await tools.stores.disputes.listAll({ limit: 10 * HISTORIES });
      return disputes.every(({ answering, closed_at }) => closed_at !== null || answering == null);
    };
    await eventually('the bank to confirm all evidence', areConfirmed, STATE_MS_MAX);
    expect(await findDifferences(stack)).toEqual([]);
    noteForFailure(`${HISTORIES} histories, ${movements} movements, ${kills} kills: all agree`);
  },
  120_000 + HISTORIES * HISTORY_MS,
);

test('delivers every event of what was done through kills, with the same bytes each time', async () => {
  const events = (await readEvents()).map(({ _id }) => _id).sort();
  const deliveries = tools.db.collection<DeliveryRow>('deliveries');
  const undelivered = async () => {
    const rows = await deliveries.find({ status: 'delivered' }).toArray();
    const delivered = new Set(rows.map(({ event_id }) => event_id));
    return events.filter((id) => !delivered.has(id));
  };
  await untilNone('an event that is not delivered', undelivered, DELIVERY_MS_MAX);
  expect(receiver.faults).toEqual([]);
  expect([...receiver.received.keys()].sort()).toEqual(events);
}, 300_000);

test('ends every process and frees every port on SIGTERM after kills', async () => {
  const { stack } = merchant;
  await tools.close();
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

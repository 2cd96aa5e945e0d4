import { randomInt } from 'node:crypto';
import { MongoError } from 'mongodb';
import { connectMongo, isDuplicateKey } from '../../src/base/mongo';
import { deliverCallback } from '../../src/callbacks/deliver';
import { assertNever } from '../../src/domain/assert';
import type { BankResource } from '../../src/domain/banks/callback';
import type { Outcome } from '../../src/domain/banks/movement';
import type { BankDecision } from '../../src/domain/banks/sandbox';
import { ServiceError } from '../../src/domain/errors';
import { OVERDUE_ATTENTION } from '../../src/domain/payout/payout';
import { taskQueues } from '../../src/domain/task-queues';
import { bankReference } from '../../src/service/banks/sandbox';
import { type Act, actOn } from '../../src/service/operators/act';
import { createStores } from '../../src/store';
import { disputeId } from '../../src/store/disputes';
import { connectTemporal } from '../../src/temporal/access';
import { eventually, retryUntilDone } from '../support/eventually';
import { useFixture } from '../support/fixture';
import { idealPayment } from '../support/http';
import { noteForFailure } from '../support/quiet';
import { createRandom, type Random } from '../support/random';
import {
  findDifferences,
  listAll,
  openMerchant,
  RECIPIENT,
  raceWithKills,
  readBalance,
  useMerchant,
} from './race';
import { reconcile } from './reconcile';
import { RECOVERY_MS_MAX } from './running-stack';

/**
 * Random histories under kills of the worker. `HISTORIES=1000` runs as many, and `HISTORY_SEED=7` begins with
 * that seed; each history follows from its own seed.
 */
const HISTORIES = Number(process.env['HISTORIES'] ?? 12);
const FIRST_SEED = Number(process.env['HISTORY_SEED'] ?? randomInt(2 ** 30));
/** More at once for many: a history mostly waits for the worker after a killed one, and all wait together. */
const AT_ONCE = HISTORIES > 100 ? 64 : 8;
/** Histories that end between two kills. */
const ENDED_PER_KILL = HISTORIES > 100 ? 16 : 4;
/** Histories of one merchant, so that its test funds suffice. */
const PER_ACCOUNT = 12;
const HISTORY_MS = 30_000;
const STATE_MS_MAX = HISTORIES > 100 ? 180_000 : 90_000;
const REFUSALS_MAX = 4;
/** Says that the bank is late, and nothing of money: its answer is still to come. */
const OVERDUE = new Set<string | null>(Object.values(OVERDUE_ATTENTION));

const merchant = useMerchant('Wrong money');
const over = useFixture(
  async () => new AbortController(),
  (controller) => controller.abort(),
);
const tools = useFixture(openTools, ({ close }) => close());

test(
  'ledger and bank agree after random reports of banks and random kills',
  async () => {
    const { stack } = merchant;
    const seeds = Array.from({ length: HISTORIES }, (_, index) => FIRST_SEED + index);
    noteForFailure(`${HISTORIES} histories from HISTORY_SEED=${FIRST_SEED} on`);
    const histories = new Map<number, string[]>();
    const merchants: Promise<Merchant>[] = [];
    const getMerchant = (index: number) => {
      const number = Math.floor(index / PER_ACCOUNT);
      merchants[number] ??= createMerchant(number);
      return merchants[number];
    };
    const queue = seeds.map((seed, index) => ({ seed, index }));
    const loop = async () => {
      for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
        const world = { ...tools, ...(await getMerchant(next.index)) };
        const told = await runHistory(world, next.seed).catch((error: unknown) => {
          throw new Error(`The history of seed ${next?.seed} ended early.`, { cause: error });
        });
        histories.set(next.seed, told);
      }
    };
    const running = Promise.all(Array.from({ length: AT_ONCE }, loop));
    const [kills] = await Promise.all([killWorkers(running, () => histories.size), running]);
    expect(kills).toBeGreaterThan(0);

    const movements = await reconcile(stack, (reference) =>
      [...histories].filter(([, told]) => told.join().replaceAll('-', '').includes(reference)),
    );
    expect(movements).toBeGreaterThan(HISTORIES / 2);
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

type Merchant = Pick<HistoryWorld, 'create' | 'answer' | 'recipient_id'>;

async function createMerchant(number: number): Promise<Merchant> {
  const { client } = await openMerchant(merchant.stack, `Histories ${number}`, over.signal);
  const create: HistoryWorld['create'] = async (path, idempotencyKey, body) => {
    const answer = await client.post(path, body, idempotencyKey);
    return answer.status === 201 ? answer.body.id : undefined;
  };
  const recipient_id = await create('/v1/payout-recipients', 'recipient', RECIPIENT);
  if (recipient_id === undefined) throw new Error('The recipient was refused.');
  const answer: HistoryWorld['answer'] = async (dispute_id) => {
    const path = `/v1/disputes/${dispute_id}/evidence`;
    const body = { explanation: 'The parcel arrived.' };
    await client.persevere(`evidence of ${dispute_id}`, async () => {
      const answer = await client.attempt({ method: 'POST', path, body });
      return answer?.status === 404 ? undefined : answer;
    });
  };
  return { create, answer, recipient_id };
}

/** Does what the bank, the operators and the tests' eyes do, past the API. */
async function openTools() {
  const state = merchant.stack.state();
  if (state === undefined) throw new Error('stack.json is missing while the stack runs.');
  const { mongodb, settings, temporal: server } = state;
  const mongo = await connectMongo(mongodb.uri, 'histories');
  const stores = createStores(mongo.db(settings.MONGODB_DB));
  const temporal = connectTemporal(server);
  const { lifecycleQueue } = taskQueues(settings.TASK_QUEUE_PREFIX);
  const now = () => new Date();
  const deps = { stores, temporal, lifecycleQueue, now };
  const actOnce = (resource: BankResource, id: string, request: Act) =>
    actOn({ stores, temporal, lifecycleQueue }, resource, id, request);
  const isHeld = async (id: string) =>
    (await stores.movements.forResource(id)).some(({ state }) => state === 'suspense');
  const find = { payment: stores.payments, refund: stores.refunds, payout: stores.payouts };
  const world: Omit<HistoryWorld, keyof Merchant> = {
    decide: async (decision, callback_id, dispute) => {
      const { resource, resource_id, name, bank_reference, amount, currency } = decision;
      const facts = { bank_reference, amount, currency, ...dispute };
      const body = { callback_id, occurred_at: now().toISOString(), ...facts };
      const moved = { ...decision, amount: amount + (dispute?.fee ?? 0) };
      const report = { _id: callback_id, connector: 'sandbox', ...moved, body, at: now() };
      await stores.sandboxReports.add(report).catch((error: unknown) => {
        if (!isDuplicateKey(error)) throw error;
      });
      const about = { connector: 'sandbox', resource, resource_id, name, callback: body };
      await retryUntilDone(() => deliverCallback(deps, about));
    },
    reaches: async (resource, id, ...states) => {
      await eventually(
        `${resource} ${id} to be ${states.join(' or ') || 'in question'}`,
        async () => {
          const stored = await find[resource].get(id);
          if (stored === null) return false;
          const { attention, status } = stored;
          return states.includes(status) || (attention !== null && !OVERDUE.has(attention));
        },
        STATE_MS_MAX,
      );
    },
    holds: async (id) => {
      await eventually(`money of ${id} in suspense`, () => isHeld(id), STATE_MS_MAX);
    },
    act: async (resource, id, what, facts = {}) => {
      const by = { operator: 'ana', reason: 'The bank says so.' };
      // An act whose outcome is unknown is sent again, and done once.
      const once = what === 'claw_back' ? { operation_id: `${what}-${id}` } : {};
      const request = { what, ...facts, ...by, ...once };
      let refusals = 0;
      let refusal: unknown;
      const acted = async () => {
        try {
          await actOnce(resource, id, request);
          return true;
        } catch (error) {
          if (!(error instanceof ServiceError)) throw error;
          refusal = error;
          // The workflow may know a moment later than the document what has happened.
          refusals += error.code === 'wrong_state' ? 1 : 0;
          return refusals === REFUSALS_MAX;
        }
      };
      await eventually(`${what} of ${resource} ${id}`, acted, STATE_MS_MAX).catch((error) => {
        throw new Error(String(error), { cause: refusal });
      });
    },
  };
  return {
    ...{ ...world, stores, actOnce, isHeld },
    close: async () => {
      await Promise.all([mongo.close(), temporal.connection.close()]);
    },
  };
}

/** Kills the worker each time that some histories have ended; says how often. */
async function killWorkers(running: Promise<unknown>, count: () => number): Promise<number> {
  let isOver = false;
  const ended = running.finally(() => {
    isOver = true;
  });
  ended.catch(() => {});
  for (let kills = 0; ; kills += 1) {
    const before = count();
    const more = async () => isOver || count() >= before + ENDED_PER_KILL;
    await eventually('more histories to end', more, HISTORY_MS * AT_ONCE);
    if (isOver) return kills;
    await eventually('a new worker', merchant.stack.kill('worker'), RECOVERY_MS_MAX);
  }
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

test('each chargeback and each late fund is booked once, through kills', async () => {
  const { stack, account, client } = merchant;
  const settled = await many(CHARGEBACKS, (n) => payment(`settled-${n}`, 'settled'));
  const failed = await many(LATE, (n) => payment(`failed-${n}`, 'failed'));
  const draw = HELD - (await readBalance(stack, account, 'main')).available;
  const from = ['--balance-account', 'main', '--currency', 'EUR', '--amount', String(draw)];
  const by = ['--env', 'sandbox', '--operator', 'ana', '--reason', 'Paid out elsewhere.'];
  await stack.cli('balance', 'adjust', account, ...from, ...by);

  let done = 0;
  const count = async (work: Promise<unknown>): Promise<void> => {
    await work;
    done += 1;
  };
  const work = [
    ...settled.map(async (id, index) => {
      await report(id, 'clawed_back');
      await Promise.all(['ana', 'ben'].map((who) => count(clawBack(id, who, index))));
    }),
    ...failed.map(async (id) => {
      await Promise.all([count(report(id, 'settled')), count(report(id, 'settled'))]);
      await Promise.all([count(report(id, 'reversed')), count(report(id, 'reversed'))]);
    }),
  ];
  const { kills } = await raceWithKills(stack, work, async () => done);
  expect(kills).toBeGreaterThanOrEqual(2);

  for (const id of settled) expect(await posted(id)).toEqual(CHARGEBACK_ENTRIES);
  for (const id of failed) {
    // A simulation whose answer was lost is made again, and its money came once more.
    const whole = async () => {
      if (await tools.isHeld(id)) await report(id, 'reversed');
      const kinds = await posted(id);
      const came = kinds.filter((kind) => kind === CAME).length;
      const went = kinds.filter((kind) => kind === WENT).length;
      return kinds.length >= CAME_AND_WENT.length && came === went && came + went === kinds.length;
    };
    await eventually(`late funds of ${id} to come and go`, whole, RECOVERY_MS_MAX);
  }
  expect(await readBalance(stack, account, 'main')).toEqual({ available: 0, reserved: 0 });
  const shown = await stack.cli('balance', 'show', account, '--env', 'sandbox');
  const owed = CHARGEBACKS * AMOUNT - HELD;
  expect(shown.receivables).toMatchObject([{ currency: 'EUR', owed }]);
  const statuses = (await listAll(client, '/v1/payments')).map(({ status }) => status).sort();
  expect(statuses).toEqual([...Array(LATE).fill('failed'), ...Array(CHARGEBACKS).fill('settled')]);
  expect(await findDifferences(stack)).toEqual([]);
  await reconcile(stack);
  noteForFailure(`${done} reports and bookings, ${kills} kills, ${client.counts.retries} retries.`);
}, 400_000);

const CHARGEBACK_ENTRIES = ['payment_clawed_back', 'payment_settled'];
const [CAME, WENT] = ['payment_held', 'payment_resolved'];
const CAME_AND_WENT = [CAME, CAME, WENT, WENT];

/** Kinds of a payment's journal entries, sorted. */
async function posted(id: string): Promise<string[]> {
  const entries = await retryUntilDone(() => tools.stores.ledger.forResource(id));
  return entries.map(({ kind }) => kind).sort();
}

async function payment(key: string, event: 'settled' | 'failed'): Promise<string> {
  const { client } = merchant;
  const { id } = (await client.post('/v1/payments', idealPayment({ amount: AMOUNT }), key)).body;
  await report(id, event);
  await client.persevere(`${id} to be ${event}`, async () => {
    const { body } = await client.get(`/v1/payments/${id}`);
    return body.status === event ? body : undefined;
  });
  return id;
}

async function report(id: string, event: string): Promise<void> {
  const path = `/v1/sandbox/payments/${id}/simulate`;
  const answer = await merchant.client.post(path, { event });
  expect(answer.status).toBe(200);
}

/** An operator repeats an act whose outcome is unknown; a second booking is refused in words. */
async function clawBack(id: string, operator: string, index: number): Promise<void> {
  const request = { what: 'claw_back', operator, reason: `Statement line ${index}.` };
  await merchant.client.persevere(`claw_back of ${id} by ${operator}`, async () => {
    try {
      return await tools.actOnce('payment', id, request);
    } catch (error) {
      if (error instanceof MongoError) return undefined;
      if (!(error instanceof ServiceError)) throw error;
      if (/chargeback of the payment is posted already/.test(error.message)) return 'booked';
      if (/^outcome_unknown$|_unavailable$/.test(error.code)) return undefined;
      throw error;
    }
  });
}

function many<T>(count: number, make: (n: number) => Promise<T>): Promise<T[]> {
  return Promise.all(Array.from({ length: count }, (_, n) => make(n)));
}

interface DisputeFacts {
  dispute_id: string;
  /** Minor units that the bank takes or returns besides. */
  fee: number;
}

interface ActFacts {
  amount?: number;
  as?: Outcome;
}

/** Acts of a history on the product; each call ends once it has done so. */
interface HistoryWorld {
  create: (path: string, key: string, body: object) => Promise<string | undefined>;
  /** Sends evidence until it is accepted, or refused. */
  answer: (dispute_id: string) => Promise<void>;
  /** The bank decides, and reports it; a report that is sent again is received once. */
  decide: (decision: BankDecision, callback_id: string, dispute?: DisputeFacts) => Promise<void>;
  /** Waits until the resource has one of the states, or an attention reason about its money. */
  reaches: (resource: BankResource, id: string, ...states: string[]) => Promise<void>;
  /** Waits until money of the resource is in suspense. */
  holds: (id: string) => Promise<void>;
  /** An operator acts; an act that the state does not allow does nothing. */
  act: (resource: BankResource, id: string, what: string, facts?: ActFacts) => Promise<void>;
  recipient_id: string;
}

const PAYMENT_ENDS = [
  ...(['settled', 'settled', 'settled', 'settled', 'declined', 'wrong_amount'] as const),
  ...(['wrong_currency', 'late', 'late', 'twice', 'charged_back', 'failed_after'] as const),
  ...(['disputed', 'disputed', 'disputed'] as const),
] as const;
const REFUND_ENDS = [
  ...(['settled', 'failed', 'failed_then_settled', 'smaller', 'larger', 'twice'] as const),
  'foreign_then_failed',
] as const;
const PAYOUT_ENDS = [
  ...(['completed', 'failed', 'returned', 'returned_in_part', 'twice'] as const),
  ...(['failed_after_completed', 'failed_then_completed', 'completed_otherwise'] as const),
] as const;

const PAYMENT_MAX = 50_000;
const PAYOUT_MAX = 2_000;

/**
 * Runs the history of a seed: a payment with its refunds, or a payout, and all reports of its bank,
 * perhaps twice, late, in a different amount or in contradiction.
 * @returns what it did, in words
 */
async function runHistory(world: HistoryWorld, seed: number): Promise<string[]> {
  const random = createRandom(seed);
  const history = createHistory(world, seed, random);
  if (random.chance(0.3)) await livePayout(history);
  else await livePayment(history);
  return history.done;
}

type History = ReturnType<typeof createHistory>;

function createHistory(world: HistoryWorld, seed: number, random: Random) {
  const done: string[] = [];
  let reports = 0;
  let creates = 0;
  return {
    world,
    random,
    done,
    /** @returns its id; undefined where it was refused */
    create: async (path: string, body: object): Promise<string | undefined> => {
      creates += 1;
      const id = await world.create(path, `history-${seed}-${creates}`, body);
      done.push(`${path} ${id} ${JSON.stringify(body)}`);
      return id;
    },
    /** Reports once, or twice; the bank's own reference by default. */
    report: async (
      resource: BankResource,
      resource_id: string,
      name: BankDecision['name'],
      money: { amount: number; currency?: string; isOther?: boolean; dispute?: DisputeFacts },
    ): Promise<void> => {
      reports += 1;
      const callback_id = `history_${seed}_${reports}`;
      const { amount, currency = 'EUR', isOther = false, dispute } = money;
      const bank_reference = bankReference(isOther ? callback_id : resource_id);
      const decision = { resource, resource_id, name, bank_reference, amount, currency };
      const times = random.chance(0.3) ? 2 : 1;
      done.push(`${name} ${amount} ${currency} ${bank_reference} ${times} times`);
      for (let time = 0; time < times; time += 1) {
        await world.decide(decision, callback_id, dispute);
      }
    },
    act: async (resource: BankResource, id: string, what: string, facts: ActFacts = {}) => {
      done.push(`${what} ${Object.values(facts)}`);
      await world.act(resource, id, what, facts);
    },
  };
}

async function livePayment(history: History): Promise<void> {
  const { world, random, create, report, act } = history;
  const amount = random.integer(1_000, PAYMENT_MAX);
  const id = await create('/v1/payments', idealPayment({ amount }));
  if (id === undefined) throw new Error('The payment was refused.');
  const end = random.pick(PAYMENT_ENDS);
  const other = random.integer(1, 2 * amount);
  if (random.chance(0.5)) await report('payment', id, 'authorized', { amount });
  switch (end) {
    case 'declined':
      return await report('payment', id, 'failed', { amount });
    case 'wrong_amount':
      await report('payment', id, 'settled', { amount: other });
      if (other === amount || random.chance(0.5)) return;
      await world.reaches('payment', id);
      return await act('payment', id, 'mark_settled');
    case 'wrong_currency':
      return await report('payment', id, 'settled', { amount: other, currency: 'USD' });
    case 'late': {
      await report('payment', id, 'failed', { amount });
      await world.reaches('payment', id, 'failed');
      const came = random.chance(0.5) ? amount : other;
      await report('payment', id, 'settled', { amount: came, isOther: random.chance(0.5) });
      return await report('payment', id, 'reversed', { amount: came, isOther: true });
    }
    case 'twice':
      await report('payment', id, 'settled', { amount });
      return await report('payment', id, 'settled', { amount, isOther: true });
    case 'charged_back':
    case 'failed_after': {
      await report('payment', id, 'settled', { amount });
      await world.reaches('payment', id, 'settled');
      const isPart = end === 'charged_back' && random.chance(0.5);
      const back = isPart ? random.integer(1, amount) : amount;
      const name = end === 'charged_back' ? 'clawed_back' : 'failed';
      await report('payment', id, name, { amount: back, isOther: true });
      return await act('payment', id, 'claw_back', { amount: back });
    }
    case 'disputed':
      await report('payment', id, 'settled', { amount });
      await world.reaches('payment', id, 'settled');
      return await liveDisputes(history, id, amount);
    case 'settled': {
      await report('payment', id, 'settled', { amount });
      if (random.chance(0.3)) await report('payment', id, 'authorized', { amount });
      if (random.chance(0.3)) await report('payment', id, 'expired', { amount });
      await world.reaches('payment', id, 'settled');
      for (let left = amount; left > 1 && random.chance(0.6); ) {
        const part = random.integer(1, left);
        await liveRefund(history, id, part);
        left -= part;
      }
      return;
    }
    default:
      return assertNever(end);
  }
}

/** Disputes in parts; each is won, lost or left open, and perhaps reported in the wrong order. */
async function liveDisputes(
  { world, random, report }: History,
  payment_id: string,
  amount: number,
): Promise<void> {
  for (let left = amount, n = 1; left > 1 && (n === 1 || random.chance(0.4)); n += 1) {
    const part = random.integer(1, left);
    const dispute = { dispute_id: `dispute_${n}`, fee: random.pick([0, 1_500]) };
    const opened = { amount: part, isOther: true, dispute };
    const won = { ...opened, dispute: { ...dispute, fee: random.pick([0, dispute.fee]) } };
    if (random.chance(0.2)) await report('payment', payment_id, 'dispute_lost', opened);
    await report('payment', payment_id, 'dispute_opened', opened);
    left -= part;
    if (random.chance(0.5)) await world.answer(disputeId(payment_id, dispute.dispute_id));
    if (random.chance(0.4)) await report('payment', payment_id, 'dispute_won', won);
    else if (random.chance(0.5)) await report('payment', payment_id, 'dispute_lost', opened);
  }
}

async function liveRefund(
  { world, random, create, report, act }: History,
  payment_id: string,
  amount: number,
): Promise<void> {
  const id = await create('/v1/refunds', { payment_id, amount });
  if (id === undefined) return;
  const end = random.pick(REFUND_ENDS);
  switch (end) {
    case 'settled':
      return await report('refund', id, 'settled', { amount });
    case 'failed':
      return await report('refund', id, 'failed', { amount });
    case 'failed_then_settled':
      await report('refund', id, 'failed', { amount });
      await world.reaches('refund', id, 'failed');
      return await report('refund', id, 'settled', { amount });
    case 'smaller': {
      const sent = random.integer(1, amount);
      await report('refund', id, 'settled', { amount: sent });
      if (sent === amount) return;
      await world.reaches('refund', id);
      return await act('refund', id, 'mark_settled', { amount: sent });
    }
    case 'larger':
      await report('refund', id, 'settled', { amount: amount + random.integer(1, amount) });
      await world.reaches('refund', id);
      return await act('refund', id, 'mark_settled');
    case 'foreign_then_failed':
      await report('refund', id, 'settled', { amount, currency: 'USD' });
      await world.reaches('refund', id);
      // The bank reverses what it sent.
      return await report('refund', id, 'failed', { amount, currency: 'USD' });
    case 'twice':
      await report('refund', id, 'settled', { amount });
      await world.reaches('refund', id, 'settled');
      return await report('refund', id, 'settled', { amount, isOther: true });
    default:
      return assertNever(end);
  }
}

async function livePayout({ world, random, create, report, act }: History): Promise<void> {
  const amount = random.integer(2, PAYOUT_MAX);
  const { recipient_id } = world;
  const id = await create('/v1/payouts', {
    ...{ recipient_id, amount, currency: 'EUR', method: 'sepa_instant' },
    metadata: { balance_account: 'main' },
  });
  if (id === undefined) return;
  await world.reaches('payout', id, 'sent');
  const end = random.pick(PAYOUT_ENDS);
  if (end === 'failed') return await report('payout', id, 'failed', { amount });
  if (end === 'failed_then_completed') {
    await report('payout', id, 'failed', { amount });
    await world.reaches('payout', id, 'failed');
    await report('payout', id, 'completed', { amount });
    if (random.chance(0.5)) await report('payout', id, 'failed', { amount });
    return;
  }
  if (end === 'completed_otherwise') {
    // It was sent, which is all that moves money: another amount is a wrong report.
    await report('payout', id, 'completed', { amount: amount - 1 });
    await world.holds(id);
    await act('payout', id, 'mark_completed');
    return await act('payout', id, 'resolve_movement', { as: 'never_happened' });
  }
  await report('payout', id, 'completed', { amount });
  if (random.chance(0.3)) await report('payout', id, 'sent', { amount });
  await world.reaches('payout', id, 'completed');
  switch (end) {
    case 'completed':
      return;
    case 'returned':
      return await report('payout', id, 'returned', { amount });
    case 'returned_in_part': {
      const back = random.integer(1, amount - 1);
      await report('payout', id, 'returned', { amount: back });
      await world.reaches('payout', id, 'returned');
      return await act('payout', id, 'mark_returned', { amount: back });
    }
    case 'twice':
      return await report('payout', id, 'completed', { amount, isOther: true });
    case 'failed_after_completed':
      await report('payout', id, 'failed', { amount });
      await world.reaches('payout', id, 'failed');
      return await act('payout', id, 'mark_returned');
    default:
      return assertNever(end);
  }
}

import { MongoError } from 'mongodb';
import { connectMongo, isDuplicateKey } from '../../src/base/mongo';
import { deliverCallback } from '../../src/callbacks/deliver';
import type { BankResource } from '../../src/domain/banks/callback';
import type { BankDecision } from '../../src/domain/banks/sandbox';
import { ServiceError } from '../../src/domain/errors';
import { OVERDUE_ATTENTION } from '../../src/domain/payout/payout';
import { taskQueues } from '../../src/domain/task-queues';
import { bankReference } from '../../src/service/banks/sandbox';
import { type Act, actOn } from '../../src/service/operators/act';
import { createStores } from '../../src/store';
import { disputeId } from '../../src/store/disputes';
import { connectTemporal } from '../../src/temporal/access';
import { eventually, idealPayment } from '../support/http';
import { retryUntilDone } from '../support/insist';
import { createRandom, type Random } from '../support/random';
import type { PatientClient } from './patient-client';
import { RECIPIENT } from './race';
import type { RunningStack } from './running-stack';

const REFUSALS_MAX = 4;
/** Says that the bank is late, and nothing of money: its answer is still to come. */
const OVERDUE = new Set<string | null>(Object.values(OVERDUE_ATTENTION));

type Tools = Awaited<ReturnType<typeof openTools>>;

/** Opens what the bank, the operators and the tests' eyes use, past the API. */
export async function openTools(stack: RunningStack) {
  const { mongodb, settings, temporal: server } = stack.readState();
  const mongo = await connectMongo(mongodb.uri, 'chaos-test');
  const db = mongo.db(settings.MONGODB_DB);
  const stores = createStores(db);
  const temporal = connectTemporal(server);
  const { lifecycleQueue } = taskQueues(settings.TASK_QUEUE_PREFIX);
  const deps = { stores, temporal, lifecycleQueue };
  let closed: Promise<unknown> | undefined;
  return {
    ...{ db, stores, temporal },
    act: (resource: BankResource, id: string, act: Act) =>
      actOn(deps, resource, id, act).catch((error: unknown) => {
        if (!(error instanceof MongoError)) throw error;
        throw new ServiceError('mongodb_unavailable', error.message);
      }),
    deliver: (about: Parameters<typeof deliverCallback>[1]) =>
      retryUntilDone(() => deliverCallback({ ...deps, now: () => new Date() }, about)),
    close: () => {
      closed ??= Promise.all([mongo.close(), temporal.connection.close()]);
      return closed;
    },
  };
}

interface ReportFacts {
  currency?: string;
  /** The bank names a transfer of its own; by default that of the resource. */
  isOther?: boolean;
  /** Fee: minor units that the bank takes or returns besides. */
  dispute?: { dispute_id: string; fee: number };
}

/**
 * Runs the history of a seed: a payment with its refunds, or a payout, and all reports of its bank,
 * perhaps twice, late, in a different amount or in contradiction.
 * @param waitMs for each state; each act ends once the product has done it
 * @returns what it did, in words
 */
export async function runHistory(
  tools: Tools,
  client: PatientClient,
  seed: number,
  waitMs: number,
): Promise<string[]> {
  const random = createRandom(seed);
  const done: string[] = [];
  const { stores } = tools;
  const find = { payment: stores.payments, refund: stores.refunds, payout: stores.payouts };
  let creates = 0;
  let reports = 0;

  /** @returns its id; undefined where it was refused */
  const create = async (path: string, body: object): Promise<string | undefined> => {
    creates += 1;
    const answer = await client.post(path, body, `history-${seed}-${creates}`);
    const id: string | undefined = answer.status === 201 ? answer.body.id : undefined;
    done.push(`${path} ${id} ${JSON.stringify(body)}`);
    return id;
  };

  const live = async (resource: BankResource, id: string, amount: number, lives: Course[]) => {
    /** Reports once, or twice. */
    const report = async (
      name: BankDecision['name'],
      reported: number = amount,
      { currency = 'EUR', isOther = false, dispute }: ReportFacts = {},
    ): Promise<void> => {
      reports += 1;
      const callback_id = `history_${seed}_${reports}`;
      const bank_reference = bankReference(isOther ? callback_id : id);
      const facts = { bank_reference, amount: reported, currency };
      const body = { callback_id, occurred_at: new Date().toISOString(), ...facts, ...dispute };
      const about = { connector: 'sandbox', resource, resource_id: id, name };
      const moved = { ...facts, amount: reported + (dispute?.fee ?? 0), body, at: new Date() };
      const times = random.chance(0.3) ? 2 : 1;
      done.push(`${name} ${reported} ${currency} ${bank_reference} ${times} times`);
      for (let time = 0; time < times; time += 1) {
        await stores.sandboxReports
          .add({ _id: callback_id, ...about, ...moved })
          .catch((error: unknown) => {
            if (!isDuplicateKey(error)) throw error;
          });
        await tools.deliver({ ...about, callback: body });
      }
    };
    /** Waits for one of the states, or an attention reason about its money. */
    const reaches = async (...states: string[]): Promise<void> => {
      const isReached = async () => {
        const stored = await find[resource].get(id);
        if (stored === null) return false;
        const { attention, status } = stored;
        return states.includes(status) || (attention !== null && !OVERDUE.has(attention));
      };
      await eventually(`${resource} ${id} to be ${states.join(' or ')}`, isReached, waitMs);
    };
    /** An operator acts; an act that the state does not allow does nothing. */
    const act = async (what: string, facts: { amount?: number; as?: 'never_happened' } = {}) => {
      done.push(`${what} ${Object.values(facts)}`);
      // An act whose outcome is unknown is sent again, and done once.
      const once = what === 'claw_back' ? { operation_id: `${what}-${id}` } : {};
      const request = { what, ...facts, operator: 'ana', reason: 'The bank says so.', ...once };
      let refusals = 0;
      let cause: unknown;
      const acted = async () => {
        try {
          await tools.act(resource, id, request);
          return true;
        } catch (error) {
          if (!(error instanceof ServiceError)) throw error;
          cause = error;
          // The workflow may know a moment later than the document what has happened.
          refusals += error.code === 'wrong_state' ? 1 : 0;
          return refusals === REFUSALS_MAX;
        }
      };
      await eventually(`${what} of ${resource} ${id}`, acted, waitMs).catch((error) => {
        throw new Error(String(error), { cause });
      });
    };
    const holds = async (): Promise<void> => {
      const isHeld = async () =>
        (await stores.movements.forResource(id)).some(({ state }) => state === 'suspense');
      await eventually(`money of ${id} in suspense`, isHeld, waitMs);
    };
    /** Sends evidence until it is accepted, or refused. */
    const answer = async (name: string): Promise<void> => {
      const path = `/v1/disputes/${disputeId(id, name)}/evidence`;
      const body = { explanation: 'The parcel arrived.' };
      await client.persevere(`evidence of ${path}`, async () => {
        const sent = await client.attempt({ method: 'POST', path, body });
        return sent?.status === 404 ? undefined : sent;
      });
    };
    const refund = async (part: number): Promise<void> => {
      const refund_id = await create('/v1/refunds', { payment_id: id, amount: part });
      if (refund_id !== undefined) await live('refund', refund_id, part, REFUND_ENDS);
    };
    await random.pick(lives)({ random, amount, report, reaches, act, holds, answer, refund });
  };

  if (random.chance(0.3)) {
    const recipient = await client.post('/v1/payout-recipients', RECIPIENT, 'recipient');
    const recipient_id = recipient.body.id;
    const money = { recipient_id, currency: 'EUR', method: 'sepa_instant' };
    const amount = random.integer(2, PAYOUT_MAX);
    const metadata = { balance_account: 'main' };
    const id = await create('/v1/payouts', { ...money, amount, metadata });
    if (id !== undefined) await live('payout', id, amount, PAYOUT_ENDS);
  } else {
    const amount = random.integer(1_000, PAYMENT_MAX);
    const id = await create('/v1/payments', idealPayment({ amount }));
    if (id === undefined) throw new Error('The payment was refused.');
    await live('payment', id, amount, PAYMENT_ENDS);
  }
  return done;
}

const PAYMENT_MAX = 50_000;
const PAYOUT_MAX = 2_000;
const OTHER = { isOther: true };
const USD = { currency: 'USD' };

interface Story {
  random: Random;
  amount: number;
  report: (name: BankDecision['name'], amount?: number, facts?: ReportFacts) => Promise<void>;
  reaches: (...states: string[]) => Promise<void>;
  act: (what: string, facts?: { amount?: number; as?: 'never_happened' }) => Promise<void>;
  holds: () => Promise<void>;
  answer: (dispute: string) => Promise<void>;
  refund: (part: number) => Promise<void>;
}
type Course = (story: Story) => Promise<void>;

const drawOther = ({ random, amount }: Story) => random.integer(1, 2 * amount);

const settleWithRefunds: Course = async ({ random, amount, report, reaches, refund }) => {
  await report('settled');
  for (const late of ['authorized', 'expired'] as const) {
    if (random.chance(0.3)) await report(late);
  }
  await reaches('settled');
  for (let left = amount; left > 1 && random.chance(0.6); ) {
    const part = random.integer(1, left);
    await refund(part);
    left -= part;
  }
};

const comeLate: Course = async (story) => {
  const { random, amount, report, reaches } = story;
  await report('failed');
  await reaches('failed');
  const came = random.chance(0.5) ? amount : drawOther(story);
  await report('settled', came, { isOther: random.chance(0.5) });
  await report('reversed', came, OTHER);
};

/** Disputes in parts; each is won, lost or left open, and perhaps reported in the wrong order. */
const dispute: Course = async ({ random, amount, report, reaches, answer }) => {
  await report('settled');
  await reaches('settled');
  for (let left = amount, n = 1; left > 1 && (n === 1 || random.chance(0.4)); n += 1) {
    const part = random.integer(1, left);
    const opened = { dispute_id: `dispute_${n}`, fee: random.pick([0, 1_500]) };
    const lost = () => report('dispute_lost', part, { isOther: true, dispute: opened });
    if (random.chance(0.2)) await lost();
    await report('dispute_opened', part, { isOther: true, dispute: opened });
    left -= part;
    if (random.chance(0.5)) await answer(opened.dispute_id);
    if (random.chance(0.4)) {
      const won = { ...opened, fee: random.pick([0, opened.fee]) };
      await report('dispute_won', part, { isOther: true, dispute: won });
    } else if (random.chance(0.5)) await lost();
  }
};

const cancelSent = (name: 'clawed_back' | 'failed'): Course => {
  return async ({ random, amount, report, reaches, act }) => {
    await report('settled');
    await reaches('settled');
    const isPart = name === 'clawed_back' && random.chance(0.5);
    const back = isPart ? random.integer(1, amount) : amount;
    await report(name, back, OTHER);
    await act('claw_back', { amount: back });
  };
};

const UNAUTHORIZED_ENDS: Course[] = [
  ...Array<Course>(4).fill(settleWithRefunds),
  ...[comeLate, comeLate, dispute, dispute, dispute],
  ...[cancelSent('clawed_back'), cancelSent('failed')],
  ({ report }) => report('failed'),
  (story) => story.report('settled', drawOther(story), USD),
  async (story) => {
    const { random, amount, report, reaches, act } = story;
    const other = drawOther(story);
    await report('settled', other);
    if (other === amount || random.chance(0.5)) return;
    await reaches();
    await act('mark_settled');
  },
  async ({ amount, report }) => {
    await report('settled');
    await report('settled', amount, OTHER);
  },
];
const PAYMENT_ENDS: Course[] = UNAUTHORIZED_ENDS.map((end) => async (story) => {
  if (story.random.chance(0.5)) await story.report('authorized');
  await end(story);
});

const REFUND_ENDS: Course[] = [
  ({ report }) => report('settled'),
  ({ report }) => report('failed'),
  async ({ report, reaches }) => {
    await report('failed');
    await reaches('failed');
    await report('settled');
  },
  async ({ random, amount, report, reaches, act }) => {
    const sent = random.integer(1, amount);
    await report('settled', sent);
    if (sent === amount) return;
    await reaches();
    await act('mark_settled', { amount: sent });
  },
  async ({ random, amount, report, reaches, act }) => {
    await report('settled', amount + random.integer(1, amount));
    await reaches();
    await act('mark_settled');
  },
  async ({ amount, report, reaches }) => {
    await report('settled', amount, USD);
    await reaches();
    // The bank reverses what it sent.
    await report('failed', amount, USD);
  },
  async ({ amount, report, reaches }) => {
    await report('settled');
    await reaches('settled');
    await report('settled', amount, OTHER);
  },
];

const completeThen = (end: Course): Course => {
  return async (story) => {
    const { random, report, reaches } = story;
    await report('completed');
    if (random.chance(0.3)) await report('sent');
    await reaches('completed');
    await end(story);
  };
};

const SENT_ENDS: Course[] = [
  ({ report }) => report('failed'),
  async ({ random, report, reaches }) => {
    await report('failed');
    await reaches('failed');
    await report('completed');
    if (random.chance(0.5)) await report('failed');
  },
  async ({ amount, report, holds, act }) => {
    // It was sent, which is all that moves money: another amount is a wrong report.
    await report('completed', amount - 1);
    await holds();
    await act('mark_completed');
    await act('resolve_movement', { as: 'never_happened' });
  },
  completeThen(async () => {}),
  completeThen(({ report }) => report('returned')),
  completeThen(async ({ random, amount, report, reaches, act }) => {
    const back = random.integer(1, amount - 1);
    await report('returned', back);
    await reaches('returned');
    await act('mark_returned', { amount: back });
  }),
  completeThen(({ amount, report }) => report('completed', amount, OTHER)),
  completeThen(async ({ report, reaches, act }) => {
    await report('failed');
    await reaches('failed');
    await act('mark_returned');
  }),
];
const PAYOUT_ENDS: Course[] = SENT_ENDS.map((end) => async (story) => {
  await story.reaches('sent');
  await end(story);
});

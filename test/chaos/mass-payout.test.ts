import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { passOn, startProxy } from '../../connectors/conformance/proxy';
import { example } from '../../connectors/example/example';
import { startFakeBank } from '../../connectors/example/fake-bank';
import { startConnector } from '../../connectors/kit/connector';
import { ServiceError } from '../../src/domain/errors';
import { actOn } from '../../src/service/operators/act';
import type { PayoutDocument } from '../../src/store/payouts';
import { useShop } from '../api/payout-setting';
import { connectConnector } from '../connectors/process';
import { eventually } from '../support/eventually';
import { useFixture } from '../support/fixture';
import { gate } from '../support/gate';
import { idealPayment } from '../support/http';
import { useService } from '../support/service';

/**
 * Many payouts at once at a bank that is slow. What waits for the bank waits in Temporal, where no
 * time of an attempt passes: attempts that time out in a queue would ask the bank again and again.
 * `MASS_PAYOUT=1000` takes about four minutes.
 */
const PAYOUTS = Number(process.env['MASS_PAYOUT'] ?? 60);
const LATENCY_MS = 1_000;
/** Until all payouts are created, so that most of them wait on a slow machine, too. */
const LATENCY_OF_CREATES_MS = process.env['MASS_PAYOUT'] === undefined ? 6_000 : LATENCY_MS;
/** As many calls a second as the bank's latency allows, and one for questions. */
const LIMITS = { perSecond: 10, atOnce: 11 };
/** A look-up, then the instruction. */
const BANK_MS = (PAYOUTS * 2 * 1_000) / LIMITS.perSecond;
/** Payouts that are created at once, as a merchant's client does it. */
const CREATES = 40;

const SECRET = 'secret-of-the-example-bank';
const prefix = `mass-${randomUUID().slice(0, 8)}`;
// A product of its own: its transfers go to the example, its payments to the sandbox bank.
const service = useService({
  live: { connectors: '', prefix },
  tests: 'example=sepa_credit_transfer',
});
const shop = useShop(service);
const other = useShop(service);

const world = useFixture(
  async () => {
    const bank = await startFakeBank(SECRET);
    const slow = await startSlowProxy(bank.url);
    const { config, own } = await connectConnector('example', {
      ...{ database: service.database, prefix, keysDir: service.keysDir },
      settings: { EXAMPLE_API_URL: slow.url, EXAMPLE_KEY_FILE: SECRET },
    });
    const definition = { ...example, limits: LIMITS, poll: undefined };
    const connector = await startConnector(definition, config, own);
    connector.finished.catch(() => undefined);
    const stop = async () => {
      await connector.stop();
      await own.close();
      await slow.stop();
      await bank.stop();
    };
    return { bank, slow, stop };
  },
  ({ stop }) => stop(),
);

/** Holds a call before it reaches the bank. */
type Wait = (path: string) => Promise<unknown>;

/** Passes each call on to the bank when it has waited, and counts it. */
async function startSlowProxy(target: string) {
  let calls = 0;
  let ended = 0;
  let wait: Wait = () => sleep(LATENCY_MS);
  const { url, stop } = await startProxy(0, async (request) => {
    calls += 1;
    await wait(request.path);
    const answer = await passOn(target, request);
    ended += 1;
    return answer;
  });
  return {
    ...{ url, stop },
    count: () => calls,
    countEnded: () => ended,
    setWait: (next: Wait) => {
      wait = next;
    },
  };
}

/** Opens payments of another merchant one after the other. @returns ms of each, until `signal` */
async function openSessions(signal: AbortSignal): Promise<number[]> {
  const other = await service.account();
  const times: number[] = [];
  while (!signal.aborted) {
    const began = performance.now();
    const { status } = await other.post('/v1/payments', idealPayment());
    expect(status).toBe(201);
    times.push(performance.now() - began);
    await sleep(100);
  }
  return times;
}

/** Pays; what a busy machine refuses with 503 moves nothing, and is paid again. */
async function pay(merchant: typeof shop): Promise<void> {
  const recipient_id = merchant.recipients.sepa_credit_transfer;
  await eventually('a payout to be accepted', async () => {
    const facts = { recipient_id, method: 'sepa_credit_transfer', amount: 100 };
    const { status } = await merchant.pay(facts);
    if (status !== 503) expect(status).toBe(201);
    return status === 201;
  });
}

const payouts = () => service.collection<PayoutDocument>('payouts');

async function findNewest(account_id: string): Promise<string> {
  return (await payouts().findOne({ account_id }, { sort: { position: -1 } }))?._id ?? '';
}

/** Asks the bank about a payout that waits. @returns its status, or why it was refused */
async function markFailed(id: string): Promise<string> {
  const { stores, temporal, queues } = service;
  const deps = { stores, temporal, lifecycleQueue: queues.lifecycle, timeoutMs: 60_000 };
  const act = { what: 'mark_failed', operator: 'mia', reason: 'Ticket 42' };
  try {
    await actOn(deps, 'payout', id, act);
    return 'failed';
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    expect(error.code).toBe('wrong_state');
    return error.message;
  }
}

test('a slow bank is asked twice about each of many payouts, while others open sessions and an operator asks', async () => {
  world.slow.setWait(() => sleep(LATENCY_OF_CREATES_MS));
  const over = new AbortController();
  const sessions = openSessions(over.signal);
  const began = performance.now();
  let left = PAYOUTS;
  const create = async (): Promise<void> => {
    while (left-- > 0) await pay(shop);
  };
  const creating = Promise.all(Array.from({ length: CREATES }, create));
  const { account_id } = shop;
  const areMade = async () => (await payouts().countDocuments({ account_id })) === PAYOUTS;
  await eventually('all payouts', areMade, 30_000 + PAYOUTS * 100);
  world.slow.setWait(() => sleep(LATENCY_MS));
  const newest = await findNewest(account_id);
  const sentAt = performance.now();
  const answer = await markFailed(newest);
  const answer_ms = performance.now() - sentAt;
  // It is answered before most of them are sent.
  expect(world.bank.transfers.size).toBeLessThan(0.75 * PAYOUTS);
  const sent = answer === 'failed' ? PAYOUTS - 1 : PAYOUTS;
  const isSent = async () => world.bank.transfers.size === sent;
  await eventually('all payouts to be at the bank', isSent, 4 * BANK_MS + 30_000);
  const took_ms = performance.now() - began;
  await creating;
  const submitted = { account_id, status: 'submitted' } as const;
  const areSubmitted = async () => (await payouts().countDocuments(submitted)) === sent;
  await eventually('all payouts to be submitted', areSubmitted);
  over.abort();
  const times = (await sessions).sort((a, b) => a - b);
  const calls = world.slow.count();
  if (process.env['MASS_PAYOUT'] !== undefined) {
    const p95_ms = times[Math.floor(times.length * 0.95)];
    console.info({ PAYOUTS, calls, took_ms, BANK_MS, sessions: times.length, p95_ms });
    console.info({ answer, answer_ms });
    expect(answer_ms).toBeLessThan(4_000);
    expect(took_ms).toBeLessThan(1.2 * BANK_MS);
  }
  expect(calls / PAYOUTS).toBeLessThanOrEqual(2.1);
  expect(world.bank.posted).toHaveLength(sent);
}, 1_200_000);

const QUESTION_MS = process.env['MASS_PAYOUT'] === undefined ? 500 : 3_000;

test('an operator is answered while every other call of the bank hangs', async () => {
  const { slow } = world;
  const { account_id } = other;
  const answered = gate();
  slow.setWait(() => answered.opened);
  const earlier = slow.count() - slow.countEnded();
  const paying = Promise.all(Array.from({ length: 40 }, () => pay(other)));
  await eventually('all payouts to wait', async () => {
    const created = await payouts().countDocuments({ account_id, status: 'created' });
    return created === 40 && slow.count() - slow.countEnded() - earlier >= LIMITS.atOnce - 1;
  });
  const id = await findNewest(account_id);
  slow.setWait((path) => (path.includes(id) ? sleep(QUESTION_MS) : answered.opened));
  const ended = slow.countEnded();
  const began = performance.now();
  expect(await markFailed(id)).toBe('failed');
  const answer_ms = performance.now() - began;
  expect(slow.countEnded() - ended).toBe(1);
  if (process.env['MASS_PAYOUT'] !== undefined) {
    console.info({ answer_ms });
    expect(answer_ms).toBeLessThan(4_000);
  }
  answered.release();
  await paying;
}, 120_000);

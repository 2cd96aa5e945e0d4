import type { PartName } from '../../stack/data-dir';
import { eventually } from '../support/eventually';
import { useFixture } from '../support/fixture';
import { gate } from '../support/gate';
import { openInbox } from '../support/hook';
import { type Answer, idealPayment } from '../support/http';
import { noteForFailure } from '../support/test-log';
import {
  findDifferences,
  listAll,
  type RaceOptions,
  RECIPIENT,
  raceWithKills,
  readBalance,
  readResult,
  useMerchant,
} from './race';
import { reconcile } from './reconcile';
import { RECOVERY_MS_MAX } from './running-stack';
import { startWebhookReceiver } from './webhook-receiver';

/**
 * Refunds race each other for what remains of a payment (docs/api.md#refunds), payouts for a balance.
 * Each is sent twice, and the worker is killed while they do. What could not be accepted in time was
 * refused for good; the client, who can't know, asks again with the same key.
 */
const FUNDS = 1_000_000;
const REQUESTS = 200;
/** Twice the funds on average, so that about half must be refused; no magic amount is reached. */
const AMOUNT_MAX = (4 * FUNDS) / REQUESTS;
const FEE = 25;
/** Payouts at once: of more, a slow machine accepts none within the five seconds that each has. */
const AT_ONCE = 50;
const ENDED_MS_MAX = 120_000;

jest.setTimeout(900_000);

const merchant = useMerchant('Races', { autoplay: 'on' });
/** Movements that the bank has made. */
let moved = 0;

interface Requested {
  key: string;
  amount: number;
}

interface Race extends RaceOptions {
  path: string;
  fee: number;
  refusal: string;
  /** Sends all requests and their repeats, in this order. */
  send: (requested: readonly Requested[]) => Promise<Answer>[];
}

/** Holds that what was accepted fits, once each, and that what was refused did not. */
async function race({ path, fee, refusal, send, ...options }: Race): Promise<number> {
  const { stack, client } = merchant;
  const requested = Array.from({ length: REQUESTS }, (_, index) => ({
    key: `${refusal}-${index}`,
    amount: 1 + Math.floor(Math.random() * AMOUNT_MAX),
  }));
  const count = async () => (await listAll(client, path)).length;
  const calls = send([...requested, ...requested]);
  const { answers, kills } = await raceWithKills(stack, calls, count, options);
  expect(kills).toBeGreaterThanOrEqual(2);

  const accepted = new Map<string, number>();
  for (const [index, { amount }] of requested.entries()) {
    const [one, again] = [answers[index], answers[index + REQUESTS]];
    expect(readResult(again)).toBe(readResult(one));
    if (readResult(one) === refusal) continue;
    expect(one?.body.amount).toBe(amount);
    accepted.set(one?.body.id, amount);
  }
  const taken = [...accepted.values()].reduce((sum, amount) => sum + amount + fee, 0);
  expect(taken).toBeLessThanOrEqual(FUNDS);
  // Whatever was refused was more than remained in the end, too.
  const refused = requested.filter((_, index) => answers[index]?.status === 422);
  expect(refused.length).toBeGreaterThan(0);
  for (const { amount } of refused) expect(amount + fee).toBeGreaterThan(FUNDS - taken);
  const rows = await listAll(client, path);
  expect(new Map(rows.map(({ id, amount }) => [id, amount]))).toEqual(accepted);
  moved += accepted.size;
  const { sent, retries } = client.counts;
  noteForFailure(
    `${accepted.size} of ${REQUESTS} fitted, ${refused.length} were refused; ` +
      `${kills} kills, ${sent} requests, ${retries} retries.`,
  );
  return taken;
}

async function untilAll(path: string, wanted: string): Promise<void> {
  const isEnded = async () =>
    (await listAll(merchant.client, path)).every(({ status }) => status === wanted);
  await eventually(`all of ${path} to be ${wanted}`, isEnded, ENDED_MS_MAX);
}

test('200 refunds, each sent twice, a third at once, through kills, never exceed their payment', async () => {
  const { stack, account, client } = merchant;
  const funds = await readBalance(stack, account, 'main');
  const payment_id = await settledPayment();
  const path = `/v1/payments/${payment_id}/refunds`;
  const refund = (key: string, body: object) =>
    client.post('/v1/refunds', { payment_id, ...body }, key);
  // Each kill lets the next third go, so that a fast machine has not done all before the second.
  const thirds = [gate(), gate(), gate()];
  let begun = 0;
  const goOn = () => thirds[begun++]?.release();
  goOn();
  const send = (requested: readonly Requested[]) =>
    requested.map(async ({ key, amount }, index) => {
      await thirds[Math.floor(((index % REQUESTS) * thirds.length) / REQUESTS)]?.opened;
      return await refund(key, { amount });
    });
  const refusal = 'refund_amount_exceeds_balance';
  const sum = await race({ path, fee: 0, refusal, send, onKill: goOn });
  if (sum < FUNDS) {
    expect((await refund('the-rest', {})).body.amount).toBe(FUNDS - sum);
    moved += 1;
  }
  expect(readResult(await refund('one-more', { amount: 1 }))).toBe(refusal);
  await untilAll(path, 'settled');
  expect(await readBalance(stack, account, 'main')).toEqual(funds);
});

async function settledPayment(): Promise<string> {
  const { client } = merchant;
  const made = await client.post('/v1/payments', idealPayment({ amount: FUNDS }), 'payment');
  const { id } = made.body;
  const path = `/v1/sandbox/payments/${id}/simulate`;
  const isSettled = async () =>
    (await client.post(path, { event: 'settled' })).body.status === 'settled';
  await eventually('the payment to settle', isSettled);
  moved += 1;
  return id;
}

const recipient = useFixture(async () => {
  const { stack, account, client } = merchant;
  const fund = ['--balance-account', 'race', '--currency', 'EUR', '--amount', String(FUNDS)];
  const [{ body }] = await Promise.all([
    client.post('/v1/payout-recipients', RECIPIENT, 'recipient'),
    stack.cli('balance', 'fund', account, '--env', 'sandbox', ...fund),
    stack.cli('account', 'update', account, '--payout-fee', `sepa_instant=${FEE}`),
  ]);
  return { id: String(body.id) };
});

test('200 payouts, each sent twice, fifty at once, through kills, never overdraw the balance', async () => {
  const money = { recipient_id: recipient.id, currency: 'EUR', method: 'sepa_instant' };
  const pay = ({ key, amount }: Requested) => {
    const body = { ...money, amount, metadata: { balance_account: 'race' } };
    return merchant.client.post('/v1/payouts', body, key);
  };
  /** Sends each payout and its repeat at once, group by group. */
  const send = (requested: readonly Requested[]) => {
    const sent: Promise<Answer>[] = [];
    for (let start = 0; start < REQUESTS; start += AT_ONCE) {
      const before = Promise.allSettled(sent.flat());
      for (const [index, each] of requested.entries()) {
        const place = (index % REQUESTS) - start;
        if (place >= 0 && place < AT_ONCE) sent[index] = before.then(() => pay(each));
      }
    }
    return sent;
  };
  const refusal = 'insufficient_balance';
  const drawn = await race({ path: '/v1/payouts', fee: FEE, refusal, send });
  await untilAll('/v1/payouts', 'completed');
  const left = { available: FUNDS - drawn, reserved: 0 };
  expect(await readBalance(merchant.stack, merchant.account, 'race')).toEqual(left);
});

/** Killed at once, each somewhere else in the advance, which goes on while they are away. */
const CLOCK_KILLS: readonly (readonly PartName[])[] = [
  ...([['worker'], ['api', 'worker'], ['sandbox_bank']] as const),
  ...([['worker', 'api'], ['temporal'], ['worker'], ['mongodb']] as const),
];
/** Few: each attempt of each webhook is a stop of the clock, and there are more stops than kills. */
const VOUCHERS = 3;
const PAYOUTS = 3;
const ATTEMPTS = 12;
const DAYS = 10;
const DAY_MS = 86_400_000;
const KILLS_MIN = 6;
const ADVANCE_MS_MAX = 300_000;

const PAYOUT_EVENTS = ['payout.completed', 'payout.sent', 'payout.submitted'];

const receiver = useFixture(startWebhookReceiver, (started) => started.close());
/** An endpoint that always fails. */
const failing = useFixture(openInbox, (opened) => opened.close());
const clockMerchant = useFixture(() => merchant.openOther('Clock'));

const read = async (path: string) => (await clockMerchant.client.get(path)).body;
const readClock = () => read('/v1/sandbox/clock');

/** Creates payouts that complete, and vouchers that expire, by the merchant's clock. */
async function createResources() {
  const { client } = clockMerchant;
  const create = async (path: string, body: object, idempotencyKey: string): Promise<string> => {
    const answer = await client.post(path, body, idempotencyKey);
    if (answer.status !== 201) throw new Error(answer.text);
    return answer.body.id;
  };
  const createAll = (count: number, path: string, build: (n: number) => object) =>
    Promise.all(Array.from({ length: count }, (_, n) => create(path, build(n), `clock-${n}`)));
  failing.answer.status = 500;
  const endpoint = { url: failing.url, enabled_events: ['payout.completed'] };
  await create('/v1/webhook-endpoints', endpoint, 'hook');
  const recipient_id = await create('/v1/payout-recipients', RECIPIENT, 'recipient');
  const money = { recipient_id, method: 'sepa_instant', currency: 'EUR' };
  const customer = { email: 'payer@example.com' };
  const voucher = idealPayment({ method: 'multibanco', country: 'PT', customer });
  return {
    payouts: await createAll(PAYOUTS, '/v1/payouts', (n) => ({ ...money, amount: 1_000 + n })),
    vouchers: await createAll(VOUCHERS, '/v1/payments', (n) => ({
      ...{ ...voucher, reference: `order-${n}` },
    })),
  };
}

test('an advance of the sandbox clock continues through kills and does nothing twice', async () => {
  const { stack } = merchant;
  const { client, account } = clockMerchant;
  await receiver.register(stack, account);
  const { payouts, vouchers } = await createResources();
  const { target } = (await client.post('/v1/sandbox/clock', { advance: `P${DAYS}D` })).body;
  const kills = await killAll();
  expect(kills).toBeGreaterThanOrEqual(KILLS_MIN);
  const hasReached = async () => (await readClock()).state === 'standing';
  await eventually('the clock to reach its target', hasReached, ADVANCE_MS_MAX);
  expect((await readClock()).now >= target).toBe(true);

  const sent = new Set<string>();
  const expectEvents = async (resource_id: string, types: string[]): Promise<string> => {
    const { data, has_more } = await read(`/v1/events?limit=100&resource_id=${resource_id}`);
    expect(has_more).toBe(false);
    expect(data.map(({ type }: { type: string }) => type)).toEqual(types);
    for (const { id } of data) sent.add(id);
    return data[0].id;
  };
  for (const id of vouchers) {
    const isExpired = async () => (await read(`/v1/payments/${id}`)).status === 'expired';
    await eventually('a voucher to expire', isExpired);
    await expectEvents(id, ['payment.expired', 'payment.awaiting_customer']);
  }
  for (const id of payouts) await expectExhausted(await expectEvents(id, PAYOUT_EVENTS));
  await eventually('each event', async () => [...sent].every((id) => receiver.received.has(id)));
  expect(new Set(receiver.received.keys())).toEqual(sent);
  expect(receiver.faults).toEqual([]);
  // An attempt whose process was killed before it was stored is made once more.
  for (const { times } of receiver.received.values()) expect(times).toBeLessThanOrEqual(1 + kills);
  const posts = new Map<string, number>();
  for (const { body } of failing.received) posts.set(body, (posts.get(body) ?? 0) + 1);
  expect(posts.size).toBe(PAYOUTS);
  for (const times of posts.values()) {
    expect(times).toBeGreaterThanOrEqual(ATTEMPTS);
    expect(times).toBeLessThanOrEqual(ATTEMPTS + kills);
  }
  moved += PAYOUTS;
  const { left, workflows } = (await stack.cli('reconcile')).data;
  expect({ left, checked: workflows >= moved + VOUCHERS }).toEqual({ left: 0, checked: true });
  const count = failing.received.length;
  noteForFailure(`${kills} kills; ${count} posts of ${PAYOUTS * ATTEMPTS} attempts.`);
});

/** Kills when the clock has gone on since the last time, until it stands still. @returns parts killed */
async function killAll(): Promise<number> {
  let before = 0;
  let kills = 0;
  for (const parts of CLOCK_KILLS) {
    const readNext = async () => {
      const clock = await readClock();
      return (clock.state === 'standing' || clock.offset_seconds > before) && clock;
    };
    const { state, offset_seconds } = await eventually('a further stop', readNext, ADVANCE_MS_MAX);
    if (state === 'standing') return kills;
    before = offset_seconds;
    const restarts = parts.map((part) => ({ part, isBack: merchant.stack.kill(part) }));
    kills += parts.length;
    for (const { part, isBack } of restarts) {
      await eventually(`a new ${part}`, isBack, RECOVERY_MS_MAX);
    }
  }
  return kills;
}

/** Waits for the end of the delivery to the endpoint that fails, and compares its attempts. */
async function expectExhausted(event: string): Promise<void> {
  type Delivery = { status: string; attempts: number; log: { at: string }[] };
  const readDelivery = async (): Promise<Delivery | undefined> =>
    (await read(`/v1/events/${event}`)).deliveries.find(
      ({ status }: Delivery) => status === 'exhausted',
    );
  const { attempts, log } = await eventually('the last attempt', readDelivery, ADVANCE_MS_MAX);
  expect({ attempts, stored: log.length }).toEqual({ attempts: ATTEMPTS, stored: ATTEMPTS });
  const at = (n: number) => Date.parse(log.at(n)?.at ?? '') / DAY_MS;
  expect(at(-1) - at(0)).toBeGreaterThan(0.9);
  // The clock waits 20 s for a worker that is away; after the last attempts it goes on by days.
  expect(at(-2) - at(0)).toBeLessThan(1);
}

test('the ledger has each movement that the bank has made', async () => {
  expect(await findDifferences(merchant.stack)).toEqual([]);
  expect(await reconcile(merchant.stack)).toBe(moved);
});

import type { PartName } from '../../stack/data-dir';
import { useFixture } from '../support/fixture';
import { openInbox } from '../support/hook';
import { eventually, idealPayment } from '../support/http';
import { noteForFailure } from '../support/quiet';
import { findDifferences, RECIPIENT, useMerchant } from './race';
import { reconcile } from './reconcile';
import { RECOVERY_MS_MAX } from './running-stack';
import { startWebhookReceiver } from './webhook-receiver';

/** Killed at once, each somewhere else in the advance, which goes on while they are away. */
const KILLS: readonly (readonly PartName[])[] = [
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

const VOUCHER = idealPayment({
  ...{ method: 'multibanco', country: 'PT' },
  customer: { email: 'payer@example.com' },
});

jest.setTimeout(900_000);

const merchant = useMerchant('Clock', { autoplay: 'on' });
const receiver = useFixture(startWebhookReceiver, (started) => started.close());
/** An endpoint that always fails. */
const failing = useFixture(openInbox, (opened) => opened.close());

async function read(path: string) {
  return (await merchant.client.get(path)).body;
}
const readClock = () => read('/v1/sandbox/clock');

/** Creates payouts that complete, and vouchers that expire, by the merchant's clock. */
async function createResources() {
  const { client } = merchant;
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
  return {
    payouts: await createAll(PAYOUTS, '/v1/payouts', (n) => ({ ...money, amount: 1_000 + n })),
    vouchers: await createAll(VOUCHERS, '/v1/payments', (n) => ({
      ...{ ...VOUCHER, reference: `order-${n}` },
    })),
  };
}

test('continues an advance of the sandbox clock through kills and does nothing twice', async () => {
  const { stack, client, account } = merchant;
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
  expect(await findDifferences(stack)).toEqual([]);
  const { left, workflows } = (await stack.cli('reconcile')).data;
  expect({ left, checked: workflows >= VOUCHERS + PAYOUTS }).toEqual({ left: 0, checked: true });
  expect(await reconcile(stack)).toBe(PAYOUTS);
  const count = failing.received.length;
  noteForFailure(`${kills} kills; ${count} posts of ${PAYOUTS * ATTEMPTS} attempts.`);
});

/** Kills when the clock has gone on since the last time, until it stands still. @returns parts killed */
async function killAll(): Promise<number> {
  let before = 0;
  let kills = 0;
  for (const parts of KILLS) {
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

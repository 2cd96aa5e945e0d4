import { z } from 'zod';
import type { PartName } from '../../stack/state-file';
import { useFixture } from '../support/fixture';
import { eventually, idealPayment } from '../support/http';
import { receiveHttp } from '../webhooks/receiver';
import { allReady } from './nemesis';
import { createPatientClient, type PatientClient } from './patient-client';
import { differences, openAccount } from './race';
import { reconcile } from './reconcile';
import { startStack } from './running-stack';
import { startWebhookReceiver } from './webhook-receiver';

/** Each is killed somewhere else in the advance, which goes on while it is away. */
const KILLS: readonly PartName[] = [
  ...(['worker', 'api', 'worker', 'sandbox_bank'] as const),
  ...(['worker', 'api', 'temporal', 'worker', 'mongodb'] as const),
];
const VOUCHERS = 8;
const PAYOUTS = 8;
const ATTEMPTS = 12;
const DAYS = 10;
const DAY_MS = 86_400_000;
const KILLS_MIN = 6;
const RECOVERY_MS_MAX = 90_000;
const ADVANCE_MS_MAX = 300_000;

const Clock = z.object({
  offset_seconds: z.number(),
  now: z.string(),
  state: z.enum(['standing', 'advancing']),
  target: z.string().nullable(),
});
const Row = z.object({ id: z.string() });
const Status = z.object({ status: z.string() });
const Endpoint = z.object({ signing_secret: z.string() });
const Events = z.object({
  data: z.array(z.object({ id: z.string(), type: z.string() })),
  has_more: z.literal(false),
});
const EventWithLog = z.object({
  deliveries: z.array(
    z.object({
      endpoint_id: z.string(),
      status: z.string(),
      attempts: z.number(),
      log: z.array(z.object({ at: z.string() })),
    }),
  ),
});
const Differences = z.object({ data: z.object({ left: z.number(), workflows: z.number() }) });

const PAYOUT_EVENTS = ['payout.completed', 'payout.sent', 'payout.submitted'];

const RECIPIENT = {
  ...{ type: 'bank_account', first_name: 'Jan', last_name: 'Jansen', iban: 'NL91ABNA0417164300' },
  ...{ address_line1: 'Damrak 1', city: 'Amsterdam', postal_code: '1012 LG' },
};
const VOUCHER = idealPayment({
  ...{ method: 'multibanco', country: 'PT' },
  customer: { email: 'payer@example.com' },
});

jest.setTimeout(900_000);

const over = new AbortController();
afterAll(() => over.abort());

const stack = useFixture(
  () => startStack({ autoplay: 'on' }),
  (started) => started.destroy(),
);
const receiver = useFixture(startWebhookReceiver, (started) => started.close());
/** Posts of an endpoint that always fails, by the body. */
const failing = useFixture(
  async () => {
    const posts = new Map<string, number>();
    const { url, close } = await receiveHttp(async (request, response) => {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(Buffer.from(chunk));
      const body = Buffer.concat(chunks).toString();
      posts.set(body, (posts.get(body) ?? 0) + 1);
      response.writeHead(500).end();
    });
    return { url, posts, close };
  },
  (opened) => opened.close(),
);

/** An account with payouts that complete, and vouchers that expire, by its clock. */
async function openMerchant() {
  const { account, key } = await openAccount(stack, 'Clock');
  const endpoint = ['webhook', 'set', account, '--env', 'sandbox', '--url', receiver.url];
  receiver.setSecret(Endpoint.parse(await stack.cli(...endpoint)).signing_secret);
  const client = createPatientClient(stack.url, key, over.signal);
  const post = async (path: string, body: object, idempotencyKey: string) => {
    const answer = await client.insist({ method: 'POST', path, body, idempotencyKey });
    if (answer.status !== 201) throw new Error(answer.text);
    return Row.parse(JSON.parse(answer.text));
  };
  const get = async (path: string): Promise<unknown> =>
    JSON.parse((await client.insist({ method: 'GET', path })).text);
  await post(
    '/v1/webhook-endpoints',
    { url: failing.url, enabled_events: ['payout.completed'] },
    'hook',
  );
  const { id: recipient_id } = await post('/v1/payout-recipients', RECIPIENT, 'recipient');
  const money = { recipient_id, method: 'sepa_instant', currency: 'EUR' };
  const payouts = await all(PAYOUTS, (n) =>
    post('/v1/payouts', { ...money, amount: 1_000 + n }, `payout-${n}`),
  );
  const vouchers = await all(VOUCHERS, (n) =>
    post('/v1/payments', { ...VOUCHER, reference: `order-${n}` }, `voucher-${n}`),
  );
  return { get, payouts, vouchers, advance: () => advance(client) };
}

test('continues an advance of the sandbox clock through kills and does nothing twice', async () => {
  const { get, payouts, vouchers, advance: begin } = await openMerchant();
  const readClock = async () => Clock.parse(await get('/v1/sandbox/clock'));
  const begun = await begin();
  const kills = await killAll(readClock);
  expect(kills).toBeGreaterThanOrEqual(KILLS_MIN);
  const hasReached = async () => (await readClock()).state === 'standing';
  await eventually('the clock to reach its target', hasReached, ADVANCE_MS_MAX);
  expect((await readClock()).now >= (begun.target ?? '')).toBe(true);

  const events = async ({ id }: { id: string }) =>
    Events.parse(await get(`/v1/events?limit=100&resource_id=${id}`)).data;
  const sent = new Set<string>();
  for (const voucher of vouchers) {
    const isExpired = async () =>
      Status.parse(await get(`/v1/payments/${voucher.id}`)).status === 'expired';
    await eventually('a voucher to expire', isExpired);
    const all = await events(voucher);
    expect(all.map(({ type }) => type)).toEqual(['payment.expired', 'payment.awaiting_customer']);
    for (const { id } of all) sent.add(id);
  }
  for (const payout of payouts) {
    const all = await events(payout);
    expect(all.map(({ type }) => type)).toEqual(PAYOUT_EVENTS);
    for (const { id } of all) sent.add(id);
    await exhausted(get, all[0]?.id ?? '');
  }
  await eventually('each event', async () => [...sent].every((id) => receiver.received.has(id)));
  expect(new Set(receiver.received.keys())).toEqual(sent);
  expect(receiver.faults).toEqual([]);
  // An attempt whose process was killed before it was stored is made once more.
  for (const { times } of receiver.received.values()) expect(times).toBeLessThanOrEqual(1 + kills);
  expect(failing.posts.size).toBe(PAYOUTS);
  for (const times of failing.posts.values()) {
    expect(times).toBeGreaterThanOrEqual(ATTEMPTS);
    expect(times).toBeLessThanOrEqual(ATTEMPTS + kills);
  }
  expect(await differences(stack)).toEqual([]);
  const { left, workflows } = Differences.parse(await stack.cli('reconcile')).data;
  expect({ left, checked: workflows >= VOUCHERS + PAYOUTS }).toEqual({ left: 0, checked: true });
  expect(await reconcile(stack)).toBe(PAYOUTS);
  const posts = [...failing.posts.values()].reduce((sum, times) => sum + times, 0);
  const repeats = [...receiver.received.values()].reduce((sum, { times }) => sum + times - 1, 0);
  console.info(
    `${kills} kills; ${posts} posts of ${PAYOUTS * ATTEMPTS} attempts, ${repeats} repeated deliveries.`,
  );
});

async function advance(client: PatientClient) {
  const body = { advance: `P${DAYS}D` };
  const answer = await client.insist({ method: 'POST', path: '/v1/sandbox/clock', body });
  return Clock.parse(JSON.parse(answer.text));
}

/** Kills one part after the other, each when the clock has moved since, until it stands. */
async function killAll(readClock: () => Promise<z.infer<typeof Clock>>): Promise<number> {
  let before = 0;
  for (const [kills, part] of KILLS.entries()) {
    const moved = async () => {
      const clock = await readClock();
      return (clock.state === 'standing' || clock.offset_seconds > before) && clock;
    };
    const { state, offset_seconds } = await eventually('a further stop', moved, ADVANCE_MS_MAX);
    if (state === 'standing') return kills;
    before = offset_seconds;
    const victim = stack.state()?.[part]?.pid;
    if (victim == null) throw new Error(`${part} has no process to kill.`);
    process.kill(victim, 'SIGKILL');
    const isBack = async () => {
      const pid = stack.state()?.[part]?.pid;
      return pid != null && pid !== victim && (await allReady(stack));
    };
    await eventually(`a new ${part}`, isBack, RECOVERY_MS_MAX);
  }
  return KILLS.length;
}

/** Waits for the end of the delivery to the endpoint that fails, and looks at its attempts. */
async function exhausted(get: (path: string) => Promise<unknown>, id: string): Promise<void> {
  const read = async () =>
    EventWithLog.parse(await get(`/v1/events/${id}`)).deliveries.find(
      ({ status }) => status === 'exhausted',
    ) ?? false;
  const { attempts, log } = await eventually('the last attempt', read, ADVANCE_MS_MAX);
  expect({ attempts, stored: log.length }).toEqual({ attempts: ATTEMPTS, stored: ATTEMPTS });
  const at = (n: number) => Date.parse(log.at(n)?.at ?? '') / DAY_MS;
  expect(at(-1) - at(0)).toBeGreaterThan(0.9);
  // The clock waits 20 s for a worker that is away; after the last attempts it goes on by days.
  expect(at(-2) - at(0)).toBeLessThan(1);
}

function all<T>(count: number, make: (n: number) => Promise<T>): Promise<T[]> {
  return Promise.all(Array.from({ length: count }, (_, n) => make(n)));
}

import { z } from 'zod';
import { eventually } from '../support/http';
import { allReady } from './nemesis';
import { type Answer, createPatientClient, type PatientClient } from './patient-client';
import { type RunningStack, startStack } from './running-stack';

/**
 * Spec §4.3 rule 1, under everything at once: refunds of one payment race each other for what
 * remains, each is sent twice, and the worker is killed while they do.
 */
const PAYMENT = 1_000_000;
const REFUNDS = 200;
/** Twice the payment on average, so that about half must be refused; no magic amount is reached. */
const REFUND_MAX = 20_000;
const KILLS = 3;
const RECOVERY_MS_MAX = 90_000;
const SETTLED_MS_MAX = 120_000;

const Created = z.object({ account_id: z.string(), sandbox_key: z.string() });
const Payment = z.object({ id: z.string(), status: z.string() });
const Refund = z.object({ id: z.string(), amount: z.number(), status: z.string() });
const Page = z.object({ data: z.array(Refund), next_cursor: z.string().nullable() });
const Refused = z.object({ error: z.object({ code: z.string() }) });
const Verified = z.object({ data: z.object({ differences: z.array(z.unknown()) }) });
const Balances = z.object({
  data: z.array(
    z.object({ balance_account: z.string(), currency: z.string(), available: z.number() }),
  ),
});

const over = new AbortController();
let stack: RunningStack;
let client: PatientClient;
let account: string;
let funds: number;

beforeAll(async () => {
  stack = await startStack({ autoplay: 'on' });
  const made = Created.parse(await stack.cli('account', 'create', '--name', 'Refunds'));
  account = made.account_id;
  client = createPatientClient(stack.url, made.sandbox_key, over.signal);
  funds = await mainBalance();
}, 200_000);

afterAll(async () => {
  over.abort();
  await stack?.destroy();
}, 120_000);

test('200 refunds at once, each sent twice, never exceed the payment, whoever is killed', async () => {
  const payment = await settledPayment();
  const asked = Array.from({ length: REFUNDS }, (_, index) => ({
    key: `refund-${index}`,
    body: { payment_id: payment, amount: 1 + Math.floor(Math.random() * REFUND_MAX) },
  }));
  const twice = [...asked, ...asked].map(({ key, body }) => refund(key, body));
  let answered = false;
  const all = Promise.all(twice).finally(() => {
    answered = true;
  });
  const [answers, kills] = await Promise.all([all, killWorkers(payment, () => answered)]);
  expect(kills).toBeGreaterThanOrEqual(2);

  const accepted = new Map<string, number>();
  for (const [index, { body, key }] of asked.entries()) {
    const both = [answers[index], answers[index + REFUNDS]].map(told);
    expect(new Set(both).size).toBe(1);
    const [one] = both;
    if (one === 'refund_amount_exceeds_balance') continue;
    const { id, amount } = Refund.parse(JSON.parse(answers[index]?.text ?? ''));
    expect([key, amount]).toEqual([key, body.amount]);
    accepted.set(id, amount);
  }
  const sum = [...accepted.values()].reduce((total, amount) => total + amount, 0);
  expect(sum).toBeLessThanOrEqual(PAYMENT);
  // Whatever was refused was more than remained in the end, too.
  const refused = asked.filter((_, index) => answers[index]?.status === 422);
  expect(refused.length).toBeGreaterThan(0);
  for (const { body } of refused) expect(body.amount).toBeGreaterThan(PAYMENT - sum);
  expect(await listed(payment)).toEqual(new Map(accepted));

  if (sum < PAYMENT) {
    const rest = Refund.parse(JSON.parse((await refund('the-rest', { payment_id: payment })).text));
    expect(rest.amount).toBe(PAYMENT - sum);
    accepted.set(rest.id, rest.amount);
  }
  expect(told(await refund('one-more', { payment_id: payment, amount: 1 }))).toBe(
    'refund_amount_exceeds_balance',
  );
  await eventually('every refund to settle', () => allSettled(payment), SETTLED_MS_MAX);
  expect(Verified.parse(await stack.cli('ledger', 'verify')).data.differences).toEqual([]);
  expect(await mainBalance()).toBe(funds);
  console.info(
    `${accepted.size} refunds of ${REFUNDS} fitted, ${refused.length} were refused; ` +
      `${client.counts.sent} requests, ${client.counts.retries} retries.`,
  );
}, 400_000);

async function settledPayment(): Promise<string> {
  const body = {
    ...{ method: 'ideal', amount: PAYMENT, currency: 'EUR', country: 'NL' },
    success_url: 'https://shop.example/thanks',
    error_url: 'https://shop.example/sorry',
  };
  const call = { method: 'POST', path: '/v1/payments', body, idempotencyKey: 'payment' } as const;
  const { id } = Payment.parse(JSON.parse((await client.insist(call)).text));
  const path = `/v1/sandbox/payments/${id}/simulate`;
  const answer = await client.insist({ method: 'POST', path, body: { event: 'settled' } });
  expect(Payment.parse(JSON.parse(answer.text)).status).toBe('settled');
  return id;
}

function refund(idempotencyKey: string, body: object): Promise<Answer> {
  return client.insist({ method: 'POST', path: '/v1/refunds', body, idempotencyKey });
}

/** The refund's id, or why there is none. */
function told(answer: Answer | undefined): string {
  const body: unknown = JSON.parse(answer?.text ?? '');
  return answer?.status === 201 ? Refund.parse(body).id : Refused.parse(body).error.code;
}

/** Each kill falls when more refunds have been accepted, while others wait; says how many fell. */
async function killWorkers(payment: string, isOver: () => boolean): Promise<number> {
  let before = 0;
  for (let kills = 0; kills < KILLS; kills += 1) {
    const more = async () => isOver() || (await listed(payment)).size > before;
    await eventually('a further refund', more, RECOVERY_MS_MAX);
    if (isOver()) return kills;
    const victim = stack.state()?.worker.pid;
    if (victim == null) throw new Error('The worker has no process to kill.');
    process.kill(victim, 'SIGKILL');
    before = (await listed(payment)).size;
    const back = async () => {
      const pid = stack.state()?.worker.pid;
      return pid != null && pid !== victim && (await allReady(stack));
    };
    await eventually('a new worker', back, RECOVERY_MS_MAX);
  }
  return KILLS;
}

/** Amounts of the payment's refunds by id, page by page. */
async function listed(payment: string): Promise<Map<string, number>> {
  return new Map((await refundsOf(payment)).map(({ id, amount }) => [id, amount]));
}

async function refundsOf(payment: string): Promise<z.infer<typeof Refund>[]> {
  const found: z.infer<typeof Refund>[] = [];
  let before = '';
  for (let more = true; more; ) {
    const path = `/v1/payments/${payment}/refunds?limit=100${before}`;
    const answer = await client.insist({ method: 'GET', path });
    const { data, next_cursor } = Page.parse(JSON.parse(answer.text));
    found.push(...data);
    before = `&created_before=${encodeURIComponent(next_cursor ?? '')}`;
    more = next_cursor !== null;
  }
  return found;
}

async function allSettled(payment: string): Promise<boolean> {
  return (await refundsOf(payment)).every(({ status }) => status === 'settled');
}

async function mainBalance(): Promise<number> {
  const shown = Balances.parse(await stack.cli('balance', 'show', account, '--env', 'sandbox'));
  const main = shown.data.find(
    ({ balance_account, currency }) => balance_account === 'main' && currency === 'EUR',
  );
  return main?.available ?? 0;
}

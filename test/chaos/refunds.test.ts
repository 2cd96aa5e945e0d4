import { z } from 'zod';
import { gate } from '../support/gate';
import { eventually, idealPayment } from '../support/http';
import { type Answer, createPatientClient, type PatientClient } from './patient-client';
import {
  differences,
  listed,
  type Made,
  madeBy,
  openAccount,
  raceWithKills,
  readBalance,
  told,
} from './race';
import { reconcile } from './reconcile';
import { type RunningStack, startStack } from './running-stack';

/**
 * Holds docs/api.md#refunds under everything at once: refunds of one payment race each other for
 * what remains, each is sent twice, and the worker is killed while they do.
 */
const PAYMENT = 1_000_000;
const REFUNDS = 200;
/** Twice the payment on average, so that about half must be refused; no magic amount is reached. */
const REFUND_MAX = 20_000;
const SETTLED_MS_MAX = 120_000;

const Payment = z.object({ id: z.string(), status: z.string() });

const over = new AbortController();
let stack: RunningStack;
let client: PatientClient;
let account: string;

beforeAll(async () => {
  stack = await startStack({ autoplay: 'on' });
  const made = await openAccount(stack, 'Refunds');
  account = made.account;
  client = createPatientClient(stack.url, made.key, over.signal);
});

afterAll(async () => {
  over.abort();
  await stack?.destroy();
});

test('never refunds more than the payment by 200 refunds, each sent twice, a third at once, through kills', async () => {
  const funds = await readBalance(stack, account, 'main');
  const payment = await settledPayment();
  const refunds = () => listed(client, `/v1/payments/${payment}/refunds`);
  const requested = Array.from({ length: REFUNDS }, (_, index) => ({
    key: `refund-${index}`,
    body: { payment_id: payment, amount: 1 + Math.floor(Math.random() * REFUND_MAX) },
  }));
  // Each kill lets the next third go, so that a fast machine has not done all before the second.
  const thirds = [gate(), gate(), gate()];
  let begun = 0;
  const goOn = () => thirds[begun++]?.release();
  goOn();
  const { answers, kills } = await raceWithKills(
    stack,
    [...requested, ...requested].map(async ({ key, body }, index) => {
      await thirds[Math.floor(((index % REFUNDS) * thirds.length) / REFUNDS)]?.opened;
      return await refund(key, body);
    }),
    async () => (await refunds()).length,
    goOn,
  );
  expect(kills).toBeGreaterThanOrEqual(2);

  const accepted = new Map<string, number>();
  for (const [index, { body }] of requested.entries()) {
    const [one, again] = [answers[index], answers[index + REFUNDS]];
    expect(told(again)).toBe(told(one));
    if (told(one) === 'refund_amount_exceeds_balance') continue;
    expect(madeBy(one).amount).toBe(body.amount);
    accepted.set(madeBy(one).id, body.amount);
  }
  const sum = total([...accepted.values()]);
  expect(sum).toBeLessThanOrEqual(PAYMENT);
  // Whatever was refused was more than remained in the end, too.
  const refused = requested.filter((_, index) => answers[index]?.status === 422);
  expect(refused.length).toBeGreaterThan(0);
  for (const { body } of refused) expect(body.amount).toBeGreaterThan(PAYMENT - sum);
  expect(amounts(await refunds())).toEqual(accepted);

  if (sum < PAYMENT) {
    const rest = madeBy(await refund('the-rest', { payment_id: payment }));
    expect(rest.amount).toBe(PAYMENT - sum);
  }
  expect(told(await refund('one-more', { payment_id: payment, amount: 1 }))).toBe(
    'refund_amount_exceeds_balance',
  );
  const settled = async () => (await refunds()).every(({ status }) => status === 'settled');
  await eventually('every refund to settle', settled, SETTLED_MS_MAX);
  expect(await differences(stack)).toEqual([]);
  expect(await reconcile(stack)).toBe((await refunds()).length + 1);
  expect(await readBalance(stack, account, 'main')).toEqual(funds);
  console.info(
    `${accepted.size} refunds of ${REFUNDS} fitted, ${refused.length} were refused; ` +
      `${kills} kills, ${client.counts.sent} requests, ${client.counts.retries} retries.`,
  );
}, 400_000);

async function settledPayment(): Promise<string> {
  const body = idealPayment({ amount: PAYMENT });
  const call = { method: 'POST', path: '/v1/payments', body, idempotencyKey: 'payment' } as const;
  const { id } = Payment.parse(JSON.parse((await client.insist(call)).text));
  const path = `/v1/sandbox/payments/${id}/simulate`;
  await eventually('the payment to settle', async () => {
    const { text } = await client.insist({ method: 'POST', path, body: { event: 'settled' } });
    return Payment.parse(JSON.parse(text)).status === 'settled';
  });
  return id;
}

function refund(idempotencyKey: string, body: object): Promise<Answer> {
  return client.insist({ method: 'POST', path: '/v1/refunds', body, idempotencyKey });
}

function amounts(rows: readonly Made[]): Map<string, number> {
  return new Map(rows.map(({ id, amount }) => [id, amount]));
}

function total(numbers: readonly number[]): number {
  return numbers.reduce((sum, one) => sum + one, 0);
}

import { eventually } from '../support/http';
import { type Answer, createPatientClient, type PatientClient } from './patient-client';
import { differences, listed, madeBy, openAccount, raceWithKills, readBalance, told } from './race';
import { reconcile } from './reconcile';
import { type RunningStack, startStack } from './running-stack';

/**
 * Payouts that draw on one balance race each other for it, each is sent twice, and the worker is
 * killed while they do. What could not be accepted in time was refused for good; the client, who
 * can't know, asks again with the same key.
 */
const FUNDS = 1_000_000;
const PAYOUTS = 200;
/** Twice the funds on average, so that about half must be refused; no magic amount is reached. */
const PAYOUT_MAX = 20_000;
const FEE = 25;
const COMPLETED_MS_MAX = 120_000;

const RECIPIENT = {
  type: 'bank_account',
  first_name: 'Jan',
  last_name: 'Jansen',
  iban: 'NL91ABNA0417164300',
  address_line1: 'Damrak 1',
  city: 'Amsterdam',
  postal_code: '1012 LG',
};

const over = new AbortController();
let stack: RunningStack;
let client: PatientClient;
let account: string;
let recipient_id: string;

beforeAll(async () => {
  stack = await startStack({ autoplay: 'on' });
  const made = await openAccount(stack, 'Payouts');
  account = made.account;
  const fund = ['--balance-account', 'race', '--currency', 'EUR', '--amount', String(FUNDS)];
  await stack.cli('balance', 'fund', account, '--env', 'sandbox', ...fund);
  await stack.cli('account', 'update', account, '--payout-fee', `sepa_instant=${FEE}`);
  client = createPatientClient(stack.url, made.key, over.signal);
  const call = { method: 'POST', path: '/v1/payout-recipients', body: RECIPIENT } as const;
  const answer = await client.insist({ ...call, idempotencyKey: 'recipient' });
  recipient_id = JSON.parse(answer.text).id;
});

afterAll(async () => {
  over.abort();
  await stack?.destroy();
});

test('never overdraws the balance by 200 payouts, each sent twice, fifty at once, through kills', async () => {
  const payouts = () => listed(client, '/v1/payouts');
  const requested = Array.from({ length: PAYOUTS }, (_, index) => ({
    key: `payout-${index}`,
    amount: 1 + Math.floor(Math.random() * PAYOUT_MAX),
  }));
  const { answers, kills } = await raceWithKills(
    stack,
    inGroups([...requested, ...requested]),
    async () => (await payouts()).length,
  );
  expect(kills).toBeGreaterThanOrEqual(2);

  const accepted = new Map<string, number>();
  for (const [index, { amount }] of requested.entries()) {
    const [one, again] = [answers[index], answers[index + PAYOUTS]];
    expect(told(again)).toBe(told(one));
    if (told(one) === 'insufficient_balance') continue;
    expect(madeBy(one).amount).toBe(amount);
    accepted.set(madeBy(one).id, amount);
  }
  const drawn = [...accepted.values()].reduce((sum, amount) => sum + amount + FEE, 0);
  expect(drawn).toBeLessThanOrEqual(FUNDS);
  const refused = requested.filter((_, index) => answers[index]?.status === 422);
  expect(refused.length).toBeGreaterThan(0);
  for (const { amount } of refused) expect(amount + FEE).toBeGreaterThan(FUNDS - drawn);
  const rows = await payouts();
  expect(new Map(rows.map(({ id, amount }) => [id, amount]))).toEqual(accepted);

  const completed = async () => (await payouts()).every(({ status }) => status === 'completed');
  await eventually('every payout to complete', completed, COMPLETED_MS_MAX);
  expect(await readBalance(stack, account, 'race')).toEqual({
    available: FUNDS - drawn,
    reserved: 0,
  });
  expect(await differences(stack)).toEqual([]);
  expect(await reconcile(stack)).toBe(accepted.size);
  console.info(
    `${accepted.size} payouts of ${PAYOUTS} fitted, ${refused.length} were refused; ` +
      `${kills} kills, ${client.counts.sent} requests, ${client.counts.retries} retries.`,
  );
}, 400_000);

/** Payouts at once: of more, a slow machine accepts none within the five seconds that each has. */
const AT_ONCE = 50;

/** Sends each payout and its twin side by side, group by group. */
function inGroups(requested: readonly { key: string; amount: number }[]): Promise<Answer>[] {
  const sent: Promise<Answer>[] = [];
  for (let start = 0; start < PAYOUTS; start += AT_ONCE) {
    const before = Promise.allSettled(sent.filter((request) => request !== undefined));
    for (const [index, { key, amount }] of requested.entries()) {
      const place = index % PAYOUTS;
      if (place < start || place >= start + AT_ONCE) continue;
      sent[index] = before.then(() => payout(key, amount));
    }
  }
  return sent;
}

function payout(idempotencyKey: string, amount: number): Promise<Answer> {
  const money = { amount, currency: 'EUR', method: 'sepa_instant' };
  const body = { recipient_id, ...money, metadata: { balance_account: 'race' } };
  return client.insist({ method: 'POST', path: '/v1/payouts', body, idempotencyKey });
}

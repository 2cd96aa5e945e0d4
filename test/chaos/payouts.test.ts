import { useFixture } from '../support/fixture';
import { type Answer, eventually } from '../support/http';
import {
  findDifferences,
  listAll,
  RECIPIENT,
  raceWithKills,
  readBalance,
  readResult,
  useMerchant,
} from './race';
import { reconcile } from './reconcile';

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

const merchant = useMerchant('Payouts', { autoplay: 'on' });
const recipient = useFixture(async () => {
  const { stack, account, client } = merchant;
  const fund = ['--balance-account', 'race', '--currency', 'EUR', '--amount', String(FUNDS)];
  await stack.cli('balance', 'fund', account, '--env', 'sandbox', ...fund);
  await stack.cli('account', 'update', account, '--payout-fee', `sepa_instant=${FEE}`);
  const answer = await client.post('/v1/payout-recipients', RECIPIENT, 'recipient');
  return { id: String(answer.body.id) };
});

test('never overdraws the balance by 200 payouts, each sent twice, fifty at once, through kills', async () => {
  const { stack, account, client } = merchant;
  const payouts = () => listAll(client, '/v1/payouts');
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
    expect(readResult(again)).toBe(readResult(one));
    if (readResult(one) === 'insufficient_balance') continue;
    expect(one?.body.amount).toBe(amount);
    accepted.set(one?.body.id, amount);
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
  expect(await findDifferences(stack)).toEqual([]);
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
  const metadata = { balance_account: 'race' };
  const body = { recipient_id: recipient.id, ...money, metadata };
  return merchant.client.post('/v1/payouts', body, idempotencyKey);
}

import { gate } from '../support/gate';
import { type Answer, eventually, idealPayment } from '../support/http';
import {
  findDifferences,
  listAll,
  raceWithKills,
  readBalance,
  readResult,
  useMerchant,
} from './race';
import { reconcile } from './reconcile';

/**
 * Holds docs/api.md#refunds under everything at once: refunds of one payment race each other for
 * what remains, each is sent twice, and the worker is killed while they do.
 */
const PAYMENT = 1_000_000;
const REFUNDS = 200;
/** Twice the payment on average, so that about half must be refused; no magic amount is reached. */
const REFUND_MAX = 20_000;
const SETTLED_MS_MAX = 120_000;

const merchant = useMerchant('Refunds', { autoplay: 'on' });

test('never refunds more than the payment by 200 refunds, each sent twice, a third at once, through kills', async () => {
  const { stack, account, client } = merchant;
  const funds = await readBalance(stack, account, 'main');
  const payment = await settledPayment();
  const refunds = () => listAll(client, `/v1/payments/${payment}/refunds`);
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
    expect(readResult(again)).toBe(readResult(one));
    if (readResult(one) === 'refund_amount_exceeds_balance') continue;
    expect(one?.body.amount).toBe(body.amount);
    accepted.set(one?.body.id, body.amount);
  }
  const sum = [...accepted.values()].reduce((total, amount) => total + amount, 0);
  expect(sum).toBeLessThanOrEqual(PAYMENT);
  // Whatever was refused was more than remained in the end, too.
  const refused = requested.filter((_, index) => answers[index]?.status === 422);
  expect(refused.length).toBeGreaterThan(0);
  for (const { body } of refused) expect(body.amount).toBeGreaterThan(PAYMENT - sum);
  const rows = await refunds();
  expect(new Map(rows.map(({ id, amount }) => [id, amount]))).toEqual(accepted);

  if (sum < PAYMENT) {
    const rest = await refund('the-rest', { payment_id: payment });
    expect(rest.body.amount).toBe(PAYMENT - sum);
  }
  const more = await refund('one-more', { payment_id: payment, amount: 1 });
  expect(readResult(more)).toBe('refund_amount_exceeds_balance');
  const settled = async () => (await refunds()).every(({ status }) => status === 'settled');
  await eventually('every refund to settle', settled, SETTLED_MS_MAX);
  expect(await findDifferences(stack)).toEqual([]);
  expect(await reconcile(stack)).toBe((await refunds()).length + 1);
  expect(await readBalance(stack, account, 'main')).toEqual(funds);
  console.info(
    `${accepted.size} refunds of ${REFUNDS} fitted, ${refused.length} were refused; ` +
      `${kills} kills, ${client.counts.sent} requests, ${client.counts.retries} retries.`,
  );
}, 400_000);

async function settledPayment(): Promise<string> {
  const { client } = merchant;
  const { id } = (await client.post('/v1/payments', idealPayment({ amount: PAYMENT }), 'payment'))
    .body;
  const path = `/v1/sandbox/payments/${id}/simulate`;
  const isSettled = async () =>
    (await client.post(path, { event: 'settled' })).body.status === 'settled';
  await eventually('the payment to settle', isSettled);
  return id;
}

function refund(idempotencyKey: string, body: object): Promise<Answer> {
  return merchant.client.post('/v1/refunds', body, idempotencyKey);
}

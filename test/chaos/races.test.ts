import { useFixture } from '../support/fixture';
import { gate } from '../support/gate';
import { type Answer, eventually, idealPayment } from '../support/http';
import { noteForFailure } from '../support/quiet';
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
 * Refunds race each other for what remains of a payment (docs/api.md#refunds), payouts for a balance.
 * Each is sent twice, and the worker is killed while they do. What could not be accepted in time was
 * refused for good; the client, who can't know, asks again with the same key.
 */
const FUNDS = 1_000_000;
const REQUESTS = 200;
/** Twice the funds on average, so that about half must be refused; no magic amount is reached. */
const AMOUNT_MAX = 20_000;
const FEE = 25;
/** Payouts at once: of more, a slow machine accepts none within the five seconds that each has. */
const AT_ONCE = 50;
const ENDED_MS_MAX = 120_000;

jest.setTimeout(400_000);

const merchant = useMerchant('Races', { autoplay: 'on' });
/** Movements that the bank has made. */
let moved = 0;

interface Requested {
  key: string;
  amount: number;
}

interface Race {
  path: string;
  fee: number;
  refusal: string;
  /** Sends all requests and their repeats, in this order. */
  send: (requested: readonly Requested[]) => Promise<Answer>[];
  onKill?: () => void;
}

/** Holds that what was accepted fits, once each, and that what was refused did not. */
async function race({ path, fee, refusal, send, onKill }: Race): Promise<number> {
  const { stack, client } = merchant;
  const requested = Array.from({ length: REQUESTS }, (_, index) => ({
    key: `${refusal}-${index}`,
    amount: 1 + Math.floor(Math.random() * AMOUNT_MAX),
  }));
  const count = async () => (await listAll(client, path)).length;
  const calls = send([...requested, ...requested]);
  const { answers, kills } = await raceWithKills(stack, calls, count, onKill);
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

test('never refunds more than the payment by 200 refunds, each sent twice, a third at once, through kills', async () => {
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
  const { id } = (await client.post('/v1/payments', idealPayment({ amount: FUNDS }), 'payment'))
    .body;
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

test('never overdraws the balance by 200 payouts, each sent twice, fifty at once, through kills', async () => {
  const money = { recipient_id: recipient.id, currency: 'EUR', method: 'sepa_instant' };
  const pay = ({ key, amount }: Requested) => {
    const body = { ...money, amount, metadata: { balance_account: 'race' } };
    return merchant.client.post('/v1/payouts', body, key);
  };
  /** Sends each payout and its repeat at once, group by group. */
  const send = (requested: readonly Requested[]) => {
    const sent: Promise<Answer>[] = [];
    for (let start = 0; start < REQUESTS; start += AT_ONCE) {
      const before = Promise.allSettled(sent.filter((request) => request !== undefined));
      for (const [index, each] of requested.entries()) {
        const place = index % REQUESTS;
        if (place < start || place >= start + AT_ONCE) continue;
        sent[index] = before.then(() => pay(each));
      }
    }
    return sent;
  };
  const drawn = await race({
    path: '/v1/payouts',
    fee: FEE,
    refusal: 'insufficient_balance',
    send,
  });
  await untilAll('/v1/payouts', 'completed');
  const left = { available: FUNDS - drawn, reserved: 0 };
  expect(await readBalance(merchant.stack, merchant.account, 'race')).toEqual(left);
});

test('the ledger has each movement that the bank has made', async () => {
  expect(await findDifferences(merchant.stack)).toEqual([]);
  expect(await reconcile(merchant.stack)).toBe(moved);
});

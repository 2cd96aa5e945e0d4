import { eventually, idealPayment } from '../support/http';
import { findDifferences, listAll, raceWithKills, readBalance, useMerchant } from './race';
import { reconcile } from './reconcile';
import { RECOVERY_MS_MAX } from './running-stack';

/**
 * Holds docs/ledger.md#money-that-goes-wrong under kills: banks take settled money back and two
 * operators book it at once, late funds come and go, each is reported twice, and the worker is
 * killed while they do.
 */
const AMOUNT = 1_000;
const CHARGEBACKS = 6;
const LATE = 6;
/** Left in the balance, which is less than the chargebacks. */
const HELD = 3_500;

const merchant = useMerchant('Wrong money');

test('books each chargeback and each late fund once, through kills', async () => {
  const { stack, account, client } = merchant;
  const settled = await many(CHARGEBACKS, (n) => payment(`settled-${n}`, 'settled'));
  const failed = await many(LATE, (n) => payment(`failed-${n}`, 'failed'));
  const draw = HELD - (await readBalance(stack, account, 'main')).available;
  const from = ['--balance-account', 'main', '--currency', 'EUR', '--amount', String(draw)];
  const by = ['--env', 'sandbox', '--operator', 'ana', '--reason', 'Paid out elsewhere.'];
  await stack.cli('balance', 'adjust', account, ...from, ...by);

  let done = 0;
  const count = async (work: Promise<unknown>): Promise<void> => {
    await work;
    done += 1;
  };
  const work = [
    ...settled.map(async (id, index) => {
      await report(id, 'clawed_back');
      await Promise.all(['ana', 'ben'].map((who) => count(clawBack(id, who, index))));
    }),
    ...failed.map(async (id) => {
      await Promise.all([count(report(id, 'settled')), count(report(id, 'settled'))]);
      await Promise.all([count(report(id, 'reversed')), count(report(id, 'reversed'))]);
    }),
  ];
  const { kills } = await raceWithKills(stack, work, async () => done);
  expect(kills).toBeGreaterThanOrEqual(2);

  for (const id of settled) expect(await posted(id)).toEqual(CHARGEBACK_ENTRIES);
  for (const id of failed) {
    // A repeated simulation reports a different amount, which is sent back a little later.
    const whole = async () => {
      const kinds = await posted(id);
      const came = kinds.filter((kind) => kind === CAME).length;
      const went = kinds.filter((kind) => kind === WENT).length;
      return kinds.length >= CAME_AND_WENT.length && came === went && came + went === kinds.length;
    };
    await eventually(`late funds of ${id} to come and go`, whole, RECOVERY_MS_MAX);
  }
  expect(await readBalance(stack, account, 'main')).toEqual({ available: 0, reserved: 0 });
  const shown = await stack.cli('balance', 'show', account, '--env', 'sandbox');
  const owed = CHARGEBACKS * AMOUNT - HELD;
  expect(shown.receivables).toMatchObject([{ currency: 'EUR', owed }]);
  const statuses = (await listAll(client, '/v1/payments')).map(({ status }) => status).sort();
  expect(statuses).toEqual([...Array(LATE).fill('failed'), ...Array(CHARGEBACKS).fill('settled')]);
  expect(await findDifferences(stack)).toEqual([]);
  await reconcile(stack);
  console.info(`${done} reports and bookings, ${kills} kills, ${client.counts.retries} retries.`);
}, 400_000);

const CHARGEBACK_ENTRIES = ['payment_clawed_back', 'payment_settled'];
const [CAME, WENT] = ['payment_held', 'payment_resolved'];
const CAME_AND_WENT = [CAME, CAME, WENT, WENT];

/** Kinds of a payment's journal entries, sorted. */
async function posted(id: string): Promise<string[]> {
  const { postings } = await merchant.stack.cli('payment', 'show', id);
  return postings.map(({ kind }: { kind: string }) => kind).sort();
}

async function payment(key: string, event: 'settled' | 'failed'): Promise<string> {
  const { client } = merchant;
  const { id } = (await client.post('/v1/payments', idealPayment({ amount: AMOUNT }), key)).body;
  await report(id, event);
  await client.persevere(`${id} to be ${event}`, async () => {
    const { body } = await client.get(`/v1/payments/${id}`);
    return body.status === event ? body : undefined;
  });
  return id;
}

async function report(id: string, event: string): Promise<void> {
  const path = `/v1/sandbox/payments/${id}/simulate`;
  const answer = await merchant.client.post(path, { event });
  expect(answer.status).toBe(200);
}

/** An operator repeats a command whose outcome is unknown; a second booking is refused in words. */
async function clawBack(id: string, operator: string, index: number): Promise<void> {
  const by = ['--operator', operator, '--reason', `Statement line ${index}.`];
  const { client, stack } = merchant;
  await client.persevere(`claw_back of ${id} by ${operator}`, async () => {
    try {
      return await stack.cli('payment', 'act', id, 'claw_back', ...by);
    } catch (error) {
      if (/chargeback of the payment is posted already/.test(String(error))) return 'booked';
      if (/outcome_unknown|_unavailable|was ended by/.test(String(error))) return undefined;
      throw error;
    }
  });
}

function many<T>(count: number, make: (n: number) => Promise<T>): Promise<T[]> {
  return Promise.all(Array.from({ length: count }, (_, n) => make(n)));
}

import type { run } from '../cli/cli';
import { eventually } from '../support/http';
import { createRandom } from '../support/random';
import type { Account } from '../support/service';
import type { Answer } from './robot-bank';

/** Transaction to an address of a payment. */
interface Deposit {
  payment_id: string;
  transaction_id: string;
  amount: bigint;
  /** The chain has removed it. */
  isGone?: true;
  /** Another block is to include it. */
  isToCome?: true;
  /** It was sent back since. */
  isBack?: true;
  /** An answer has decided about it. */
  isDecided?: true;
}

interface Payment {
  id: string;
  amount_due: string;
  deposits: { transaction_id: string; status: string }[];
}

interface ChainPlace {
  /** Its clock is advanced. */
  account: Pick<Account, 'account_id' | 'post' | 'get'>;
  /** Runs the command line with `--json`. */
  cli: (...args: string[]) => ReturnType<typeof run>;
  seed: number;
  done: string[];
}

type Facts = Payment & { due: bigint };

export type ModelChain = ReturnType<typeof createModelChain>;

/**
 * Payers on the sandbox's chain, who send too little, too much or too late, and blocks that are removed,
 * as a seed says; it has a stream of its own. What it answers is true.
 */
export function createModelChain({ account, cli, seed, done }: ChainPlace) {
  const random = createRandom(seed * 7 + 3);
  const deposits: Deposit[] = [];
  const ids = new Set<string>();
  const path = (id: string) => `/v1/crypto/payments/${id}`;

  const simulate = async (id: string, report: object): Promise<Payment> => {
    const answer = await account.post(`/v1/sandbox/crypto/payments/${id}/simulate`, report);
    if (answer.status !== 200) throw new Error(answer.text);
    done.push(`chain ${id} ${JSON.stringify(report)}: ${answer.body.status}`);
    return answer.body;
  };
  const send = async (id: string, amount: bigint, more: object = {}): Promise<Deposit> => {
    const transaction_id = `tx-${id}-${deposits.length}`;
    const deposit = { payment_id: id, transaction_id, amount };
    deposits.push(deposit);
    await simulate(id, { event: 'deposit', transaction_id, amount: String(amount), ...more });
    return deposit;
  };
  const remove = async (deposit: Deposit): Promise<void> => {
    deposit.isGone = true;
    if (random.chance(0.5)) deposit.isToCome = true;
    const { payment_id, transaction_id } = deposit;
    await simulate(payment_id, { event: 'deposit_undone', transaction_id });
  };
  const includeAgain = async (deposit: Deposit): Promise<void> => {
    const { payment_id, transaction_id, amount } = deposit;
    delete deposit.isGone;
    await simulate(payment_id, { event: 'deposit', transaction_id, amount: String(amount) });
  };
  /** Lets the time of all payments be over. */
  const closeWindow = async (): Promise<void> => {
    const answer = await account.post('/v1/sandbox/clock', { advance: 'PT31M' });
    if (answer.status >= 300) throw new Error(answer.text);
    await eventually('the clock to stand', async () => {
      const { body } = await account.get('/v1/sandbox/clock');
      return body.state !== 'advancing';
    });
  };
  const part = (amount: bigint) => (amount * BigInt(random.integer(10, 90))) / 100n;

  /** Stories of a payment. @returns the reason that it has then */
  const ENDS: Record<string, (payment: Facts) => Promise<string | undefined>> = {
    exact: async ({ id, due }) => void (await send(id, due)),
    more: async ({ id, due }) => void (await send(id, due + part(due))),
    in_parts: async ({ id, due }) => {
      const first = part(due);
      await send(id, first);
      await send(id, due - first);
      return undefined;
    },
    less: async ({ id, due }) => {
      await send(id, part(due));
      await closeWindow();
      return 'underpaid';
    },
    late: async ({ id, due }) => {
      if (random.chance(0.3)) await send(id, part(due));
      await closeWindow();
      await send(id, random.chance(0.5) ? due : part(due));
      return 'late_deposit';
    },
    again_late: async ({ id, due }) => {
      await send(id, due);
      await closeWindow();
      await send(id, part(due));
      return 'late_deposit';
    },
    held: async ({ id, due }) => {
      const deposit = await send(id, due, { event: 'held' });
      if (random.chance(0.7)) return 'deposit_held';
      await remove(deposit);
      return undefined;
    },
    removed: async ({ id, due }) => {
      const deposit = await send(id, random.chance(0.7) ? due : due + part(due));
      await remove(deposit);
      return 'deposit_undone';
    },
    removed_unconfirmed: async ({ id, due }) => {
      const deposit = await send(id, due, { confirmations: 1 });
      await remove(deposit);
      await includeAgain(deposit);
      return undefined;
    },
  };

  const runPayment = async (): Promise<void> => {
    const amount = random.integer(1_000, 50_000);
    const request = { amount, currency: 'EUR', asset: 'ETH', network: 'ethereum' };
    const { status, text, body } = await account.post('/v1/crypto/payments', request);
    if (status !== 201) throw new Error(text);
    const { id } = body;
    ids.add(id);
    const end = random.pick(Object.keys(ENDS));
    done.push(`crypto_payment ${id} ${end}`);
    const reason = await ENDS[end]?.({ ...body, due: BigInt(body.amount_due) });
    if (reason === undefined) return;
    await eventually(`${id} to be listed with ${reason}`, async () => {
      const { data } = JSON.parse((await cli('attention', 'list', '--limit', '1000')).stdout);
      const isIt = (row: { resource_id: string; reason: string }) =>
        row.resource_id === id && row.reason === reason;
      return data.some(isIt);
    });
  };

  const checkChain = async (id: string): Promise<Answer | undefined> => {
    const own = deposits.filter(({ payment_id, isDecided }) => payment_id === id && !isDecided);
    const gone = own.find(({ isGone }) => isGone);
    if (gone?.isToCome) {
      await includeAgain(gone);
      return { if: 'confirmed' };
    }
    const read: Payment = (await account.get(path(id))).body;
    const isRejected = ({ transaction_id }: Deposit) =>
      read.deposits.some(
        (each) => each.transaction_id === transaction_id && each.status === 'rejected',
      );
    const decided = gone === undefined ? own.filter(isRejected) : [gone];
    for (const deposit of decided) deposit.isDecided = true;
    if (gone !== undefined || random.chance(0.3)) return { if: 'dropped' };
    for (const deposit of decided) deposit.isBack = true;
    return { if: 'sent_back', transaction: `back-${id}`, address: `payer-${id}` };
  };

  return {
    ids,
    account_id: account.account_id,
    run: async (): Promise<void> => {
      await cli('account', 'update', account.account_id, '--crypto', 'on');
      const count = random.integer(1, 2);
      for (let n = 0; n < count; n += 1) await runPayment();
    },
    /** Answers a question about one of its payments. */
    answer: async (question: string, id: string): Promise<Answer | undefined> => {
      if (question === 'chain') return await checkChain(id);
      return question === 'decision' ? { if: random.pick(['accept', 'refuse']) } : undefined;
    },
    /** Sums what is at its addresses. */
    sum: (): bigint =>
      deposits
        .filter(({ isGone, isBack }) => !isGone && !isBack)
        .reduce((total, { amount }) => total + amount, 0n),
  };
}

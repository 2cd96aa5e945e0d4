import type { run } from '../cli/cli';
import { eventually } from '../support/eventually';
import { createRandom } from '../support/random';
import type { Account } from '../support/service';
import type { Answer } from './robot-bank';

interface Deposit {
  payment_id: string;
  transaction_id: string;
  amount: bigint;
  /** The chain has removed it. */
  isGone?: true;
  /** Another block is to include it. */
  isToCome?: true;
  isBack?: true;
  isDecided?: true;
}

type Payment = { id: string; deposits: { transaction_id: string; status: string }[] };

interface ChainPlace {
  account: Pick<Account, 'account_id' | 'post' | 'get'>;
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

  const post = async (at: string, request: object) => {
    const { status, text, body } = await account.post(at, request);
    if (status >= 300) throw new Error(text);
    return body;
  };
  const simulate = async (id: string, report: object): Promise<void> => {
    const { status } = await post(`/v1/sandbox/crypto/payments/${id}/simulate`, report);
    done.push(`chain ${id} ${JSON.stringify(report)}: ${status}`);
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
  const closeWindow = async (): Promise<void> => {
    await post('/v1/sandbox/clock', { advance: 'PT31M' });
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
    const body = await post('/v1/crypto/payments', request);
    const { id } = body;
    ids.add(id);
    const end = random.pick(Object.keys(ENDS));
    done.push(`crypto_payment ${id} ${end}`);
    const reason = await ENDS[end]?.({ ...body, due: BigInt(body.amount_due) });
    if (reason === undefined) return;
    await eventually(`${id} to be listed with ${reason}`, async () => {
      const { data } = JSON.parse((await cli('attention', 'list', '--limit', '1000')).stdout);
      const rows: { resource_id: string; reason: string }[] = data;
      return rows.some((row) => row.resource_id === id && row.reason === reason);
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
    const rejected = read.deposits.filter(({ status }) => status === 'rejected');
    const isRejected = (one: Deposit) =>
      rejected.some(({ transaction_id }) => transaction_id === one.transaction_id);
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
    answer: async (question: string, id: string): Promise<Answer | undefined> => {
      if (question === 'chain') return await checkChain(id);
      return question === 'decision' ? { if: random.pick(['accept', 'refuse']) } : undefined;
    },
    sum: (): bigint =>
      deposits
        .filter(({ isGone, isBack }) => !isGone && !isBack)
        .reduce((total, { amount }) => total + amount, 0n),
  };
}

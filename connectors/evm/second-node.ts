import type { Logger } from '../../src/base/log';
import type { Asset } from './assets';
import { type ReaderDeps, readDeposits } from './block-facts';
import type { Deposit, Deposits } from './deposits';
import type { Findings } from './findings';
import { assertChain, type EvmNode } from './node';

/** Time for which the nodes may differ, before an operator decides. */
const HOLD_AFTER_MS = 600_000;

export interface SecondNodeDeps extends Omit<ReaderDeps, 'node' | 'secondNode' | 'deposits'> {
  /** Without it, the first node is believed. */
  secondNode: EvmNode | undefined;
  /** Smallest units: only larger deposits are checked. */
  checkAbove: Record<Asset, bigint>;
  chainId: number;
  deposits: Pick<Deposits, 'markDisagreed' | 'sums'>;
  findings: Findings;
  now: () => Date;
  log: Logger;
}

/** `waits`: no answer, a lag, or a difference for a short time. */
type Verdict = 'agrees' | 'differs' | 'waits';

export type DepositCheck = (deposit: Deposit) => Promise<Verdict>;

/**
 * Requires that a node of another provider has the deposit in the same block, with its
 * confirmations. A node that fails once is not asked again in the round.
 */
export function createDepositCheck(deps: SecondNodeDeps): DepositCheck {
  const { secondNode, checkAbove, log } = deps;
  let isAway = false;
  return async (deposit) => {
    if (secondNode === undefined || BigInt(deposit.amount) <= checkAbove[deposit.asset]) {
      return 'agrees';
    }
    if (isAway) return 'waits';
    try {
      const hasDeposit = await hasSame({ ...deps, node: secondNode }, deposit);
      if (hasDeposit === undefined) return 'waits';
      return hasDeposit ? 'agrees' : await disagree(deps, deposit);
    } catch (err) {
      isAway = true;
      log.warn({ err }, 'the second node could not confirm a deposit, asked again later');
      return 'waits';
    }
  };
}

/** @returns undefined if the node lags @throws NodeFailure */
async function hasSame(
  { node, ...deps }: ReaderDeps & Pick<SecondNodeDeps, 'chainId'>,
  deposit: Deposit,
): Promise<boolean | undefined> {
  const { block, required_confirmations, _id } = deposit;
  if (block === null) return undefined;
  await assertChain(node, deps.chainId);
  const head = Number(await node.head());
  if (head - block.number + 1 < required_confirmations) return undefined;
  const found = await node.block(BigInt(block.number));
  if (found === undefined) return undefined;
  if (found.hash !== block.hash) return false;
  const deposits = await readDeposits({ ...deps, node, secondNode: undefined }, found);
  return deposits.some(
    ({ crypto_payment_id, asset, transaction_id, amount }) =>
      `${crypto_payment_id}:${asset}:${transaction_id}` === _id &&
      String(amount) === deposit.amount,
  );
}

async function disagree(
  { deposits, findings, now }: SecondNodeDeps,
  deposit: Deposit,
): Promise<Verdict> {
  const { crypto_payment_id, transaction_id, block } = deposit;
  await findings.record({
    name: 'nodes_disagree',
    subject: `${deposit._id}:${block?.hash}`,
    crypto_payment_id,
    text: `The second node does not have the deposit ${transaction_id} in its block.`,
  });
  const since = deposit.disagreed_at ?? now();
  if (deposit.disagreed_at === null) await deposits.markDisagreed(deposit, since);
  return now().getTime() - since.getTime() < HOLD_AFTER_MS ? 'waits' : 'differs';
}

import type { Logger } from '../../src/base/log';
import { omitUndefined } from '../../src/domain/defined';
import type { Asset } from './assets';
import { type ReaderDeps, readDeposits } from './block-facts';
import type { BlockRef } from './chain-store';
import type { Deposit, Deposits, ReportedDeposit } from './deposits';
import type { Findings } from './findings';
import { assertChain, type EvmNode } from './node';
import type { Deliver, PendingReport } from './report';

const PAGE = 100;

export interface DepositReportDeps extends SecondNodeDeps {
  deposits: Deposits;
  deliver: Deliver;
  log: Logger;
}

/** @returns number of confirmed deposits that wait for the second node */
export async function reportDeposits(deps: DepositReportDeps, head: number): Promise<number> {
  const secondCheck = createDepositCheck(deps);
  let unchecked = 0;
  const check: DepositCheck = async (deposit) => {
    const verdict = await secondCheck(deposit);
    if (verdict === 'waits') unchecked += 1;
    return verdict;
  };
  let after = '';
  for (;;) {
    const page = await deps.deposits.open(after, PAGE);
    for (const deposit of page) {
      after = deposit._id;
      await reportOne({ ...deps, check }, deposit, head);
    }
    if (page.length < PAGE) return unchecked;
  }
}

type ReportDeps = DepositReportDeps & { check: DepositCheck };

async function reportOne(deps: ReportDeps, deposit: Deposit, head: number): Promise<void> {
  const { deposits } = deps;
  const { pending_report } = deposit;
  if (pending_report !== null) return await sendReport(deps, deposit, pending_report);
  const due = await findDueReport(deps, deposit, head);
  if (due !== undefined) {
    if (!(await deposits.plan(deposit, due))) return;
    return await sendReport(deps, deposit, due);
  }
  if (deposit.block === null || isCounted(deposit)) await deposits.close(deposit);
}

/** A dropped block comes first. */
async function findDueReport(
  { check }: ReportDeps,
  deposit: Deposit,
  head: number,
): Promise<PendingReport | undefined> {
  const { block, reported, is_wrong_asset, required_confirmations } = deposit;
  if (is_wrong_asset && reported !== null) return undefined;
  if (reported !== null && reported.block_hash !== block?.hash) return toReorged(deposit, reported);
  if (block === null || isCounted(deposit)) return undefined;
  const confirmations = head - block.number + 1;
  if (confirmations < 1) return undefined;
  const seen = () => {
    const few = Math.min(confirmations, required_confirmations - 1);
    return reported === null && !is_wrong_asset ? toReport(deposit, block, few, 'seen') : undefined;
  };
  if (confirmations < required_confirmations) return seen();
  if (is_wrong_asset) return toReport(deposit, block, confirmations, 'wrong_asset');
  const verdict = await check(deposit);
  if (verdict === 'waits') return seen();
  const stage = verdict === 'agrees' ? 'confirmed' : 'held';
  return toReport(deposit, block, confirmations, stage);
}

function isCounted({ reported, required_confirmations }: Deposit): boolean {
  return reported !== null && reported.confirmations >= required_confirmations;
}

type Stage = 'seen' | 'confirmed' | 'held' | 'wrong_asset' | 'undone';

const DISAGREEMENT = {
  screening: 'failed',
  code: 'nodes_disagree',
  reason: 'A second node does not have this deposit.',
} as const;

function toReport(
  deposit: Deposit,
  block: BlockRef,
  confirmations: number,
  stage: Exclude<Stage, 'undone'>,
): PendingReport {
  const onWrongAsset = stage === 'wrong_asset';
  return {
    name: onWrongAsset ? 'wrong_asset' : 'deposit',
    callback: omitUndefined({
      ...describe(deposit, block.hash, stage),
      amount: deposit.amount,
      confirmations,
      block_number: block.number,
      block_hash: block.hash,
      mined_at: deposit.mined_at.toISOString(),
      asset: onWrongAsset ? deposit.asset : undefined,
      ...(stage === 'held' ? DISAGREEMENT : {}),
    }),
  };
}

function toReorged(deposit: Deposit, { block_hash, amount }: ReportedDeposit): PendingReport {
  const callback = { ...describe(deposit, block_hash, 'undone'), amount, block_hash };
  return { name: 'deposit_undone', callback };
}

/**
 * Names the fact, so that a restored database repeats its callback IDs. A block may come back after
 * it was dropped: that is another fact.
 */
function describe(deposit: Deposit, block_hash: string, stage: Stage) {
  const { crypto_payment_id, asset, transaction_id, reorgs, seen_at } = deposit;
  const fact = stage === 'wrong_asset' ? `${stage}:${asset}` : stage;
  const callback_id = [
    transaction_id,
    crypto_payment_id,
    block_hash,
    fact,
    ...(reorgs === 0 ? [] : [reorgs]),
  ].join(':');
  return { callback_id, occurred_at: seen_at.toISOString(), transaction_id };
}

/** After a failure, the next round delivers it again. */
async function sendReport(
  { deposits, deliver, now, log }: ReportDeps,
  { _id, crypto_payment_id: resource_id }: Deposit,
  report: PendingReport,
): Promise<void> {
  try {
    await deliver({ resource: 'crypto_payment', resource_id, ...report });
  } catch (err) {
    log.warn({ crypto_payment_id: resource_id, err }, 'deposit not reported, tried again later');
    return;
  }
  await deposits.markReported(_id, report, toReported(report), now());
}

function toReported({ name, callback }: PendingReport): ReportedDeposit | null {
  const { block_hash, confirmations = 0, amount = '' } = callback;
  if (name === 'deposit_undone' || block_hash === undefined) return null;
  return { block_hash, confirmations, amount };
}

/** Time for which the nodes may differ, before an operator decides. */
const HOLD_AFTER_MS = 600_000;

interface SecondNodeDeps extends Omit<ReaderDeps, 'node' | 'secondNode' | 'deposits'> {
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

type DepositCheck = (deposit: Deposit) => Promise<Verdict>;

/**
 * Requires that a node of another provider has the deposit in the same block, with its
 * confirmations. A node that fails once is not asked again in the round.
 */
function createDepositCheck(deps: SecondNodeDeps): DepositCheck {
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

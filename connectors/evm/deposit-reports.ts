import type { Logger } from '../../src/base/log';
import { omitUndefined } from '../../src/domain/defined';
import type { BlockRef } from './chain-store';
import type { Deposit, Deposits, ReportedDeposit } from './deposits';
import type { Deliver, PendingReport } from './report';
import { createDepositCheck, type DepositCheck, type SecondNodeDeps } from './second-node';

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

import { omitUndefined } from '../../src/domain/defined';
import { readDeposits } from './block-facts';
import type { BlockRef } from './chain-store';
import type { EvmContext } from './context';
import { type Deposit, depositId } from './deposits';
import { assertChain } from './node';
import type { PendingReport, Report } from './report';
import {
  type End,
  getTransactionHash,
  type MinedTransaction,
  type Outcome,
  type Settlement,
} from './settlements';

const PAGE = 100;

/** @returns number of confirmed deposits that wait for the second node */
export async function reportDeposits(deps: EvmContext, head: number): Promise<number> {
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
      await reportDeposit({ ...deps, check }, deposit, head);
    }
    if (page.length < PAGE) return unchecked;
  }
}

type ReportDeps = EvmContext & { check: DepositCheck };

async function reportDeposit(deps: ReportDeps, deposit: Deposit, head: number): Promise<void> {
  const { deposits } = deps;
  const { pending_report } = deposit;
  if (pending_report !== null) return await sendDepositReport(deps, deposit, pending_report);
  const due = await findDueReport(deps, deposit, head);
  if (due !== undefined) {
    if (!(await deposits.plan(deposit, due))) return;
    return await sendDepositReport(deps, deposit, due);
  }
  if (deposit.unmined?.is_withdrawn === false) return;
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
  if (deposit.unmined?.is_withdrawn === false) {
    const callback = { ...describeDeposit(deposit, null, 'seen'), amount: deposit.amount };
    if (reported !== null) return undefined;
    return { name: 'deposit', callback: { ...callback, confirmations: 0 } };
  }
  const isFirstBlock = block !== null && reported?.block_hash === null;
  if (reported !== null && !isFirstBlock && reported.block_hash !== block?.hash) {
    const { block_hash, amount } = reported;
    const callback = { ...describeDeposit(deposit, block_hash, 'undone'), amount };
    return { name: 'deposit_undone', callback: { ...callback, ...(block_hash && { block_hash }) } };
  }
  if (block === null || isCounted(deposit)) return undefined;
  const confirmations = head - block.number + 1;
  if (confirmations < 1) return undefined;
  const seen = () => {
    const few = Math.min(confirmations, required_confirmations - 1);
    const isNew = reported === null || isFirstBlock;
    return isNew && !is_wrong_asset ? toReport(deposit, block, few, 'seen') : undefined;
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
      ...describeDeposit(deposit, block.hash, stage),
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

/**
 * Names the fact, so that a restored database repeats its callback IDs. A block may come back after
 * it was dropped: that is another fact. Without a block, its time is part of the name.
 */
function describeDeposit(deposit: Deposit, block_hash: string | null, stage: Stage) {
  const { crypto_payment_id, asset, transaction_id, reorgs, seen_at } = deposit;
  const fact = stage === 'wrong_asset' ? `${stage}:${asset}` : stage;
  const callback_id = [
    transaction_id,
    crypto_payment_id,
    block_hash ?? `unmined-${seen_at.getTime()}`,
    fact,
    ...(reorgs === 0 ? [] : [reorgs]),
  ].join(':');
  return { callback_id, occurred_at: seen_at.toISOString(), transaction_id };
}

/** After a failure, the next round delivers it again. @returns whether the service has it */
async function send({ deliver, log }: EvmContext, report: Report): Promise<boolean> {
  const { resource, resource_id } = report;
  try {
    await deliver(report);
    return true;
  } catch (err) {
    const what = resource === 'crypto_payment' ? 'deposit' : 'settlement';
    log.warn({ [`${resource}_id`]: resource_id, err }, `${what} not reported, tried again later`);
    return false;
  }
}

async function sendDepositReport(
  deps: ReportDeps,
  { _id, crypto_payment_id: resource_id }: Deposit,
  report: PendingReport,
): Promise<void> {
  if (!(await send(deps, { resource: 'crypto_payment', resource_id, ...report }))) return;
  const { block_hash = null, confirmations = 0, amount = '' } = report.callback;
  const isGone = report.name === 'deposit_undone';
  const reported = isGone ? null : { block_hash, confirmations, amount };
  await deps.deposits.markReported(_id, report, reported, deps.now());
}

/** Time for which the nodes may differ, before an operator decides. */
const HOLD_AFTER_MS = 600_000;

/** `waits`: no answer, a lag, or a difference for a short time. */
type Verdict = 'agrees' | 'differs' | 'waits';

type DepositCheck = (deposit: Deposit) => Promise<Verdict>;

/**
 * Requires that a node of another provider has the deposit in the same block, with its
 * confirmations. A node that fails once is not asked again in the round.
 */
function createDepositCheck(deps: EvmContext): DepositCheck {
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
async function hasSame(deps: EvmContext, deposit: Deposit): Promise<boolean | undefined> {
  const { node } = deps;
  const { block, required_confirmations, _id } = deposit;
  if (block === null) return undefined;
  await assertChain(node, deps.chainId);
  const head = Number(await node.head());
  if (head - block.number + 1 < required_confirmations) return undefined;
  const found = await node.block(BigInt(block.number));
  if (found === undefined) return undefined;
  if (found.hash !== block.hash) return false;
  const deposits = await readDeposits({ ...deps, secondNode: undefined }, found);
  return deposits.some((each) => depositId(each) === _id && String(each.amount) === deposit.amount);
}

async function disagree(
  { deposits, findings, now }: EvmContext,
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

export async function reportSettlements(deps: EvmContext, head: number): Promise<void> {
  for (const settlement of await deps.settlements.open()) {
    await reportSettlement(deps, settlement, head);
  }
}

async function reportSettlement(
  deps: EvmContext,
  settlement: Settlement,
  head: number,
): Promise<void> {
  const { settlements, confirmations } = deps;
  const { mined, reported, pending_report } = settlement;
  if (pending_report !== null) return await sendSettlementReport(deps, settlement, pending_report);
  const isConfirmed = mined !== null && head - mined.block.number + 1 >= confirmations;
  if (isConfirmed && reported.end === END[mined.outcome]) {
    await settlements.close(settlement);
    return;
  }
  const due = isConfirmed ? toFinalReport(mined) : toSentReport(settlement);
  if (due === undefined) return;
  const { name, callback } = due;
  const isEnd = mined !== null && name !== 'sent';
  const transaction = isEnd ? `${mined.hash}:${mined.block.hash}` : callback.transaction_id;
  // Names the fact, so that a restored database repeats its callback IDs.
  const callback_id = `${settlement._id}:${name}:${transaction}`;
  const occurred_at = (isEnd ? mined.mined_at : settlement.accepted_at).toISOString();
  const report = { name, callback: { callback_id, occurred_at, ...callback } };
  if (!(await settlements.plan(settlement, report))) return;
  await sendSettlementReport(deps, settlement, report);
}

interface DueReport {
  name: PendingReport['name'];
  callback: Omit<PendingReport['callback'], 'callback_id' | 'occurred_at'>;
}

const END: Record<Outcome, End> = { paid: 'completed', reverted: 'failed', taken: 'failed' };

const FAILURES: Record<Exclude<Outcome, 'paid'>, { code: string; reason: string }> = {
  reverted: {
    code: 'transaction_reverted',
    reason: 'The chain refused the transfer: nothing was paid.',
  },
  taken: {
    code: 'nonce_taken',
    reason: 'Another transaction of the paying account took its place: nothing was paid.',
  },
};

function toFinalReport({ hash, block, outcome, fee }: MinedTransaction): DueReport {
  const blockRef = { block_number: block.number, block_hash: block.hash };
  if (outcome === 'taken') return { name: 'failed', callback: FAILURES[outcome] };
  const callback = { transaction_id: hash, ...blockRef, network_fee: fee };
  if (outcome === 'paid') return { name: 'completed', callback };
  return { name: 'failed', callback: { ...callback, ...FAILURES[outcome] } };
}

function toSentReport(settlement: Settlement): DueReport | undefined {
  const { reported } = settlement;
  const transaction_id = getTransactionHash(settlement);
  if (transaction_id === undefined || reported.end !== null) return undefined;
  return transaction_id === reported.sent
    ? undefined
    : { name: 'sent', callback: { transaction_id } };
}

async function sendSettlementReport(
  deps: EvmContext,
  { _id, reported }: Settlement,
  report: PendingReport,
): Promise<void> {
  if (!(await send(deps, { resource: 'crypto_settlement', resource_id: _id, ...report }))) return;
  const { name, callback } = report;
  const sent = callback.transaction_id ?? reported.sent;
  const end = name === 'completed' || name === 'failed' ? name : reported.end;
  await deps.settlements.markReported(_id, report, { sent, end }, deps.now());
}

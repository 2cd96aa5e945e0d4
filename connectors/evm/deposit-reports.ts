import type { Logger } from '../../src/base/log';
import type { Deposit, Deposits, ReportedDeposit } from './deposits';
import type { Deliver, PendingReport } from './report';

const PAGE = 100;

export interface DepositReportDeps {
  deposits: Deposits;
  deliver: Deliver;
  log: Logger;
}

/** Reports each deposit when it is seen, when it counts, and when the chain drops it. */
export async function reportDeposits(deps: DepositReportDeps, head: number): Promise<void> {
  let after = '';
  for (;;) {
    const page = await deps.deposits.open(after, PAGE);
    for (const deposit of page) {
      after = deposit._id;
      await reportOne(deps, deposit, head);
    }
    if (page.length < PAGE) return;
  }
}

async function reportOne(deps: DepositReportDeps, deposit: Deposit, head: number): Promise<void> {
  const { deposits } = deps;
  const { telling } = deposit;
  if (telling !== null) return await sendReport(deps, deposit, telling);
  const due = findDueReport(deposit, head);
  if (due !== undefined) {
    if (!(await deposits.plan(deposit, due))) return;
    return await sendReport(deps, deposit, due);
  }
  const { block, told } = deposit;
  const isCounted = told !== null && told.confirmations >= deposit.required_confirmations;
  if (block === null || isCounted) await deposits.close(deposit);
}

/** Finds the next report that is due. A dropped block comes first. */
function findDueReport(deposit: Deposit, head: number): PendingReport | undefined {
  const { block, told, amount, transaction_id, reports, required_confirmations } = deposit;
  const about = {
    callback_id: `${deposit.crypto_payment_id}:${transaction_id}:${reports}`,
    occurred_at: deposit.seen_at.toISOString(),
    transaction_id,
    amount: told?.amount ?? amount,
  };
  if (told !== null && told.block_hash !== block?.hash) {
    return { name: 'deposit_undone', callback: { ...about, block_hash: told.block_hash } };
  }
  if (block === null) return undefined;
  const confirmations = head - block.number + 1;
  const isNew = told === null && confirmations > 0;
  const isCounted = told !== null && told.confirmations >= required_confirmations;
  if (!isNew && (isCounted || confirmations < required_confirmations)) return undefined;
  const blockRef = { block_number: block.number, block_hash: block.hash };
  return { name: 'deposit', callback: { ...about, ...blockRef, confirmations } };
}

/** Delivers a report; if that fails, the next round does it again. */
async function sendReport(
  { deposits, deliver, log }: DepositReportDeps,
  { _id, crypto_payment_id: resource_id }: Deposit,
  report: PendingReport,
): Promise<void> {
  try {
    await deliver({ resource: 'crypto_payment', resource_id, ...report });
  } catch (err) {
    log.warn({ crypto_payment_id: resource_id, err }, 'deposit not reported, tried again later');
    return;
  }
  await deposits.markReported(_id, report, toReported(report));
}

function toReported({ name, callback }: PendingReport): ReportedDeposit | null {
  const { block_hash, confirmations = 0, amount = '' } = callback;
  if (name !== 'deposit' || block_hash === undefined) return null;
  return { block_hash, confirmations, amount };
}

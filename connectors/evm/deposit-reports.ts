import type { Logger } from '../../src/log';
import type { Deposit, Deposits, Told } from './deposits';
import type { Deliver, Telling } from './report';
import type { Passing } from './steps';

const PAGE = 100;

export interface DepositReportDeps {
  deposits: Deposits;
  deliver: Deliver;
  /** Blocks after which a deposit counts today, its own included. */
  confirmations: number;
  pass: Passing;
  log: Logger;
}

/** Tells the product how the deposits stand that it does not know so yet. */
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
  const { deposits, pass } = deps;
  const { telling } = deposit;
  if (telling !== null) return await tell(deps, deposit, telling);
  const required = requiredOf(deps, deposit);
  const due = dueReport(deposit, head, required);
  if (due !== undefined) {
    if (!(await deposits.plan(deposit, due))) return;
    pass('deposit to be told');
    return await tell(deps, deposit, due);
  }
  const { block, told } = deposit;
  const isDone = block === null || (told !== null && told.confirmations >= required);
  if (isDone) await deposits.close(deposit);
}

/** Blocks to report until: the payment keeps the number of its address when the setting is lowered. */
function requiredOf(
  { confirmations }: Pick<DepositReportDeps, 'confirmations'>,
  { required_confirmations = 0 }: Deposit,
): number {
  return Math.max(required_confirmations, confirmations);
}

/** Finds the next report that is due: first that a block no longer holds the deposit. */
function dueReport(deposit: Deposit, head: number, required: number): Telling | undefined {
  const { block, told, amount, transaction_id, reports } = deposit;
  const known = told?.confirmations ?? 0;
  const about = {
    callback_id: `${deposit.crypto_payment_id}:${transaction_id}:${reports}`,
    occurred_at: deposit.seen_at.toISOString(),
    transaction_id,
    amount: told?.amount ?? amount,
  };
  if (told !== null && told.block_hash !== block?.hash) {
    return { name: 'deposit_undone', callback: { ...about, block_hash: told.block_hash } };
  }
  const confirmations = block === null ? 0 : head - block.number + 1;
  if (block === null || known >= required || confirmations <= known) return undefined;
  const place = { block_number: block.number, block_hash: block.hash };
  return { name: 'deposit', callback: { ...about, ...place, confirmations } };
}

/** Brings a report to the product; one that it did not take is brought again in the next round. */
async function tell(
  { deposits, deliver, pass, log }: DepositReportDeps,
  { _id, crypto_payment_id: resource_id }: Deposit,
  telling: Telling,
): Promise<void> {
  try {
    await deliver({ resource: 'crypto_payment', resource_id, ...telling });
  } catch (err) {
    log.warn({ crypto_payment_id: resource_id, err }, 'deposit not told, tried again later');
    return;
  }
  pass('deposit told');
  await deposits.noteTold(_id, telling, toldBy(telling));
}

function toldBy({ name, callback }: Telling): Told | null {
  const { block_hash, confirmations = 0, amount = '' } = callback;
  if (name !== 'deposit' || block_hash === undefined) return null;
  return { block_hash, confirmations, amount };
}

import type { Logger } from '../../src/base/log';
import type { Deliver, PendingReport } from './report';
import {
  type End,
  getTransactionHash,
  type MinedTransaction,
  type Outcome,
  type Settlement,
  type Settlements,
} from './settlements';

export interface SettlementReportDeps {
  settlements: Settlements;
  deliver: Deliver;
  confirmations: number;
  now: () => Date;
  log: Logger;
}

export async function reportSettlements(deps: SettlementReportDeps, head: number): Promise<void> {
  for (const settlement of await deps.settlements.open()) {
    await reportOne(deps, settlement, head);
  }
}

async function reportOne(
  deps: SettlementReportDeps,
  settlement: Settlement,
  head: number,
): Promise<void> {
  const { settlements, confirmations } = deps;
  const { mined, reported, pending_report } = settlement;
  if (pending_report !== null) return await sendReport(deps, settlement, pending_report);
  const isConfirmed = mined !== null && head - mined.block.number + 1 >= confirmations;
  if (isConfirmed && reported.end === END[mined.outcome]) {
    await settlements.close(settlement);
    return;
  }
  const due = isConfirmed ? toFinalReport(mined) : toSentReport(settlement);
  if (due === undefined) return;
  const report = { name: due.name, callback: { ...describe(settlement, due), ...due.callback } };
  if (!(await settlements.plan(settlement, report))) return;
  await sendReport(deps, settlement, report);
}

/** Names the fact, so that a restored database repeats its callback IDs. */
function describe({ _id, mined, accepted_at }: Settlement, { name, callback }: DueReport) {
  const isEnd = mined !== null && name !== 'sent';
  const transaction = isEnd ? `${mined.hash}:${mined.block.hash}` : callback.transaction_id;
  const occurred_at = isEnd ? mined.mined_at : accepted_at;
  return { callback_id: `${_id}:${name}:${transaction}`, occurred_at: occurred_at.toISOString() };
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

/** After a failure, the next round delivers it again. */
async function sendReport(
  { settlements, deliver, now, log }: SettlementReportDeps,
  { _id, reported }: Settlement,
  report: PendingReport,
): Promise<void> {
  const { name, callback } = report;
  try {
    await deliver({ resource: 'crypto_settlement', resource_id: _id, ...report });
  } catch (err) {
    log.warn({ crypto_settlement_id: _id, err }, 'settlement not reported, tried again later');
    return;
  }
  const sent = callback.transaction_id ?? reported.sent;
  const end = name === 'completed' || name === 'failed' ? name : reported.end;
  await settlements.markReported(_id, report, { sent, end }, now());
}

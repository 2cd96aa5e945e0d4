import { randomUUID } from 'node:crypto';
import { omitUndefined } from '../../src/domain/defined';
import type { LineMovement, SepaBook, SepaLine } from '../../src/service/sepa/book';
import type { Report } from '../kit';

/** Payouts whose reports are delivered together. */
const BATCH_MAX = 200;

const RETURNED = 'The recipient’s bank sent the transfer back.';

/** Ends the delivery of reports, except of payouts with a new fact since. */
export async function endReports({ lines }: Pick<SepaBook, 'lines'>, batch: string): Promise<void> {
  await lines.updateMany(
    { report_batch: batch, unreported: true },
    { $set: { unreported: false, report_batch: null } },
  );
}

/** Collects the reports of payouts with new facts. Each fact has one callback ID. */
export async function collectReports({ lines }: Pick<SepaBook, 'lines'>) {
  const unreported = await lines.find({ unreported: true }).limit(BATCH_MAX).toArray();
  if (unreported.length === 0) return { reports: [], batch: null, more: false };
  const batch = randomUUID();
  const reports: Report[] = [];
  for (const line of unreported) {
    const facts = { failure: line.failure, booked: line.booked, returned: line.returned };
    const marked = await lines.updateOne(
      { _id: line._id, unreported: true, ...facts },
      { $set: { report_batch: batch } },
    );
    if (marked.matchedCount > 0) reports.push(...buildReports(line));
  }
  return { reports, batch, more: unreported.length === BATCH_MAX };
}

/** Builds the reports of all facts of a payout, in their order. */
export function buildReports({
  _id,
  amount,
  currency,
  failure,
  booked,
  returned,
}: Pick<SepaLine, '_id' | 'amount' | 'currency' | 'failure' | 'booked' | 'returned'>): Report[] {
  const payout = { resource: 'payout', resource_id: _id } as const;
  const describeMovement = (fact: LineMovement) =>
    omitUndefined({
      occurred_at: fact.at,
      bank_reference: fact.bank_reference ?? undefined,
      value_date: fact.value_date ?? undefined,
      ...(fact.amount === amount ? {} : { amount: fact.amount, currency }),
    });
  const reports: Report[] = [];
  if (booked !== null) {
    const callback = { callback_id: `sepa:booked:${_id}`, ...describeMovement(booked) };
    reports.push({ ...payout, name: 'completed', callback });
  }
  if (failure !== null) {
    const { code, message: reason, at: occurred_at } = failure;
    const about = omitUndefined({ code: code ?? undefined, reason, occurred_at });
    const callback = { callback_id: `sepa:failed:${_id}`, ...about };
    reports.push({ ...payout, name: 'failed', callback });
  }
  if (returned !== null) {
    const about = omitUndefined({ code: returned.code ?? undefined, reason: RETURNED });
    const callback = {
      callback_id: `sepa:returned:${_id}`,
      ...describeMovement(returned),
      ...about,
    };
    reports.push({ ...payout, name: 'returned', callback });
  }
  return reports;
}

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
    const { failure, booked, returned, others } = line;
    const facts = { failure, booked, returned, others };
    const marked = await lines.updateOne(
      { _id: line._id, unreported: true, ...facts },
      { $set: { report_batch: batch } },
    );
    if (marked.matchedCount > 0) reports.push(...buildReports(line));
  }
  return { reports, batch, more: unreported.length === BATCH_MAX };
}

type ReportedLine = Pick<
  SepaLine,
  '_id' | 'amount' | 'currency' | 'failure' | 'booked' | 'returned' | 'others'
>;

/** Builds the reports of all facts of a payout, in their order. */
export function buildReports(line: ReportedLine): Report[] {
  const { _id, failure, booked, returned, others } = line;
  const reports: Report[] = [];
  const payout = { resource: 'payout', resource_id: _id } as const;
  const add = (name: 'completed' | 'failed' | 'returned', callback: Report['callback']) =>
    reports.push({ ...payout, name, callback });
  const addOthers = (kind: 'booked' | 'returned') => {
    for (const fact of others.filter((other) => other.kind === kind)) {
      const { amount, currency } = fact;
      const callback_id = buildOtherId(_id, fact);
      const about = { ...describeMovement(line, fact), ...describeReturn(kind, fact) };
      add(kind === 'booked' ? 'completed' : 'returned', {
        ...about,
        callback_id,
        amount,
        currency,
      });
    }
  };
  if (booked !== null) {
    add('completed', { callback_id: `sepa:booked:${_id}`, ...describeMovement(line, booked) });
  }
  addOthers('booked');
  if (failure !== null) {
    const { code, message: reason, at: occurred_at } = failure;
    const about = omitUndefined({ code: code ?? undefined, reason, occurred_at });
    add('failed', { callback_id: `sepa:failed:${_id}`, ...about });
  }
  if (returned !== null) {
    const about = { ...describeMovement(line, returned), ...describeReturn('returned', returned) };
    add('returned', { callback_id: `sepa:returned:${_id}`, ...about });
  }
  addOthers('returned');
  return reports;
}

/** Builds the callback ID of a further movement: one for each reference and amount. */
function buildOtherId(
  payout_id: string,
  { kind, bank_reference, amount, currency }: SepaLine['others'][number],
): string {
  return `sepa:${kind}:${payout_id}:${bank_reference ?? ''}:${amount}${currency}`;
}

function describeMovement({ amount, currency }: ReportedLine, fact: LineMovement) {
  const isSame = fact.amount === amount && fact.currency === currency;
  return omitUndefined({
    occurred_at: fact.at,
    bank_reference: fact.bank_reference ?? undefined,
    value_date: fact.value_date ?? undefined,
    ...(isSame ? {} : { amount: fact.amount, currency: fact.currency }),
  });
}

function describeReturn(kind: 'booked' | 'returned', { code }: LineMovement) {
  return kind === 'booked' ? {} : omitUndefined({ code: code ?? undefined, reason: RETURNED });
}

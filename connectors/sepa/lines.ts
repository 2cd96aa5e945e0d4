import { isDuplicateKey } from '../../src/base/mongo';
import { type SepaBook, type SepaLine, shortenId } from '../../src/service/banks/sepa/book';
import type { CancelAnswer, PayoutInstruction, PayoutLookup } from '../contract/activities';

const CANCELLED = {
  outcome: 'refused',
  code: 'cancelled',
  message: 'The payout was cancelled before it reached the bank.',
} as const;

type Lines = Pick<SepaBook, 'lines'>;

/** A repeat adds nothing. */
export async function addLine(
  { lines }: Lines,
  { payout_id, version, amount, currency, method, livemode }: PayoutInstruction,
  now: Date,
): Promise<void> {
  const line: SepaLine = {
    ...{ _id: payout_id, state: 'open', file_id: null, former_files: [], added_at: now },
    wait_until: null,
    ...{ version, amount, currency, method, livemode },
    ...{ failure: null, duplicate: null, booked: null, returned: null, others: [] },
    ...{ unreported: false, report_batch: null },
  };
  try {
    await lines.insertOne(line);
  } catch (error) {
    if (!isDuplicateKey(error)) throw error;
  }
}

export function toInstruction(line: SepaLine): PayoutInstruction {
  const { _id: payout_id, version, amount, currency, method, livemode } = line;
  return { payout_id, version, amount, currency, method, livemode };
}

/** A payout in the book has arrived, whatever the bank says. */
export async function lookUpLine({ lines }: Lines, payout_id: string): Promise<PayoutLookup> {
  const line = await lines.findOne({ _id: payout_id });
  if (line === null) return { outcome: 'not_found' };
  if (line.state === 'cancelled' || line.state === 'dropped') return CANCELLED;
  const bank_reference = line.booked?.bank_reference ?? shortenId(payout_id);
  // An answer names no amount: a different one is left to the report.
  const isSent = line.booked?.amount === line.amount && line.booked.currency === line.currency;
  return { outcome: isSent ? 'sent' : 'submitted', bank_reference };
}

/** Cancels unless a file may carry the payout: the same write takes it out of the batch. */
export async function cancelLine(
  { lines, files }: Pick<SepaBook, 'lines' | 'files'>,
  payout_id: string,
): Promise<CancelAnswer> {
  const waiting = await lines.findOne({ _id: payout_id, state: 'waiting' });
  const file = waiting && (await files.findOne({ _id: waiting.file_id ?? '' }));
  // Its refusal was not all that the bank has said about it.
  if (file?.may_be_executed) return { outcome: 'too_late' };
  const cancelled = await lines.findOneAndUpdate(
    { _id: payout_id, state: { $in: ['open', 'waiting'] } },
    { $set: { state: 'cancelled', file_id: null } },
  );
  if (cancelled !== null) return { outcome: 'cancelled' };
  const line = await lines.findOne({ _id: payout_id });
  switch (line?.state) {
    case undefined:
    case 'assigned':
      // Its file is being written, or not: the look-up decides.
      return { outcome: 'unknown' };
    case 'cancelled':
    case 'dropped':
    case 'failed':
      return { outcome: 'cancelled' };
    default:
      return { outcome: 'too_late' };
  }
}

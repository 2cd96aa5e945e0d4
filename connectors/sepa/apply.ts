import type { Logger } from '../../src/base/log';
import type { SepaBook, SepaFile } from '../../src/service/banks/sepa/book';
import { hasArrivedBefore, type StatusReport } from './messages';

export interface ApplyDeps {
  book: Pick<SepaBook, 'lines' | 'files'>;
  log: Pick<Logger, 'info' | 'warn' | 'error'>;
  now: () => Date;
}

const REJECTED = 'RJCT';

export class ForeignMessage extends Error {
  override readonly name = 'ForeignMessage';
}

/**
 * Repeats change nothing.
 * @throws ForeignMessage for a file that this connector has not sent
 */
export async function applyStatus(deps: ApplyDeps, report: StatusReport): Promise<void> {
  const { book, log } = deps;
  const file = await book.files.findOne({ _id: report.file_id, state: { $ne: 'open' } });
  if (file === null) {
    throw new ForeignMessage('It answers a file that this connector has not sent.');
  }
  const isRejected = report.status === REJECTED;
  const codes = [report.code, ...report.payouts.map(({ code }) => code)];
  // Of a file that may have arrived before, no payout is failed or freed, whatever else is said.
  const duplicateCode = isRejected ? codes.find(hasArrivedBefore) : undefined;
  if (duplicateCode !== undefined) await callDuplicate(deps, file, { code: duplicateCode });
  else {
    for (const each of report.payouts.filter(({ status }) => status === REJECTED)) {
      const { payout_id, code } = each;
      if (!hasArrivedBefore(code)) await failLine(deps, file, each);
      else await callDuplicate(deps, file, { code, payout_id });
    }
    if (isRejected) return await refuseFile(deps, file, report.code);
  }
  const status = duplicateCode ?? report.status;
  if (status === null) return await endFiles(deps, [file._id]);
  // Also of a file that was refused before: the order of two answers proves nothing.
  await book.files.updateOne({ _id: file._id }, { $set: { may_be_executed: true } });
  const acknowledged = await book.files.updateOne(
    { _id: file._id, state: { $in: ['cut', 'sent'] } },
    { $set: { state: 'acknowledged', bank_status: status } },
  );
  if (acknowledged.modifiedCount > 0) log.info({ file_id: file._id, status }, 'file acknowledged');
  await endFiles(deps, [file._id]);
  // Bookings may come before the answer.
  await book.files.updateOne(
    { _id: file._id, state: 'booked', bank_status: null },
    { $set: { bank_status: status } },
  );
}

/**
 * The bank may execute the first copy of the payout, or of all in the file.
 * @see docs/sepa.md#called-a-duplicate
 */
async function callDuplicate(
  { book, log, now }: ApplyDeps,
  { _id: file_id }: SepaFile,
  { code, payout_id }: { code: string; payout_id?: string },
): Promise<void> {
  await book.files.updateOne({ _id: file_id }, { $set: { may_be_executed: true } });
  const called = await book.lines.updateMany(
    {
      ...(payout_id !== undefined && { _id: payout_id }),
      ...{ file_id, state: { $in: ['in_file', 'waiting'] }, duplicate: null },
    },
    {
      $set: { duplicate: { code, at: now().toISOString() }, unreported: true, report_batch: null },
    },
  );
  if (called.modifiedCount === 0) return;
  const about = { file_id, payout_id, code, count: called.modifiedCount };
  log.error(about, 'the bank calls payouts duplicates');
}

/**
 * Refuses a whole file: payouts of which the bank says no more wait for an operator.
 * @see docs/sepa.md#a-refused-file
 */
async function refuseFile(
  { book, log, now }: ApplyDeps,
  { _id: file_id }: SepaFile,
  code: string | null,
): Promise<void> {
  const moved = await book.lines.findOne({ file_id, state: { $in: ['booked', 'returned'] } });
  if (moved !== null) {
    log.error({ file_id, code }, 'the bank refuses a file of which it has booked payouts');
    return;
  }
  const refusal = { code, at: now() };
  const refused = await book.files.updateOne(
    { _id: file_id, state: { $in: ['cut', 'sent', 'acknowledged'] } },
    { $set: { state: 'refused', bank_status: REJECTED, refusal, ended_at: now() } },
  );
  // After the file, so that a payout waits only while no file can carry it.
  const file = await book.files.findOne({ _id: file_id, state: 'refused' });
  if (file === null) return;
  await book.lines.updateMany({ file_id, state: 'in_file' }, { $set: { state: 'waiting' } });
  if (refused.modifiedCount > 0) log.error({ file_id, code }, 'the bank has refused a file');
}

async function failLine(
  { book, log, now }: ApplyDeps,
  { _id: file_id }: SepaFile,
  { payout_id, code }: StatusReport['payouts'][number],
): Promise<void> {
  const message = 'The bank rejected the transfer.';
  const failure = { code, message, at: now().toISOString() };
  const failed = await book.lines.updateOne(
    // One that contradicts a movement is reported, too.
    { _id: payout_id, file_id, state: { $in: ['in_file', 'booked', 'returned'] }, failure: null },
    [
      {
        $set: {
          state: { $cond: [{ $eq: ['$state', 'in_file'] }, 'failed', '$state'] },
          ...{ failure, unreported: true, report_batch: null },
        },
      },
    ],
  );
  if (failed.modifiedCount > 0) return;
  const line = await book.lines.findOne({ _id: payout_id, file_id });
  if (line?.failure == null)
    log.error({ payout_id, file_id, code }, 'a foreign payout was rejected');
}

export async function endFiles({ book, now }: ApplyDeps, ids: readonly string[]): Promise<void> {
  for (const file_id of ids) {
    if ((await book.lines.findOne({ file_id, state: 'in_file' })) !== null) continue;
    await book.files.updateOne(
      { _id: file_id, state: { $in: ['cut', 'sent', 'acknowledged'] } },
      { $set: { state: 'booked', ended_at: now() } },
    );
  }
}

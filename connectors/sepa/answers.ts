import type { PayeeResult } from '../../src/domain/banks/callback';
import { type SepaFile, STATUSES_MAX } from '../../src/service/banks/sepa/book';
import {
  type FileVerification,
  hasArrivedBefore,
  isWithdrawn,
  PENDING,
  type StatusReport,
  VERIFICATION,
} from './messages';
import { type ApplyDeps, endFiles } from './movements';

export interface AnswerDeps extends ApplyDeps {
  /** `SEPA_INSTANT_FINAL`: what completes an instant payout. */
  instantFinal?: 'status' | 'booking';
}

/** Final statuses: the recipient has the money, or the payer's account was debited for it. */
const EXECUTED: readonly string[] = ['ACCC', 'ACSC'];

const REJECTED = 'RJCT';

export class ForeignMessage extends Error {
  override readonly name = 'ForeignMessage';
}

/**
 * Repeats change nothing. Of several answers, the newest by the bank's time is the state of the file.
 * @throws ForeignMessage for a file that this connector has not sent
 */
export async function applyStatus(deps: AnswerDeps, report: StatusReport): Promise<void> {
  const { book, log } = deps;
  const found = await book.files.findOne({ _id: report.file_id, state: { $ne: 'open' } });
  if (found === null) {
    throw new ForeignMessage('It answers a file that this connector has not sent.');
  }
  const { message_id, status: own, code, verification } = report;
  const created_at = report.created_at ?? deps.now().toISOString();
  const answer = { created_at, message_id, status: own, code };
  const push = { $each: [answer], $sort: { created_at: 1 as const }, $slice: -STATUSES_MAX };
  await book.files.updateOne(
    { _id: found._id, statuses: { $not: { $elemMatch: answer } } },
    { $push: { statuses: push } },
  );
  // Without this answer.
  const file = { ...found, statuses: found.statuses ?? [] };
  const isNewest = file.statuses.every((each) => each.created_at <= created_at);
  if (verification !== null) await noteResults(deps, file, verification, created_at);
  if (file.instant) await executeLines(deps, file, report);
  const isRejected = own === REJECTED;
  const codes = [code, ...report.payouts.map((each) => each.code)];
  // Of a file that may have arrived before, no payout is failed or freed, whatever else is said.
  const duplicateCode = isRejected ? codes.find(hasArrivedBefore) : undefined;
  const status = duplicateCode ?? own;
  if (isNewest && status !== null) {
    // Ends the wait for a release, unless the bank still says no more.
    const stays = verification?.isAlone === true || PENDING.includes(status);
    await book.files.updateOne(
      { _id: file._id },
      { $set: { bank_status: status }, ...(stays ? {} : { $unset: { awaiting_release: '' } }) },
    );
  }
  if (duplicateCode !== undefined) await callDuplicate(deps, file, { code: duplicateCode });
  else {
    let withdrawn: string | null = null;
    for (const each of report.payouts.filter((payout) => payout.status === REJECTED)) {
      const { payout_id } = each;
      const why = each.code ?? (isRejected ? code : null);
      if (hasArrivedBefore(why)) await callDuplicate(deps, file, { code: why, payout_id });
      else if (!isWithdrawn(why)) await failLine(deps, file, each);
      else if (isNewest) {
        withdrawn = why;
        // It was not executed, and waits for an operator.
        const taken = await book.lines.updateOne(
          { _id: payout_id, file_id: file._id, state: 'in_file' },
          { $set: { state: 'waiting', withdrawn: why } },
        );
        const about = { payout_id, file_id: file._id, code: why };
        if (taken.modifiedCount > 0) log.error(about, 'payout withdrawn');
      }
    }
    const states = ['in_file', 'executed', 'booked', 'returned'] as const;
    const others = { file_id: file._id, state: { $in: [...states] } };
    const isEmpty = withdrawn !== null && (await book.lines.findOne(others)) === null;
    if (isNewest && (isRejected || isEmpty)) {
      return await refuseFile(deps, file, code ?? withdrawn);
    }
    if (isRejected) log.warn({ file_id: file._id, code }, 'the bank has answered otherwise since');
  }
  if (verification?.isAlone === true) {
    const isOver = file.statuses.some(
      (each) => each.created_at > created_at && !WAITING.includes(each.status),
    );
    if (!isOver) await awaitRelease(deps, file, verification, created_at);
    return await endFiles(deps, [file._id]);
  }
  if (status === null || status === REJECTED) return await endFiles(deps, [file._id]);
  // Also of a file that was refused before: the order of two answers proves nothing.
  await book.files.updateOne({ _id: file._id }, { $set: { may_be_executed: true } });
  const acknowledged = await book.files.updateOne(
    { _id: file._id, state: { $in: ['cut', 'sent'] } },
    { $set: { state: 'acknowledged' } },
  );
  if (acknowledged.modifiedCount > 0) log.info({ file_id: file._id, status }, 'file acknowledged');
  await endFiles(deps, [file._id]);
}

/** @see docs/sepa.md#verification-of-payee */
async function noteResults(
  { book }: AnswerDeps,
  { _id }: SepaFile,
  { results, others, listed }: FileVerification,
  checked_at: string,
): Promise<void> {
  const build = (ids: object, result: PayeeResult) => ({
    filter: {
      ...ids,
      $and: [
        { $or: [{ file_id: _id }, { former_files: _id }] },
        {
          $or: [
            { verification: { $exists: false } },
            { 'verification.checked_at': { $lt: checked_at } },
          ],
        },
      ],
    },
    update: {
      $set: { verification: { result, checked_at }, unreported: true, report_batch: null },
    },
  });
  const writes = [...results].map(([id, result]) => ({ updateOne: build({ _id: id }, result) }));
  if (writes.length > 0) await book.lines.bulkWrite(writes, { ordered: false });
  if (others === null) return;
  const { filter, update } = build({ _id: { $nin: [...listed] } }, others);
  await book.lines.updateMany(filter, update);
}

/** The bank may hold the file until somebody releases or withdraws it there. */
async function awaitRelease(
  { book, log, now }: AnswerDeps,
  { _id }: SepaFile,
  { results, others }: FileVerification,
  checked_at: string,
): Promise<void> {
  if (results.size === 0 && others === null) return;
  const since = { $ifNull: ['$awaiting_release.since', now()] };
  const newest = { $max: ['$awaiting_release.checked_at', checked_at] };
  const held = await book.files.updateOne(
    {
      ...{ _id, state: { $in: ['cut', 'sent', 'acknowledged'] } },
      ...{ 'awaiting_release.checked_at': { $ne: checked_at } },
      'released.checked_at': { $not: { $gte: checked_at } },
    },
    [{ $set: { awaiting_release: { since, checked_at: newest } } }],
  );
  if (held.modifiedCount > 0) log.warn({ file_id: _id }, 'the bank may wait for a release');
}

/**
 * Completes instant payouts by their own final status, also where their file was refused, or they
 * were rejected, before.
 * @see docs/sepa.md#instant
 */
async function executeLines(
  { book, log, now, instantFinal }: AnswerDeps,
  { _id: file_id }: SepaFile,
  { payouts }: StatusReport,
): Promise<void> {
  const harmless = [REJECTED, ...PENDING, ...VERIFICATION];
  const own = payouts.filter(({ isOfBatch, status }) => !isOfBatch && !harmless.includes(status));
  if (own.length === 0) return;
  await book.files.updateOne({ _id: file_id }, { $set: { may_be_executed: true } });
  if (instantFinal === 'booking') return;
  for (const { payout_id, status } of own.filter((each) => EXECUTED.includes(each.status))) {
    const line = {
      ...{ _id: payout_id, $or: [{ file_id }, { former_files: file_id }] },
      ...{ executed: { $exists: false }, booked: null },
    };
    const executed = { status, at: now().toISOString() };
    const isBack = { $eq: ['$state', 'returned'] };
    const done = await book.lines.updateOne(line, [
      {
        $set: {
          state: { $cond: [isBack, '$state', 'executed'] },
          ...{ executed, unreported: true, report_batch: null },
        },
      },
    ]);
    if (done.modifiedCount > 0) log.info({ payout_id, file_id, status }, 'payout executed');
  }
}

/**
 * The bank may execute the first copy of the payout, or of all in the file.
 * @see docs/sepa.md#called-a-duplicate
 */
async function callDuplicate(
  { book, log, now }: AnswerDeps,
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
  { book, log, now }: AnswerDeps,
  { _id: file_id, statuses = [] }: SepaFile,
  code: string | null,
): Promise<void> {
  const moved = await book.lines.findOne({
    ...{ file_id, state: { $in: ['executed', 'booked', 'returned'] } },
  });
  if (moved !== null) {
    log.error({ file_id, code }, 'the bank refuses a file of which it has booked payouts');
    return;
  }
  const refusal = { code, at: now() };
  // Nothing of a file that was withdrawn before the bank took it on is executed.
  const isUnexecuted =
    isWithdrawn(code) &&
    statuses.every(
      (each) =>
        (WAITING.includes(each.status) || each.status === REJECTED) && !hasArrivedBefore(each.code),
    ) &&
    (await book.lines.findOne({ file_id, duplicate: { $ne: null } })) === null;
  const proof = isUnexecuted ? { may_be_executed: false } : {};
  const refused = await book.files.updateOne(
    { _id: file_id, state: { $in: ['cut', 'sent', 'acknowledged'] } },
    { $set: { state: 'refused', refusal, ended_at: now(), ...proof } },
  );
  // After the file, so that a payout waits only while no file can carry it.
  const file = await book.files.findOne({ _id: file_id, state: 'refused' });
  if (file === null) return;
  await book.lines.updateMany({ file_id, state: 'in_file' }, { $set: { state: 'waiting' } });
  if (refused.modifiedCount > 0) log.error({ file_id, code }, 'the bank has refused a file');
}

/** Statuses of a file that the bank has not taken on. */
const WAITING: readonly (string | null)[] = [null, ...PENDING, ...VERIFICATION];

async function failLine(
  { book, log, now }: AnswerDeps,
  { _id: file_id }: SepaFile,
  { payout_id, code }: StatusReport['payouts'][number],
): Promise<void> {
  const message = 'The bank rejected the transfer.';
  const failure = { code, message, at: now().toISOString() };
  const failed = await book.lines.updateOne(
    // One that contradicts a movement is reported, too.
    {
      ...{ _id: payout_id, file_id, failure: null },
      state: { $in: ['in_file', 'executed', 'booked', 'returned'] },
    },
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

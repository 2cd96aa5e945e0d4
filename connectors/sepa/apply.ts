import type { Logger } from '../../src/base/log';
import type { PayeeResult } from '../../src/domain/callback/callback';
import type { AwaitedFile } from '../../src/domain/capabilities';
import {
  countResults,
  type FileStatus,
  type LineMovement,
  type MovementReference,
  type SepaBook,
  type SepaFile,
  type SepaLine,
  STATUSES_MAX,
} from '../../src/service/banks/sepa/book';
import type { PayoutStore } from '../../src/store/payouts';
import {
  type FileVerification,
  hasArrivedBefore,
  isWithdrawn,
  type Movement,
  PENDING,
  type StatusReport,
  VERIFICATION,
} from './messages';

export interface ApplyDeps {
  book: Pick<SepaBook, 'lines' | 'files'>;
  log: Pick<Logger, 'info' | 'warn' | 'error'>;
  now: () => Date;
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
export async function applyStatus(deps: ApplyDeps, report: StatusReport): Promise<void> {
  const { book, log } = deps;
  const found = await book.files.findOne({ _id: report.file_id, state: { $ne: 'open' } });
  if (found === null) {
    throw new ForeignMessage('It answers a file that this connector has not sent.');
  }
  const { message_id, status: own, code, verification } = report;
  const created_at = report.created_at ?? deps.now().toISOString();
  const answer = { created_at, message_id, status: own, code };
  const file = { ...found, statuses: await keepStatus(deps, found, answer) };
  const isNewest = file.statuses.every((each) => each.created_at <= created_at);
  if (verification !== null) await noteResults(deps, file, verification, created_at);
  if (file.instant) await executeLines(deps, file, report);
  const isRejected = own === REJECTED;
  const codes = [code, ...report.payouts.map((each) => each.code)];
  // Of a file that may have arrived before, no payout is failed or freed, whatever else is said.
  const duplicateCode = isRejected ? codes.find(hasArrivedBefore) : undefined;
  const status = duplicateCode ?? own;
  if (isNewest && status !== null) await setBankStatus(deps, file, status, verification);
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
        await withdrawLine(deps, file, { ...each, code: why });
      }
    }
    const isEmpty = withdrawn !== null && (await isAllWithdrawn(deps, file));
    if (isNewest && (isRejected || isEmpty)) {
      return await refuseFile(deps, file, code ?? withdrawn);
    }
    if (isRejected) log.warn({ file_id: file._id, code }, 'the bank has answered otherwise since');
  }
  if (verification?.isAlone === true) {
    if (!file.statuses.some((each) => endsWait(each, created_at))) {
      await awaitRelease(deps, file, verification, created_at);
    }
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

/** Stores an answer once. @returns those stored, without it */
async function keepStatus(
  { book }: ApplyDeps,
  { _id, statuses = [] }: SepaFile,
  answer: FileStatus,
): Promise<FileStatus[]> {
  const push = { $each: [answer], $sort: { created_at: 1 as const }, $slice: -STATUSES_MAX };
  await book.files.updateOne(
    { _id, statuses: { $not: { $elemMatch: answer } } },
    { $push: { statuses: push } },
  );
  return statuses;
}

/** @see docs/sepa.md#verification-of-payee */
async function noteResults(
  { book }: ApplyDeps,
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

/** Ends the wait for a release, unless the bank still says no more. */
async function setBankStatus(
  { book }: ApplyDeps,
  { _id }: SepaFile,
  bank_status: string,
  verification: FileVerification | null,
): Promise<void> {
  const stays = verification?.isAlone === true || PENDING.includes(bank_status);
  await book.files.updateOne(
    { _id },
    { $set: { bank_status }, ...(stays ? {} : { $unset: { awaiting_release: '' } }) },
  );
}

/** The bank may hold the file until somebody releases or withdraws it there. */
async function awaitRelease(
  { book, log, now }: ApplyDeps,
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

/** The payout was not executed, and waits for an operator. */
async function withdrawLine(
  { book, log }: ApplyDeps,
  { _id: file_id }: SepaFile,
  { payout_id, code }: { payout_id: string; code: string },
): Promise<void> {
  const withdrawn = await book.lines.updateOne(
    { _id: payout_id, file_id, state: 'in_file' },
    { $set: { state: 'waiting', withdrawn: code } },
  );
  if (withdrawn.modifiedCount > 0) log.error({ payout_id, file_id, code }, 'payout withdrawn');
}

async function isAllWithdrawn({ book }: ApplyDeps, { _id: file_id }: SepaFile): Promise<boolean> {
  const states = ['in_file', 'executed', 'booked', 'returned'] as const;
  return (await book.lines.findOne({ file_id, state: { $in: [...states] } })) === null;
}

/**
 * Completes instant payouts by their own final status, also where their file was refused, or they
 * were rejected, before.
 * @see docs/sepa.md#instant
 */
async function executeLines(
  { book, log, now, instantFinal }: ApplyDeps,
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
    statuses.every(saysNothingOfExecution) &&
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

function saysNothingOfExecution({ status, code }: FileStatus): boolean {
  return (WAITING.includes(status) || status === REJECTED) && !hasArrivedBefore(code);
}

/** Whether a later answer ends the wait for a release. */
function endsWait({ status, created_at }: FileStatus, checked_at: string): boolean {
  return created_at > checked_at && !WAITING.includes(status);
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

async function endFiles({ book, now }: ApplyDeps, ids: readonly string[]): Promise<void> {
  for (const file_id of ids) {
    if ((await book.lines.findOne({ file_id, state: 'in_file' })) !== null) continue;
    await book.files.updateOne(
      { _id: file_id, state: { $in: ['cut', 'sent', 'acknowledged'] } },
      { $set: { state: 'booked', ended_at: now() } },
    );
  }
}

const AWAITED_MAX = 100;

/**
 * Lists instant files with payouts that have no result in time: of the bank, or of an operator. One
 * that cannot leave is late from its cut on.
 * @see docs/sepa.md#instant
 */
export async function listOverdueFiles(
  { book, now }: Pick<ApplyDeps, 'book' | 'now'>,
  payouts: Pick<PayoutStore, 'listUnsent'>,
  seconds: number,
): Promise<Omit<AwaitedFile, 'livemode'>[]> {
  const states = ['cut', 'sent', 'acknowledged'] as const;
  const open = book.files
    .find({ instant: true, state: { $in: [...states] } })
    .sort({ created_at: 1 })
    .limit(AWAITED_MAX);
  const rows: Omit<AwaitedFile, 'livemode'>[] = [];
  for (const { _id: file_id, sent_at, created_at } of await open.toArray()) {
    const since = (sent_at ?? created_at).getTime() + seconds * 1_000;
    if (since > now().getTime()) continue;
    const lines = await book.lines.find({ file_id, state: 'in_file' }).toArray();
    const unsent = new Set(await payouts.listUnsent(lines.map(({ _id }) => _id)));
    const late = lines.filter(({ _id }) => unsent.has(_id));
    if (late.length === 0) continue;
    const amount = late.reduce((sum, line) => sum + line.amount, 0);
    const results = await countResults(book.lines, { file_id });
    const reason = 'file_overdue' as const;
    rows.push({ file_id, reason, since, payouts: late.length, amount, results });
  }
  return rows;
}

/**
 * Reports which files wait for a release or are overdue, to the service, where it has changed. A
 * booking ends the wait for a release.
 * @param report returns whether it has stored them
 */
export function createReleaseReport(
  { lines, files }: Pick<SepaBook, 'lines' | 'files'>,
  livemode: boolean,
  listOverdue: () => Promise<Omit<AwaitedFile, 'livemode'>[]>,
  report: (rows: AwaitedFile[]) => Promise<boolean>,
): () => Promise<void> {
  let reported = '';
  return async () => {
    const rows: AwaitedFile[] = [];
    const awaited = { 'awaiting_release.since': { $type: 'date' as const } };
    const held = files.find(awaited).sort({ 'awaiting_release.since': 1 }).limit(AWAITED_MAX);
    for (const { _id, state, payouts, amount, awaiting_release } of await held.toArray()) {
      const ended = { file_id: _id, state: { $in: ['executed', 'booked', 'returned'] as const } };
      const isOver = state === 'booked' || state === 'refused';
      if (isOver || (await lines.findOne({ ...ended })) !== null) {
        await files.updateOne({ _id }, { $unset: { awaiting_release: '' } });
      } else if (awaiting_release !== undefined) {
        const results = await countResults(lines, { file_id: _id });
        const since = awaiting_release.since.getTime();
        const reason = 'awaiting_release' as const;
        rows.push({ file_id: _id, reason, livemode, since, payouts, amount, results });
      }
    }
    rows.push(...(await listOverdue()).map((row) => ({ ...row, livemode })));
    const text = JSON.stringify(rows);
    if (text !== reported && (await report(rows))) reported = text;
  };
}

type Facts = Pick<SepaLine, 'state' | 'booked' | 'returned' | 'others'>;

const OTHER = 'the bank has moved the money of a payout again, or otherwise';

/**
 * Counts each movement once, whichever messages report it.
 * @returns number of payouts
 */
export async function applyMovements(
  deps: ApplyDeps,
  movements: readonly Movement[],
): Promise<number> {
  const byPayout = new Map<string, Movement[]>();
  for (const movement of movements) {
    const own = byPayout.get(movement.payout_id) ?? [];
    own.push(movement);
    byPayout.set(movement.payout_id, own);
  }
  const files = new Set<string>();
  let applied = 0;
  for (const [payout_id, own] of byPayout) {
    const line = await applyToLine(deps, payout_id, own);
    if (line === null) continue;
    applied += 1;
    if (line.file_id !== null) files.add(line.file_id);
  }
  await endFiles(deps, [...files]);
  return applied;
}

async function applyToLine(
  { book, log, now }: ApplyDeps,
  _id: string,
  movements: readonly Movement[],
): Promise<SepaLine | null> {
  for (;;) {
    const line = await book.lines.findOne({ _id });
    if (line === null) return null;
    const read = movements.map((movement) => pickReading(movement, line));
    const change = changeLine(line, read, now().toISOString());
    if (change === undefined) return line;
    const { booked, returned, others } = line;
    const applied = await book.lines.updateOne({ _id, booked, returned, others }, { $set: change });
    // Otherwise another process has changed the facts.
    if (applied.matchedCount === 0) continue;
    if ((change.others ?? others).length > others.length) log.error({ payout_id: _id }, OTHER);
    return line;
  }
}

export function changeLine(
  line: Facts,
  movements: readonly Movement[],
  at: string,
): Partial<SepaLine> | undefined {
  const all = [line.booked, line.returned, ...line.others].filter((fact) => fact !== null);
  let facts = line;
  let change: Partial<SepaLine> | undefined;
  for (const movement of putNamedFirst(all, movements)) {
    const next = changeFacts(facts, movement, at);
    facts = { ...facts, ...next };
    change = next === undefined ? change : { ...change, ...next };
  }
  return change;
}

function changeFacts(line: Facts, movement: Movement, at: string): Partial<SepaLine> | undefined {
  const { kind, code } = movement;
  const isFirst = kind === 'booked' || kind === 'returned';
  // Notifications have no sum that proves the sign: it may be that of what is reversed.
  const isUncertain = kind === 'return_reversed' && movement.source === 'notification';
  if (isUncertain && line.returned === null) return;
  const first = isFirst ? line[kind] : null;
  const facts = [first, ...line.others.filter((other) => other.kind === kind)];
  const sameKind = facts.filter((each) => each !== null);
  const known =
    findFact(sameKind, movement) ??
    (kind === 'returned' ? findGrossOrNet(sameKind, movement) : undefined);
  if (known !== undefined) {
    const named = nameFact(known, movement);
    if (named === known) return;
    const name = <F extends LineMovement | null>(fact: F): F =>
      fact === known ? { ...fact, references: named.references } : fact;
    const others = line.others.map(name);
    return isFirst ? { [kind]: name(line[kind]), others } : { others };
  }
  const fact = buildFact(movement, code, at);
  const report = { unreported: true, report_batch: null };
  if (!isFirst || first !== null) return { others: [...line.others, { kind, ...fact }], ...report };
  const state = kind === 'booked' && line.returned !== null ? line.state : kind;
  return { [kind]: fact, state, ...report };
}

/** Reads a movement as what we have instructed, where the charges that the bank states allow it. */
export function pickReading<M extends Pick<Movement, 'amount' | 'readings' | 'currency'>>(
  movement: M,
  { amount, currency }: Pick<SepaLine, 'amount' | 'currency'>,
): M {
  const isOurs = movement.currency === currency && movement.readings?.includes(amount);
  return isOurs && movement.amount !== amount ? { ...movement, amount } : movement;
}

type Reported = Pick<
  Movement,
  'source' | 'amount' | 'currency' | 'value_date' | 'bank_reference' | 'also'
>;

/** Named movements come first, so that no other takes their fact. */
export function putNamedFirst<M extends Reported>(
  facts: readonly LineMovement[],
  movements: readonly M[],
): M[] {
  const named = movements.filter((movement) => facts.some((fact) => hasReference(fact, movement)));
  return [...named, ...movements.filter((movement) => !named.includes(movement))];
}

/**
 * Finds the fact by its reference, or one of the same amount that no message of that source has
 * named yet.
 */
export function findFact(
  all: readonly LineMovement[],
  reported: Reported,
): LineMovement | undefined {
  const { source, amount, currency, bank_reference: id } = reported;
  const facts = all.filter((fact) => fact.amount === amount && fact.currency === currency);
  if (id === null) return facts[0];
  const isUnnamed = ({ references }: LineMovement) =>
    references.every((each) => each.source !== source);
  const isNamed = ({ references }: LineMovement) => references.some((each) => each.id === id);
  return (
    facts.find(isNamed) ??
    facts.find((fact) => hasReference(fact, reported)) ??
    facts.find(isUnnamed)
  );
}

/**
 * Finds the same return without or with its charges: a `pacs.004` has the amount before them, what a
 * bank books may be less.
 */
function findGrossOrNet(
  facts: readonly LineMovement[],
  { source, currency, value_date, code, bank_reference }: Movement,
): LineMovement | undefined {
  const isInterbank = (other: string) => other === 'interbank';
  return facts.find(({ references, ...fact }) => {
    const isSameReturn =
      fact.currency === currency && fact.value_date === value_date && fact.code === code;
    const own = references.filter((each) => each.source === source);
    return (
      isSameReturn &&
      references.some((each) => isInterbank(each.source) !== isInterbank(source)) &&
      own.every(({ id }) => id === bank_reference)
    );
  });
}

export function nameFact(fact: LineMovement, { source, bank_reference: id, also }: Reported) {
  const isNamed = fact.references.some((each) => each.source === source && each.id === id);
  if (id === null || isNamed) return fact;
  return { ...fact, references: [...fact.references, buildReference(source, id, also)] };
}

export function buildFact(
  { source, amount, currency, value_date, bank_reference: id, also }: Reported,
  code: string | null,
  at: string,
): LineMovement {
  const references = id === null ? [] : [buildReference(source, id, also)];
  return { amount, currency, value_date, bank_reference: id, references, code, at };
}

function buildReference(source: Reported['source'], id: string, also?: string): MovementReference {
  return { source, id, ...(also === undefined || also === id ? {} : { also }) };
}

/** A booking and a part of it are the same for a payout, and two parts of one booking are two. */
function hasReference(
  { references }: LineMovement,
  { bank_reference: id, also }: Pick<Reported, 'bank_reference' | 'also'>,
): boolean {
  if (id === null) return false;
  return references.some((each) => each.id === id || each.also === id || each.id === also);
}

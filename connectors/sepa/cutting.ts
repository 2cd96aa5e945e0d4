import { createHash, randomUUID } from 'node:crypto';
import { promisify } from 'node:util';
import { gunzip, gzip } from 'node:zlib';
import type { ClientSession, Filter, MongoClient } from 'mongodb';
import { createGate } from '../../src/base/gate';
import type { Logger } from '../../src/base/log';
import { abandon, inTransaction, isDuplicateKey } from '../../src/base/mongo';
import { addBusinessDays, dayInFrankfurt, executionDay } from '../../src/domain/payout/rails';
import type { Encrypter } from '../../src/encryption/encrypter';
import {
  INSTANT_RAIL,
  type SepaBook,
  type SepaFile,
  type SepaLine,
  shortenId,
} from '../../src/service/banks/sepa/book';
import type { PayoutInstruction } from '../contract/activities';
import { RecipientDeleted } from '../contract/recipients';
import type { RestoreGuard } from '../kit/restore-guard';
import { toInstruction } from './lines';
import {
  buildTextRefusal,
  buildTransfer,
  type Debtor,
  findTransferFaults,
  PAIN_001,
  type Payee,
  type Transfer,
  writePain001,
} from './pain001';

/** Larger batches become several files. */
const FILE_PAYOUTS_MAX = 10_000;
const CHECKS_AT_ONCE = 20;
/** Time for the cut of a file; after it, another attempt continues. */
const CUT_MS_MAX = 2 * 60_000;
/** TARGET2 days for which a small batch stays open. */
const SMALL_DAYS_MAX = 2;
/** Wait of a payout that could not be checked, as one of a frozen account. */
const WAIT_MS = 15 * 60_000;

export interface CutDeps {
  mongo: MongoClient;
  book: SepaBook;
  restoreGuard: Pick<RestoreGuard, 'confirm' | 'leaving' | 'left' | 'hasLeft' | 'mayHaveLeft'>;
  debtor: Debtor;
  /** Minutes of the day in Frankfurt. */
  cutOff: number;
  /** `SEPA_FILE_MIN`: fewer payouts wait for more, or leave by the folder with the check. */
  fileMin: number;
  /** Whether there is a `SEPA_VERIFIED_DIR`. */
  verifies: boolean;
  encrypter: Pick<Encrypter, 'encrypt' | 'decrypt'>;
  mayStillSend: (instruction: PayoutInstruction) => Promise<boolean>;
  readPayee: (payout_id: string) => Promise<Payee>;
  /** @throws Error for a file that the schema of ISO 20022 refuses */
  validate: (xml: string) => Promise<void>;
  /**
   * @param verified by `SEPA_VERIFIED_DIR`
   * @param mayLeave is asked right before the bank can see the file
   * @returns its answer
   */
  upload: (
    name: string,
    bytes: Uint8Array,
    verified: boolean,
    mayLeave: () => Promise<boolean>,
  ) => Promise<boolean>;
  log: Pick<Logger, 'info' | 'warn' | 'error'>;
  now: () => Date;
}

/** Selects what to cut: instant payouts have files of their own. */
interface Batch {
  instant: boolean;
  /** An operator asks: a small batch is cut, too, and payouts that the last file left out. */
  all: boolean;
}

/** @see src/service/banks/sepa/files.ts */
export async function cutOnRequest(deps: CutDeps): Promise<void> {
  const { requests } = deps.book;
  const waiting = await requests.find({ files: null }).toArray();
  if (waiting.length === 0) return;
  const requested = { _id: { $in: waiting.map(({ _id }) => _id) } };
  // At once: where a later cut fails, the next look answers with all.
  const note = async (id: string): Promise<void> => {
    await requests.updateMany(requested, { $push: { cut: id } });
  };
  for (const instant of [false, true]) await cutFiles(deps, { instant, all: true }, note);
  await requests.updateMany(requested, [{ $set: { files: { $ifNull: ['$cut', []] } } }]);
}

/**
 * Cuts an open batch into files, and uploads them. Each step may be repeated after a kill.
 * @param onCut is called with the id of each file
 * @returns ids of the files
 * @throws ConnectorStopped before any file is cut
 */
export async function cutFiles(
  deps: CutDeps,
  batch: Batch,
  onCut: (id: string) => Promise<void> = async () => {},
): Promise<string[]> {
  const ids: string[] = [];
  for (;;) {
    await deps.restoreGuard.confirm();
    const file = await openFile(deps, batch);
    if (file === undefined) return ids;
    const isCut = await cutOne(deps, file, batch);
    // Otherwise every payout waits for a later file.
    if (!isCut) return ids;
    ids.push(file._id);
    await onCut(file._id);
    // It leaves at the next look otherwise: an operator gets its id now.
    await uploadFiles(deps).catch((err: unknown) =>
      deps.log.error({ err, file_id: file._id }, 'not every file left after the cut of this one'),
    );
  }
}

/**
 * Whether payouts from before a time are to be cut: as many as a file needs, or the oldest has waited
 * long enough for others. A cut that was interrupted is.
 */
export async function isCutDue(
  { book, fileMin, now }: Pick<CutDeps, 'book' | 'fileMin' | 'now'>,
  { before, instant }: { before: Date; instant: boolean },
): Promise<boolean> {
  const batch = { instant, all: false };
  const interrupted = filterState('assigned', now(), batch);
  if ((await book.lines.findOne(interrupted)) !== null) return true;
  const open = filterState('open', now(), batch);
  const limit = instant ? 1 : fileMin;
  const due = await book.lines.countDocuments({ ...open, added_at: { $lt: before } }, { limit });
  const isSmall = due === 0 || due < limit;
  if (!isSmall) return true;
  const [oldest] = await book.lines.find(open).sort({ added_at: 1 }).limit(1).toArray();
  return oldest !== undefined && hasWaited([oldest], now());
}

/** Whether the oldest has waited for others for two business days. */
function hasWaited(lines: readonly Pick<SepaLine, 'added_at'>[], now: Date): boolean {
  const oldest = Math.min(...lines.map(({ added_at }) => added_at.getTime()));
  return addBusinessDays(oldest, SMALL_DAYS_MAX) <= now.getTime();
}

function filterState(
  state: 'open' | 'assigned',
  now: Date,
  { instant, all }: Batch,
): Filter<SepaLine> {
  const method = instant ? INSTANT_RAIL : { $ne: INSTANT_RAIL };
  return { state, method, ...(all ? {} : { wait_until: { $not: { $gt: now } } }) };
}

/** The file's id precedes its bytes. */
async function openFile(deps: CutDeps, batch: Batch): Promise<SepaFile | undefined> {
  const { book, debtor, now } = deps;
  const { iban } = debtor;
  const { instant } = batch;
  const waits = await book.lines.findOne({
    $or: [filterState('open', now(), batch), filterState('assigned', now(), batch)],
  });
  if (waits === null) return undefined;
  const filter = { iban, state: 'open', instant: instant ? true : { $exists: false } } as const;
  const existing = await book.files.findOne(filter);
  if (existing !== null) return existing;
  const _id = shortenId(randomUUID());
  const file: SepaFile = {
    ...{ _id, state: 'open', name: `${PAIN_001}-${_id}.xml`, iban, created_at: now() },
    ...(instant && { instant }),
    ...{ execution_day: '', payouts: 0, amount: 0, sha256: null, bytes: null, sent_at: null },
    ...{ bank_status: null, may_be_executed: false, refusal: null, ended_at: null },
  };
  try {
    await book.files.insertOne(file);
    return file;
  } catch (error) {
    if (!isDuplicateKey(error)) throw error;
    return (await book.files.findOne(filter)) ?? undefined;
  }
}

async function cutOne(deps: CutDeps, { _id: id }: SepaFile, batch: Batch): Promise<boolean> {
  const { book, debtor, cutOff, fileMin, verifies, encrypter, validate, log, now } = deps;
  const { instant, all } = batch;
  const lines = await assignLines(deps, id, batch);
  const gate = createGate(CHECKS_AT_ONCE);
  const checked = await Promise.all(lines.map((line) => gate(() => checkLine(deps, line))));
  const transfers = checked.filter((transfer) => transfer !== undefined);
  if (transfers.length === 0) return false;
  const created_at = now();
  const isSmall = transfers.length < fileMin;
  const own = lines.filter((_line, at) => checked[at] !== undefined);
  if (isSmall && !instant && !all && !hasWaited(own, created_at)) {
    const freed = { state: 'open', file_id: null, wait_until: null } as const;
    await book.lines.updateMany({ state: 'assigned', file_id: id }, { $set: freed });
    return false;
  }
  const execution_day = instant
    ? dayInFrankfurt(created_at.getTime())
    : executionDay(created_at.getTime(), cutOff);
  const xml = writePain001({ id, created_at, instant, execution_day, debtor, transfers });
  await validate(xml);
  const packed = (await compress(xml)).toString('base64');
  const bytes = await encrypter.encrypt(packed, fileOwner(id));
  const amount = transfers.reduce((sum, transfer) => sum + transfer.amount, 0);
  const about = { created_at, execution_day, payouts: transfers.length, amount };
  const verified = isSmall && verifies ? { verified: true as const } : {};
  const facts = { ...about, ...verified, bytes, sha256: hash(xml) };
  const ids = transfers.map(({ payout_id }) => payout_id);
  // In one transaction: a concurrent process that changed a line makes it fail.
  await inTransaction(deps.mongo, async (session) => {
    const carried = await book.lines.updateMany(
      { _id: { $in: ids }, state: 'assigned', file_id: id },
      { $set: { state: 'in_file' } },
      { session },
    );
    const file = await book.files.updateOne(
      { _id: id, state: 'open' },
      { $set: { ...facts, state: 'cut' } },
      { session },
    );
    if (carried.modifiedCount === ids.length && file.modifiedCount === 1) return;
    throw new Error(`Another process has changed the file ${id}: it is cut again.`);
  });
  log.info({ file_id: id, count: ids.length }, 'file cut');
  return true;
}

async function assignLines(
  { book, now }: CutDeps,
  file_id: string,
  batch: Batch,
): Promise<SepaLine[]> {
  const assigned = await book.lines.countDocuments({ state: 'assigned', file_id });
  // Another process may have assigned some to a file that was stored without them.
  const left = { ...filterState('assigned', now(), batch), file_id: { $ne: file_id } };
  const free = await book.lines
    .find({ $or: [filterState('open', now(), batch), left] }, { projection: { _id: 1 } })
    .sort({ added_at: 1 })
    .limit(FILE_PAYOUTS_MAX)
    .toArray();
  const ids = free.slice(0, FILE_PAYOUTS_MAX - assigned).map(({ _id }) => _id);
  await book.lines.updateMany(
    { _id: { $in: ids }, state: { $in: ['open', 'assigned'] } },
    { $set: { state: 'assigned', file_id, wait_until: new Date(now().getTime() + CUT_MS_MAX) } },
  );
  return await book.lines
    .find({ state: 'assigned', file_id })
    .sort({ added_at: 1, _id: 1 })
    .toArray();
}

/** Leaves out only what is `assigned`. @returns undefined if this file does not pay it */
async function checkLine(deps: CutDeps, line: SepaLine): Promise<Transfer | undefined> {
  const { mayStillSend, readPayee, log, now } = deps;
  try {
    if (!(await mayStillSend(toInstruction(line)))) {
      return await leaveOut(deps, line, { state: 'dropped' });
    }
    const payee = await readPayee(line._id);
    const faults = findTransferFaults(payee, line.amount);
    if (faults.length === 0) return buildTransfer(line, payee);
    return await leaveOut(deps, line, fail(deps, buildTextRefusal(faults)));
  } catch (error) {
    if (error instanceof RecipientDeleted) {
      return await leaveOut(deps, line, fail(deps, error.refusal));
    }
    // Only its name: the message may quote the recipient.
    const code = error instanceof Error ? error.name : typeof error;
    log.error({ payout_id: line._id, code }, 'payout left for a later file');
    const wait_until = new Date(now().getTime() + WAIT_MS);
    return await leaveOut(deps, line, { state: 'open', file_id: null, wait_until });
  }
}

function fail({ now }: CutDeps, refusal: { code: string; message: string }): Partial<SepaLine> {
  const failure = { ...refusal, at: now().toISOString() };
  return { state: 'failed', failure, unreported: true, report_batch: null };
}

async function leaveOut(
  { book }: CutDeps,
  { _id, file_id }: SepaLine,
  $set: Partial<SepaLine>,
): Promise<undefined> {
  await book.lines.updateOne({ _id, state: 'assigned', file_id }, { $set });
}

/**
 * Uploads the same bytes under the same name, also after a kill. The restoreGuard has the `MsgId` before
 * they leave; what it has as sent never leaves again, whatever state was restored.
 * @throws ConnectorStopped before anything leaves
 */
export async function uploadFiles(deps: CutDeps): Promise<void> {
  const { book, restoreGuard, encrypter, upload, log, now } = deps;
  const errors: unknown[] = [];
  const send = async (file: SepaFile): Promise<void> => {
    const { _id, name, bytes, sha256, verified } = file;
    if (bytes === null) throw new Error(`The file ${_id} has no bytes.`);
    const packed = Buffer.from(await encrypter.decrypt(bytes, fileOwner(_id)), 'base64');
    const xml = (await decompress(packed, { maxOutputLength: BYTES_MAX })).toString('utf8');
    if (hash(xml) !== sha256) throw new Error(`The bytes of ${_id} are not those that were cut.`);
    await restoreGuard.confirm();
    if (!(await restoreGuard.hasLeft(_id))) {
      const mayLeave = () => beginToLeave(deps, file);
      if (!(await upload(name, Buffer.from(xml, 'utf8'), verified === true, mayLeave))) return;
    }
    await book.files.updateOne({ _id, state: 'cut' }, { $set: { state: 'sent', sent_at: now() } });
    await restoreGuard.left(_id);
    log.info({ file_id: _id }, 'file sent');
  };
  // A folder that is missing holds back no file of another.
  for (const file of await book.files.find({ state: 'cut' }).sort({ created_at: 1 }).toArray()) {
    await send(file).catch((error: unknown) => errors.push(error));
  }
  if (errors.length > 0) throw errors[0];
}

/**
 * Counts payouts of a file that a former one has paid after all. A former file that never left has
 * paid nothing: then this one has.
 */
async function countPaidBefore(
  { lines, files }: CutDeps['book'],
  file_id: string,
  session?: ClientSession,
): Promise<number> {
  const answered = await lines
    .find(
      {
        file_id,
        'former_files.0': { $exists: true },
        state: { $in: ['executed', 'booked', 'returned'] },
      },
      { session },
    )
    .toArray();
  const former = answered.flatMap(({ former_files }) => former_files);
  const left = await files.distinct(
    '_id',
    { _id: { $in: former }, $or: [{ sent_at: { $ne: null } }, { leaving: true }] },
    { session },
  );
  return answered.filter(({ former_files }) => former_files.some((id) => left.includes(id))).length;
}

/**
 * Asks again for each payout of a file of which the bank can have nothing yet: it may have waited for
 * its folder while a payout ended. The write of `leaving` decides between this and `putBack`.
 * @returns false if the file does not leave now
 */
async function beginToLeave(deps: CutDeps, { _id, leaving, payouts }: SepaFile): Promise<boolean> {
  const { book, restoreGuard } = deps;
  const lines = await book.lines.find({ file_id: _id, state: 'in_file' }).toArray();
  const booked = await countPaidBefore(book, _id);
  // A payout with an answer of the bank proves that the file was there.
  const mayHaveLeft =
    leaving === true || lines.length + booked < payouts || (await restoreGuard.mayHaveLeft(_id));
  if (!mayHaveLeft) {
    const gate = createGate(CHECKS_AT_ONCE);
    const checked = await Promise.all(lines.map((line) => gate(() => checkLine(deps, line))));
    if (booked > 0 || checked.includes(undefined)) {
      await putBack(deps, _id);
      return false;
    }
    await restoreGuard.confirm();
  }
  await restoreGuard.leaving(_id);
  const begun = await book.files.updateOne({ _id, state: 'cut' }, { $set: { leaving: true } });
  return begun.matchedCount === 1;
}

/**
 * Frees the payouts of a file of which the bank can have nothing, for a later file. It ends as if it
 * had been refused, and never leaves.
 * @returns false if its bytes may be at the bank, or it has ended
 */
export async function putBack(
  { mongo, book, restoreGuard, log, now }: CutDeps,
  _id: string,
): Promise<boolean> {
  if (await restoreGuard.mayHaveLeft(_id)) return false;
  const isBack = await inTransaction(mongo, async (session) => {
    const file = await book.files.findOneAndUpdate(
      { _id, state: 'cut', leaving: { $exists: false } },
      { $set: { state: 'refused', ended_at: now() } },
      { session },
    );
    if (file === null) return false;
    const lines = await book.lines.updateMany(
      { file_id: _id, state: 'in_file' },
      {
        $set: { state: 'open', file_id: null, wait_until: null },
        $push: { former_files: _id },
      },
      { session },
    );
    const booked = await countPaidBefore(book, _id, session);
    if (lines.modifiedCount + booked === file.payouts) return true;
    await abandon(session);
    return false;
  });
  if (isBack) log.warn({ file_id: _id }, 'file put back before it left');
  return isBack;
}

function fileOwner(id: string): string {
  return `sepa_file/${id}`;
}

function hash(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

/** A document of MongoDB holds so much compressed and encrypted. */
const BYTES_MAX = 64 * 1024 * 1024;
const compress = promisify(gzip);
const decompress = promisify(gunzip);

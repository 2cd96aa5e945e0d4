import { createHash, randomUUID } from 'node:crypto';
import { promisify } from 'node:util';
import { gunzip, gzip } from 'node:zlib';
import type { Filter, MongoClient } from 'mongodb';
import { createGate } from '../../src/base/gate';
import type { Logger } from '../../src/base/log';
import { inTransaction, isDuplicateKey } from '../../src/base/mongo';
import { executionDay } from '../../src/domain/payout/target2';
import type { Encrypter } from '../../src/encryption/encrypter';
import {
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
/** Wait of a payout that could not be checked, as one of a frozen account. */
const WAIT_MS = 15 * 60_000;

export interface CutDeps {
  mongo: MongoClient;
  book: SepaBook;
  restoreGuard: Pick<RestoreGuard, 'confirm' | 'leaving' | 'left' | 'hasLeft'>;
  debtor: Debtor;
  /** Minutes of the day in Frankfurt. */
  cutOff: number;
  encrypter: Pick<Encrypter, 'encrypt' | 'decrypt'>;
  mayStillSend: (instruction: PayoutInstruction) => Promise<boolean>;
  readPayee: (payout_id: string) => Promise<Payee>;
  /** @throws Error for a file that the schema of ISO 20022 refuses */
  validate: (xml: string) => Promise<void>;
  upload: (name: string, bytes: Uint8Array) => Promise<void>;
  log: Pick<Logger, 'info' | 'warn' | 'error'>;
  now: () => Date;
}

/**
 * Cuts the open batch into files, and uploads them. Each step may be repeated after a kill.
 * @param all also payouts that the last file left out
 * @returns ids of the files
 * @throws ConnectorStopped before any file is cut
 */
export async function cutFiles(deps: CutDeps, all = false): Promise<string[]> {
  const ids: string[] = [];
  for (;;) {
    await deps.restoreGuard.confirm();
    const file = await openFile(deps, all);
    if (file === undefined) return ids;
    const isCut = await cutOne(deps, file, all);
    // Otherwise every payout waits for a later file.
    if (!isCut) return ids;
    ids.push(file._id);
    await uploadFiles(deps);
  }
}

export async function isCutDue(
  { book, now }: Pick<CutDeps, 'book' | 'now'>,
  cutOff: Date,
): Promise<boolean> {
  const due = { ...filterState('open', now(), false), added_at: { $lt: cutOff } };
  const interrupted = filterState('assigned', now(), false);
  return (await book.lines.findOne({ $or: [due, interrupted] })) !== null;
}

function filterState(state: 'open' | 'assigned', now: Date, all: boolean): Filter<SepaLine> {
  return all ? { state } : { state, wait_until: { $not: { $gt: now } } };
}

/** The file's id precedes its bytes. */
async function openFile(deps: CutDeps, all: boolean): Promise<SepaFile | undefined> {
  const { book, debtor, now } = deps;
  const { iban } = debtor;
  const waits = await book.lines.findOne({
    $or: [filterState('open', now(), all), filterState('assigned', now(), all)],
  });
  if (waits === null) return undefined;
  const existing = await book.files.findOne({ iban, state: 'open' });
  if (existing !== null) return existing;
  const _id = shortenId(randomUUID());
  const file: SepaFile = {
    ...{ _id, state: 'open', name: `${PAIN_001}-${_id}.xml`, iban, created_at: now() },
    ...{ execution_day: '', payouts: 0, amount: 0, sha256: null, bytes: null, sent_at: null },
    ...{ bank_status: null, may_be_executed: false, refusal: null, ended_at: null },
  };
  try {
    await book.files.insertOne(file);
    return file;
  } catch (error) {
    if (!isDuplicateKey(error)) throw error;
    return (await book.files.findOne({ iban, state: 'open' })) ?? undefined;
  }
}

async function cutOne(deps: CutDeps, { _id: id }: SepaFile, all: boolean): Promise<boolean> {
  const { debtor, cutOff, encrypter, validate, log, now } = deps;
  const lines = await assignLines(deps, id, all);
  const gate = createGate(CHECKS_AT_ONCE);
  const checked = await Promise.all(lines.map((line) => gate(() => checkLine(deps, line))));
  const transfers = checked.filter((transfer) => transfer !== undefined);
  if (transfers.length === 0) return false;
  const created_at = now();
  const execution_day = executionDay(created_at.getTime(), cutOff);
  const xml = writePain001({ id, created_at, execution_day, debtor, transfers });
  await validate(xml);
  const packed = (await compress(xml)).toString('base64');
  const bytes = await encrypter.encrypt(packed, fileOwner(id));
  const amount = transfers.reduce((sum, transfer) => sum + transfer.amount, 0);
  const about = { created_at, execution_day, payouts: transfers.length, amount };
  const facts = { ...about, bytes, sha256: hash(xml) };
  await storeFile(deps, id, transfers, facts);
  log.info({ file_id: id, count: facts.payouts }, 'file cut');
  return true;
}

async function assignLines(
  { book, now }: CutDeps,
  file_id: string,
  all: boolean,
): Promise<SepaLine[]> {
  const assigned = await book.lines.countDocuments({ state: 'assigned', file_id });
  const free = await book.lines
    .find(filterState('open', now(), all), { projection: { _id: 1 } })
    .sort({ added_at: 1 })
    .limit(FILE_PAYOUTS_MAX)
    .toArray();
  const ids = free.slice(0, FILE_PAYOUTS_MAX - assigned).map(({ _id }) => _id);
  await book.lines.updateMany(
    { _id: { $in: ids }, state: 'open' },
    { $set: { state: 'assigned', file_id, wait_until: new Date(now().getTime() + CUT_MS_MAX) } },
  );
  return await book.lines
    .find({ state: 'assigned', file_id })
    .sort({ added_at: 1, _id: 1 })
    .toArray();
}

/** @returns undefined if this file does not pay it */
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
 * Stores bytes and lines in one transaction: a concurrent process that changed a line makes it
 * fail.
 */
async function storeFile(
  { mongo, book }: CutDeps,
  id: string,
  transfers: readonly Transfer[],
  facts: Partial<SepaFile>,
): Promise<void> {
  const ids = transfers.map(({ payout_id }) => payout_id);
  await inTransaction(mongo, async (session) => {
    const lines = await book.lines.updateMany(
      { _id: { $in: ids }, state: 'assigned', file_id: id },
      { $set: { state: 'in_file' } },
      { session },
    );
    const file = await book.files.updateOne(
      { _id: id, state: 'open' },
      { $set: { ...facts, state: 'cut' } },
      { session },
    );
    if (lines.modifiedCount === ids.length && file.modifiedCount === 1) return;
    throw new Error(`Another process has changed the file ${id}: it is cut again.`);
  });
}

/**
 * Uploads the same bytes under the same name, also after a kill. The restoreGuard has the `MsgId` before
 * they leave; what it has as sent never leaves again, whatever state was restored.
 * @throws ConnectorStopped before anything leaves
 */
export async function uploadFiles({
  book,
  restoreGuard,
  encrypter,
  upload,
  log,
  now,
}: Pick<CutDeps, 'book' | 'restoreGuard' | 'encrypter' | 'upload' | 'log' | 'now'>): Promise<void> {
  for (const file of await book.files.find({ state: 'cut' }).sort({ created_at: 1 }).toArray()) {
    const { _id, name, bytes, sha256 } = file;
    if (bytes === null) throw new Error(`The file ${_id} has no bytes.`);
    const packed = Buffer.from(await encrypter.decrypt(bytes, fileOwner(_id)), 'base64');
    const xml = (await decompress(packed, { maxOutputLength: BYTES_MAX })).toString('utf8');
    if (hash(xml) !== sha256) throw new Error(`The bytes of ${_id} are not those that were cut.`);
    await restoreGuard.confirm();
    if (!(await restoreGuard.hasLeft(_id))) {
      await restoreGuard.leaving(_id);
      await upload(name, Buffer.from(xml, 'utf8'));
    }
    await book.files.updateOne({ _id, state: 'cut' }, { $set: { state: 'sent', sent_at: now() } });
    await restoreGuard.left(_id);
    log.info({ file_id: _id }, 'file sent');
  }
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

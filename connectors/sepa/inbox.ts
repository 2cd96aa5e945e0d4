import { randomUUID } from 'node:crypto';
import { lstat, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { isMissingFile } from '../../src/base/errors';
import { isDuplicateKey } from '../../src/base/mongo';
import {
  InvalidStatement,
  type Statement,
  type StatementFacts,
} from '../../src/domain/banks/statement';
import { endByName, type SepaBook, type SepaInbound } from '../../src/service/banks/sepa/book';
import { chooseName, exists } from '../../src/service/banks/sepa/file-names';
import { findFlaw } from '../../src/statements/check';
import { readFacts, relate } from '../../src/statements/compare';
import { FILE_BYTES_MAX, hashFile } from '../../src/statements/intake';
import { type AnswerDeps, applyStatus, ForeignMessage } from './answers';
import { makeDirectories, putFile, writeWhole } from './files';
import { type BankMessage, type Bookings, readBankMessages } from './messages';
import { applyCredits, applyMovements } from './movements';
import { resolveMention, resolveSums } from './resolve';

const GROWS_MS = 10_000;
/** Files that a transfer has not finished. */
const PARTIAL = /^[.]|[.](?:tmp|part|partial|filepart|writing|swp)$|~$/i;
/** Currency of the account, as of all SEPA. */
const CURRENCY = 'EUR';
const FOLDERS = ['processed', 'refused', 'other'] as const;

export interface InboxDeps extends AnswerDeps {
  book: Pick<SepaBook, 'lines' | 'files' | 'inbound' | 'readings' | 'payments'>;
  dir: string;
  iban: string;
  /** Ms for which an incomplete file may still grow. */
  growsMs?: number;
}

type Verdict = Pick<SepaInbound, 'folder' | 'message' | 'refusal' | 'statement'>;

/**
 * Stores the facts of a file before it leaves the folder. A failure of one does not hold back the
 * others.
 * @throws Error of the first file that has to be tried again
 */
export async function takeFiles(deps: InboxDeps): Promise<void> {
  const { book, dir } = deps;
  await makeDirectories(dir, FOLDERS);
  // Ends what a process had moved, and not noted any more.
  for (const { _id, folder, name } of await book.inbound.find({ state: 'taken' }).toArray()) {
    if (!(await exists(join(dir, folder, name)))) continue;
    await book.inbound.updateOne({ _id, state: 'taken' }, { $set: { state: 'done' } });
  }
  const names = (await readdir(dir)).filter((name) => !PARTIAL.test(name)).toSorted();
  const errors: unknown[] = [];
  for (const name of names) {
    try {
      await takeFile(deps, name);
    } catch (error) {
      if (!isMissingFile(error)) errors.push(error);
    }
  }
  if (errors.length > 0) throw errors[0];
}

async function takeFile(deps: InboxDeps, name: string): Promise<void> {
  const { book, dir, log, now } = deps;
  const path = join(dir, name);
  const found = await lstat(path);
  // Neither a folder, nor a link out of this one.
  if (!found.isFile()) return;
  const _id = await hashFile(path);
  const stored = await book.inbound.findOne({ _id });
  if (stored !== null && (await wasTaken(deps, stored))) {
    const message = `Its content was taken as ${stored.folder}/${stored.name} before.`;
    const refusal = { code: 'file_repeated', message };
    const destination = await chooseName(join(dir, 'refused'), name, _id);
    await explain(dir, destination, refusal);
    await putFile(path, join(dir, 'refused'), destination);
    log.info({ file_id: _id, code: refusal.code }, 'file of the bank refused');
    return;
  }
  const attempts = await beginReading(deps, { _id, size: found.size });
  if (attempts === undefined) return;
  try {
    const verdict = await judge(deps, { _id, path, size: found.size, attempts });
    const growsUntil = found.mtimeMs + (deps.growsMs ?? GROWS_MS);
    if (verdict.refusal?.code === 'file_invalid' && now().getTime() < growsUntil) return;
    const destination = await chooseName(join(dir, verdict.folder), name, _id);
    const record: SepaInbound = {
      ...{ ...verdict, _id, state: 'taken', name: destination, received_as: name, taken_at: now() },
      ...(verdict.refusal !== null && { attention: true }),
    };
    const taken = await storeRecord(book, record);
    // A statement is taken once it is imported.
    if (taken.folder === 'processed' && taken.statement === null) await endByName(book, taken);
    if (verdict.refusal !== null) await explain(dir, taken.name, verdict.refusal);
    await putFile(path, join(dir, taken.folder), taken.name);
    await book.inbound.updateOne({ _id, state: 'taken' }, { $set: { state: 'done' } });
    const code = verdict.refusal?.code ?? verdict.message;
    const level = verdict.refusal === null ? 'info' : 'error';
    log[level]({ file_id: _id, code }, `file of the bank ${verdict.folder}`);
  } finally {
    await book.readings.deleteOne({ _id });
  }
}

/** Names this process. */
const READER = randomUUID();
/** Processes that may end while they read a file. */
const ATTEMPTS_MAX = 2;
const READING_MS = 5_000;
const READING_MS_PER_MIB = 1_000;

/**
 * Notes that this process reads a file, so that one that ends it is found out.
 * @returns how many have begun; undefined while another reads it
 */
async function beginReading(
  { book: { readings }, now }: InboxDeps,
  { _id, size }: { _id: string; size: number },
): Promise<number | undefined> {
  const at = now();
  const ms = READING_MS + READING_MS_PER_MIB * (size / 1024 / 1024);
  const until = new Date(at.getTime() + ms);
  const others = { $add: [{ $ifNull: ['$attempts', 0] }, 1] };
  const attempts = { $cond: [{ $eq: ['$by', READER] }, '$attempts', others] };
  try {
    const begun = await readings.findOneAndUpdate(
      { _id, $or: [{ until: { $lte: at } }, { by: READER }] },
      [{ $set: { attempts, by: READER, until } }],
      { upsert: true, returnDocument: 'after' },
    );
    return begun?.attempts;
  } catch (error) {
    if (isDuplicateKey(error)) return undefined;
    throw error;
  }
}

/** @returns the record, also of an earlier attempt or another process */
async function storeRecord(
  { inbound }: Pick<SepaBook, 'inbound'>,
  record: SepaInbound,
): Promise<SepaInbound> {
  const { _id } = record;
  const state = record.refusal === null ? {} : { state: 'done' as const };
  const refused = { ...state, refusal: { $ne: null } };
  const imported = {
    ...{ state: 'done' as const, 'statement.imported_at': { $type: 'date' as const } },
    'statement.set_aside.0': { $exists: true },
  };
  const again = await inbound.replaceOne({ _id, $or: [refused, imported] }, record);
  if (again.matchedCount > 0) return record;
  try {
    await inbound.insertOne(record);
    return record;
  } catch (error) {
    if (!isDuplicateKey(error)) throw error;
    return (await inbound.findOne({ _id })) ?? record;
  }
}

/**
 * Whether the content was taken and has left the folder. A refused file may come again, a statement
 * that was lost before its import, and those of accounts that were not registered.
 */
async function wasTaken({ dir }: InboxDeps, stored: SepaInbound): Promise<boolean> {
  if (stored.refusal !== null) return false;
  const { imported_at = new Date(), set_aside = [] } = stored.statement ?? {};
  const isImported = stored.state === 'done' && imported_at !== null;
  if (isImported) return set_aside.length === 0;
  return await exists(join(dir, stored.folder, stored.name));
}

async function judge(
  deps: InboxDeps,
  file: { _id: string; path: string; size: number; attempts: number },
): Promise<Verdict> {
  const { _id: file_id, path, size, attempts } = file;
  if (size > FILE_BYTES_MAX) {
    return refuse('file_too_large', `The file has more than ${FILE_BYTES_MAX / 1024 / 1024} MiB.`);
  }
  if (attempts > ATTEMPTS_MAX) {
    return refuse('file_unreadable', `${ATTEMPTS_MAX} processes ended while they read it.`);
  }
  try {
    const messages = await readBankMessages(path, deps.iban);
    if ((await hashFile(path)) !== file_id) {
      return refuse('file_invalid', 'It changed while it was read.');
    }
    return await applyMessages(deps, file_id, messages);
  } catch (error) {
    if (error instanceof InvalidStatement) return refuse(error.code, error.message);
    if (error instanceof ForeignMessage) return refuse('file_foreign', error.message);
    throw error;
  }
}

/** @throws ForeignMessage if none is ours */
async function applyMessages(
  deps: InboxDeps,
  file_id: string,
  messages: readonly BankMessage[],
): Promise<Verdict> {
  const verdicts: Verdict[] = [];
  let foreign: ForeignMessage | undefined;
  for (const each of messages) {
    const { message, notices = [] } = each;
    for (const notice of notices) deps.log.warn({ file_id, code: message }, notice);
    try {
      verdicts.push(await applyMessage(deps, file_id, each));
    } catch (error) {
      if (!(error instanceof ForeignMessage)) throw error;
      foreign ??= error;
      if (messages.length > 1) deps.log.warn({ file_id, code: message }, error.message);
    }
  }
  const [first] = verdicts;
  if (first === undefined) throw foreign ?? new ForeignMessage('It has no message of ours.');
  return {
    ...(verdicts.find(({ folder }) => folder === 'processed') ?? first),
    message: [...new Set(messages.map(({ message }) => message))].join(', '),
    statement: verdicts.find(({ statement }) => statement !== null)?.statement ?? null,
  };
}

async function applyMessage(deps: InboxDeps, file_id: string, read: BankMessage): Promise<Verdict> {
  const { message } = read;
  const processed: Verdict = { folder: 'processed', message, refusal: null, statement: null };
  switch (read.kind) {
    case 'status':
      for (const report of read.reports) await applyStatus(deps, report);
      return processed;
    case 'returns': {
      const applied = await applyMovements(deps, read.movements);
      if (applied > 0) return processed;
      throw new ForeignMessage('It returns no payout of this connector.');
    }
    default: {
      const [own, others] = [true, false].map((isOwn) =>
        read.statements.filter(({ iban }) => (iban === deps.iban) === isOwn),
      ) as [Statement[], Statement[]];
      const set_aside = others.map(({ iban: account, statement_id }) => ({
        account,
        statement_id,
      }));
      const { from_day = '' } = own[0] ?? {};
      const statement = { from_day, imported_at: null, set_aside };
      // The import takes those of accounts that are registered meanwhile.
      if (own.length === 0) return { ...processed, folder: 'other', statement };
      const believed = own.filter(({ balances }) => balances !== null).map(readFacts);
      const flaw = own.map(findFlaw).find((each) => each !== undefined) ?? findForeign(own);
      const fault = flaw ?? (await findConflict(deps, file_id, believed));
      if (fault !== undefined) {
        const { code, message } = fault;
        // The import says so to operators, and refuses it.
        return { ...processed, statement: { ...statement, fault: { code, message } } };
      }
      for (const { notice } of own) if (notice !== undefined) deps.log.warn({ file_id }, notice);
      await applyBookings(deps, read);
      return { ...processed, statement: { ...statement, believed } };
    }
  }
}

async function applyBookings(deps: InboxDeps, read: Bookings): Promise<void> {
  const isBack = ({ kind }: Bookings['sums'][number]) => kind === 'returned';
  const booked = await resolveSums(
    deps,
    read.sums.filter((sum) => !isBack(sum)),
  );
  await applyMovements(deps, [...read.movements, ...booked]);
  // Of what was booked, perhaps in the same file.
  await applyMovements(deps, await resolveSums(deps, read.sums.filter(isBack)));
  await applyCredits(deps, read.credits);
  // One at a time: what one names is no longer open for the next.
  for (const each of read.mentioning) {
    const found = await resolveMention(deps, each);
    if (found === undefined) continue;
    if ('movement' in found) await applyMovements(deps, [found.movement]);
    else await applyCredits(deps, [found.credit]);
  }
}

function findForeign(own: readonly Statement[]) {
  // A notification may be of a booking in another currency, which is held in suspense.
  const other = own.find(({ balances, currency }) => balances !== null && currency !== CURRENCY);
  if (other === undefined) return undefined;
  const { statement_id, currency } = other;
  const message = `Statement ${statement_id} is in ${currency}, and the account in ${CURRENCY}.`;
  return { code: 'wrong_currency', message };
}

/** Finds a statement that another file had otherwise, or some of its days. */
async function findConflict(
  { book: { inbound } }: Pick<InboxDeps, 'book'>,
  file_id: string,
  own: readonly StatementFacts[],
) {
  for (const facts of own) {
    const { from_day, to_day, statement_id } = facts;
    const days = { to_day: { $gte: from_day }, from_day: { $lte: to_day } };
    const before = { 'statement.believed': { $elemMatch: days }, refusal: null };
    const files = await inbound.find({ ...before, _id: { $ne: file_id } }).toArray();
    const others = files.flatMap(({ statement }) => statement?.believed ?? []);
    const inFile = own.filter((other) => other !== facts);
    const relations = [...others, ...inFile].map((other) => relate(other, facts));
    const isApart = relations.every((relation) => relation === 'other');
    if (isApart || relations.includes('same')) continue;
    const message = `Statement ${statement_id} came otherwise before, or some of its days did.`;
    return { code: 'statement_conflict', message };
  }
  return undefined;
}

function refuse(code: string, message: string): Verdict {
  return { folder: 'refused', message: null, refusal: { code, message }, statement: null };
}

async function explain(
  dir: string,
  name: string,
  { code, message }: { code: string; message: string },
): Promise<void> {
  const text = Buffer.from(`${code}: ${message}\n`, 'utf8');
  await writeWhole(join(dir, 'refused'), `${name}.txt`, text);
}

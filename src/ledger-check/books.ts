import { type BookDocument, bookId, type EntryStateDocument } from '../ledger/entries';
import { sumEntryLines } from '../ledger/pending';
import type { BankAccountDocument } from '../store/bank-accounts';
import {
  addEntry,
  behindCheckpoint,
  between,
  buildCheckpoint,
  type CheckpointDocument,
  type CheckpointStore,
  copyTally,
  startTally,
  type Tally,
} from './checkpoints';
import {
  BANK_KIND,
  compareBook,
  compareEntry,
  compareState,
  compareValues,
  type Difference,
  difference,
  type EntryRow,
} from './compare';
import { RESOURCE_CHECKS } from './resources/index';
import type { ResourceRow } from './rule';
import { type InSnapshot, type Read, readAll } from './snapshot';

/**
 * Finds entries without their resource.
 * @param comparedSince resources that changed since are left to `compareResources`
 */
async function compareOwners(
  read: Read,
  entries: readonly EntryRow[],
  comparedSince: string,
): Promise<Difference[]> {
  const differences: Difference[] = [];
  for (const check of RESOURCE_CHECKS) {
    const ownEntries = entries.filter(({ kind }) => check.entryKinds.has(kind));
    if (ownEntries.length === 0) continue;
    const ids = { _id: { $in: [...new Set(ownEntries.map(({ resource_id }) => resource_id))] } };
    const projection = comparedSince === '' ? { _id: 1 } : { _id: 1, updated_at: 1 };
    const resources = await readAll(
      read<Pick<ResourceRow, '_id'> & { updated_at?: string }>(check.collection, ids, {
        projection,
      }),
    );
    const existingIds = new Set(resources.map(({ _id }) => _id));
    for (const { _id, resource_id } of ownEntries) {
      if (existingIds.has(resource_id)) continue;
      differences.push(difference('resource_missing', resource_id, _id, resource_id, null));
    }
    const others = resources.filter(({ updated_at = '' }) => updated_at < comparedSince);
    if (others.length === 0) continue;
    const filter = { _id: { $in: others.map(({ _id }) => _id) } };
    differences.push(...(await check.page(read, filter, {})).differences);
  }
  return [...differences, ...(await compareBankAccounts(read, entries))];
}

async function compareBankAccounts(
  read: Read,
  entries: readonly EntryRow[],
): Promise<Difference[]> {
  const bankEntries = entries.filter(({ kind }) => BANK_KIND.test(kind));
  if (bankEntries.length === 0) return [];
  const getId = ({ book }: EntryRow) => book.split(':')[0] ?? '';
  const ids = { _id: { $in: [...new Set(bankEntries.map(getId))] } };
  const accounts = await readAll(read<BankAccountDocument>('bank_accounts', ids));
  const books = new Map(
    accounts.map((account) => [account._id, bookId({ ...account, account_id: account._id })]),
  );
  return bankEntries.flatMap((entry) => {
    const id = getId(entry);
    const book = books.get(id);
    return book === undefined
      ? [difference('resource_missing', id, entry._id, id, null)]
      : compareValues('posting_differs', id, entry._id, book, entry.book);
  });
}

export interface CheckpointSize {
  least: number;
  /** Number that one snapshot reads behind the margin, too. */
  most: number;
}

export interface BookCheck {
  inSnapshot: InSnapshot;
  checkpoints: CheckpointStore;
  checkpointSize: CheckpointSize;
  checkpointBefore: Date;
  /** ISO 8601, empty for all: resources that changed since are compared elsewhere. */
  comparedSince: string;
  now: () => Date;
  report: (differences: readonly Difference[]) => void;
  onProgress: (entries: number) => void;
}

const BATCH = 1_000;

async function examine(
  { comparedSince, onProgress }: BookCheck,
  read: Read,
  rows: AsyncIterable<EntryRow>,
  tally: Tally,
): Promise<Difference[]> {
  const differences: Difference[] = [];
  let batch: EntryRow[] = [];
  const finish = async () => {
    const ids = { _id: { $in: batch.map(({ _id }) => _id) } };
    const rows = await readAll(read<EntryStateDocument>('entry_states', ids));
    const states = new Map(rows.map((state) => [state._id, state]));
    differences.push(...batch.flatMap((entry) => compareState(entry, states.get(entry._id))));
    differences.push(...(await compareOwners(read, batch, comparedSince)));
    onProgress(batch.length);
    batch = [];
  };
  for await (const entry of rows) {
    addEntry(tally, entry);
    differences.push(...compareEntry(entry));
    batch.push(entry);
    if (batch.length === BATCH) await finish();
  }
  if (batch.length > 0) await finish();
  return differences;
}

/**
 * Compares the balances of a book with its last checkpoint and the entries since, and writes due
 * checkpoints. No checkpoint covers a difference, so the next run reports it again.
 * @param isFull reads checkpointed entries again, too
 */
export async function verifyBook(check: BookCheck, book: string, isFull: boolean) {
  const { least, most } = check.checkpointSize;
  const start = isFull
    ? await reread(check, book)
    : { tally: startTally(await check.checkpoints.last(book)), mayCheckpoint: true };
  let { tally, mayCheckpoint } = start;
  let checkpointCount = 0;
  while (true) {
    const step = await readNext(check, book, tally);
    check.report(step.differences);
    tally = step.tally;
    mayCheckpoint &&= step.isClean;
    const isEnough = tally.entries >= (step.end === undefined ? most : least);
    const checkpoint = mayCheckpoint && isEnough ? buildCheckpoint(book, tally, check.now()) : null;
    if (checkpoint !== null) {
      // A concurrent verification was first, and continues with this book.
      mayCheckpoint = await check.checkpoints.write(checkpoint);
      if (mayCheckpoint) {
        tally = behindCheckpoint(tally, checkpoint);
        checkpointCount += 1;
      }
    }
    if (step.end !== undefined) return { ...step.end, checkpointCount };
  }
}

/**
 * Reads in one snapshot as many old entries as a checkpoint may cover; with the last of them also
 * the rest of the book and its balances.
 */
async function readNext(check: BookCheck, book: string, before: Tally) {
  const { inSnapshot, checkpointBefore, checkpointSize } = check;
  return await inSnapshot(async (read) => {
    const tally = copyTally(before);
    const old = { ...between(book, tally.to, checkpointBefore), limit: checkpointSize.most };
    const rows = read<EntryRow>('journal_entries', {}, old);
    const faults = await examine(check, read, rows, tally);
    const isClean = faults.length === 0;
    if (tally.total === before.total + checkpointSize.most) {
      return { tally, differences: faults, isClean };
    }
    const fullTally = copyTally(tally);
    const rest = read<EntryRow>('journal_entries', {}, between(book, tally.to));
    const later = await examine(check, read, rest, fullTally);
    const [stored = null] = await readAll(read<BookDocument>('ledger_books', { _id: book }));
    const filter = { book, pending: true };
    const states = read<EntryStateDocument>('entry_states', filter, { projection: { lines: 1 } });
    const pending = sumEntryLines(await readAll(states));
    const balances = compareBook({ _id: book, stored, pending, lineSums: fullTally.sums });
    const end = { entries: fullTally.total, isStored: stored !== null || pending.size > 0 };
    return { tally, differences: [...faults, ...later, ...balances], isClean, end };
  });
}

/** Compares each checkpoint with the entries that exist now, which the returned tally counts. */
async function reread(check: BookCheck, book: string) {
  let last: CheckpointDocument | null = null;
  let drift = { total: 0, sums: new Map<string, bigint>() };
  let mayCheckpoint = true;
  for await (const checkpoint of check.checkpoints.inOrder(book)) {
    const before: CheckpointDocument | null = last;
    const { range, faults } = await check.inSnapshot(async (read) => {
      const range = startTally(before);
      const options = between(book, range.to, checkpoint.to);
      const rows = read<EntryRow>('journal_entries', {}, options);
      return { range, faults: await examine(check, read, rows, range) };
    });
    const differences = [...compareCheckpoint(checkpoint, before, range), ...faults];
    check.report(differences);
    mayCheckpoint &&= differences.length === 0;
    drift = addDrift(drift, checkpoint, range);
    last = checkpoint;
  }
  const tally = startTally(last);
  for (const [account, amount] of drift.sums) {
    tally.sums.set(account, (tally.sums.get(account) ?? 0n) + amount);
  }
  return { tally: { ...tally, total: tally.total + drift.total }, mayCheckpoint };
}

function addDrift(
  { total, sums }: { total: number; sums: ReadonlyMap<string, bigint> },
  checkpoint: CheckpointDocument,
  range: Tally,
) {
  const checkpointTally = startTally(checkpoint);
  const accounts = new Set([...checkpointTally.sums.keys(), ...range.sums.keys()]);
  const changes = [...accounts].flatMap((account): [string, bigint][] => {
    const amount = (range.sums.get(account) ?? 0n) - (checkpointTally.sums.get(account) ?? 0n);
    return amount === 0n ? [] : [[account, (sums.get(account) ?? 0n) + amount]];
  });
  return {
    total: total + range.total - checkpointTally.total,
    sums: new Map([...sums, ...changes]),
  };
}

function compareCheckpoint(
  checkpoint: CheckpointDocument,
  before: CheckpointDocument | null,
  range: Tally,
): Difference[] {
  const { _id, book, entries, hash } = checkpoint;
  const [number, previous] = [(before?.number ?? 0) + 1, `${before?.hash ?? null}`];
  const chainFaults = [
    ...compareValues('checkpoint_broken', _id, 'number', number, checkpoint.number),
    ...compareValues('checkpoint_broken', _id, 'previous', previous, `${checkpoint.previous}`),
  ];
  if (chainFaults.length > 0) return chainFaults;
  if (range.entries !== entries) {
    const name = range.entries > entries ? 'posting_behind_checkpoint' : 'checkpoint_differs';
    return [difference(name, _id, 'entries', entries, range.entries)];
  }
  const actual = buildCheckpoint(book, range, new Date(checkpoint.created_at));
  return compareValues('checkpoint_differs', _id, 'hash', hash, actual?.hash);
}

import { MaxKey, MinKey } from 'mongodb';
import type { EntryStateDocument } from '../ledger/documents';
import { bookId } from '../ledger/entries';
import type { BankAccountDocument } from '../store/bank-accounts';
import { UPDATED } from '../store/list';
import { addEntry, type CheckpointStore, type Tally } from './checkpoints';
import {
  BANK_KIND,
  compareEntry,
  compareState,
  compareValues,
  type Difference,
  difference,
  type EntryRow,
} from './compare';
import { RESOURCE_CHECKS } from './resources/index';
import type { Page, ResourceCheck, ResourceRow } from './rule';
import { type InSnapshot, type Read, readAll } from './snapshot';

const PAGE = 1_000;

export interface Span {
  /** ISO 8601, ms; empty for all. */
  since: string;
  until: string;
}

export async function* compareResources(inSnapshot: InSnapshot, span: Span): AsyncGenerator<Page> {
  for (const check of RESOURCE_CHECKS) {
    let last: Page['last'];
    do {
      const after = last;
      const page = await inSnapshot((read) => nextPage(read, check, span, after));
      yield page;
      last = page.rows < PAGE ? undefined : page.last;
    } while (last !== undefined);
  }
}

async function nextPage(
  read: Read,
  check: ResourceCheck,
  { since, until }: Span,
  last: Page['last'],
): Promise<Page> {
  if (since === '') {
    const after = { _id: { $gt: last?._id ?? '' } };
    return await check.page(read, after, { sort: { _id: 1 }, limit: PAGE });
  }
  const min = {
    updated_at: last?.updated_at ?? since,
    _id: last ? `${last._id}\u0000` : new MinKey(),
  };
  const max = { updated_at: until, _id: new MaxKey() };
  return await check.page(read, {}, { hint: UPDATED.name, min, max, limit: PAGE });
}

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

async function compareStates(read: Read, entries: readonly EntryRow[]): Promise<Difference[]> {
  const ids = { _id: { $in: entries.map(({ _id }) => _id) } };
  const states = new Map<string, EntryStateDocument>();
  for await (const state of read<EntryStateDocument>('entry_states', ids)) {
    states.set(state._id, state);
  }
  return entries.flatMap((entry) => compareState(entry, states.get(entry._id)));
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

export async function examine(
  { comparedSince, onProgress }: BookCheck,
  read: Read,
  rows: AsyncIterable<EntryRow>,
  tally: Tally,
): Promise<Difference[]> {
  const differences: Difference[] = [];
  let batch: EntryRow[] = [];
  const finish = async () => {
    differences.push(...(await compareStates(read, batch)));
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

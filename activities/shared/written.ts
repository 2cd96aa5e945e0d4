import type { ClientSession } from 'mongodb';
import { inTransaction } from '../../src/base/mongo';
import type { Movement } from '../../src/domain/banks/movement';
import { bookId } from '../../src/ledger/entries';
import { listMovements, withFreeNames } from '../../src/movements/register';
import type { ResourceDocument, resourceStore } from '../../src/store/resource';
import { buildLockRequest, withDebitLock } from './debit';
import { buildBehind } from './record-move';
import type { Known, RecordDeps, WriteAnswer } from './record-table';

type Transact = <R>(work: (session: ClientSession) => Promise<R>) => Promise<R>;

type BookedStore<D extends ResourceDocument> = Pick<
  ReturnType<typeof resourceStore<D, never>>,
  'get' | 'markAttention' | 'countWrite'
>;

export interface Work<Answer> {
  answer: Answer;
  /** Whether it has written: a repeat has not. */
  isNew: boolean;
}

/** Aborts the transaction: the document is later than what the workflow knows. */
class Later extends Error {
  override readonly name = 'Later';
}

/**
 * Books a movement in one transaction, and counts it in the version of its resource.
 * @returns the stored state where the workflow knows an earlier one; then nothing is booked
 * @throws Error when the database is behind
 */
export async function bookOnce<D extends ResourceDocument, Answer extends object>(
  { mongo, stores }: Pick<RecordDeps, 'mongo' | 'stores'>,
  store: BookedStore<D>,
  { resource_id, ...known }: Known & { resource_id: string },
  work: (document: D, session: ClientSession) => Promise<Work<Answer>>,
  transact: Transact = (within) => inTransaction(mongo, within),
): Promise<WriteAnswer<D, Answer>> {
  const { version } = known;
  try {
    return await transact(async (session) => {
      const document = await store.get(resource_id, session);
      if (document === null || document.version < version) {
        throw await buildBehind({ store }, document, known, resource_id);
      }
      const { answer, isNew } = await work(document, session);
      if (!isNew) return { ...answer, version: findVersion(known, document) };
      if (!(await store.countWrite(resource_id, version, session))) throw new Later();
      return { ...answer, version: version + 1 };
    });
  } catch (error) {
    const document = error instanceof Later ? await store.get(resource_id) : null;
    if (document === null) throw error;
    return buildStale(document, await listMovements(stores, resource_id));
  }
}

/**
 * Books with the debit lock of a book. Commits also where it changes nothing: only then a majority
 * has what it read.
 * @param booking currency of the book; absent: that of the resource
 * @param work takes the number of tries that found a name taken
 */
export async function bookInBook<D extends ResourceDocument, Answer extends object>(
  deps: RecordDeps,
  store: BookedStore<D>,
  booking: Known & { resource_id: string; at: string; currency?: string | undefined },
  work: (document: D, session: ClientSession, clashes: number) => Promise<Work<Answer>>,
): Promise<WriteAnswer<D, Answer>> {
  const { resource_id, at, currency } = booking;
  const found = await store.get(resource_id);
  if (found === null) throw new Error(`The record of ${resource_id} is not there.`);
  const book = bookId({ ...found, currency: currency ?? found.currency });
  return await withFreeNames((clashes) =>
    bookOnce<D, Answer>(
      deps,
      store,
      booking,
      (document, session) => work(document, session, clashes),
      (within) => withDebitLock(deps, buildLockRequest(book, at), within),
    ),
  );
}

/**
 * Version after a write that was there already. It is the next one where the workflow has lost the
 * result of this very write; after others, the next write finds out.
 */
export function findVersion(
  { version, transition }: Known,
  document: Pick<ResourceDocument, 'version' | 'transition'> | null,
): number {
  const isNext = document?.version === version + 1 && document.transition === transition;
  return isNext ? version + 1 : version;
}

export function buildStale<D extends ResourceDocument>(
  document: D,
  moved: Movement[],
): Extract<WriteAnswer<D>, { status: unknown }> {
  const { status, version, transition, attention } = document;
  const movements = moved.length === 0 ? {} : { moved };
  return { status, version, transition, stale: { attention }, ...movements };
}

import { ApplicationFailure, cancellationSignal, heartbeat } from '@temporalio/activity';
import type { ClientSession } from 'mongodb';
import { inTransaction } from '../../src/base/mongo';
import {
  getVerificationMode,
  type MissedCallback,
  VERIFICATION_FAULTS,
} from '../../src/domain/banks/callback';
import { holdsMoney, type Movement } from '../../src/domain/banks/movement';
import { omitUndefined } from '../../src/domain/defined';
import { readAccountTime } from '../../src/domain/merchants/clock';
import type { PayeeVerification } from '../../src/domain/payout/payout';
import { bookId } from '../../src/ledger/entries';
import { listMovements, withFreeNames } from '../../src/movements/register';
import { callbackKey } from '../../src/store/callbacks';
import type { AttentionUpdate, ResourceDocument, resourceStore } from '../../src/store/resource';
import { buildLockRequest, withDebitLock } from './opening';
import { auditAct, toStoredAct } from './operator-acts';
import { buildBehind, recordMove, startPendingDeliveries } from './record-move';
import type {
  DatedAct,
  Known,
  LoadedState,
  RecordAttention,
  RecordDeps,
  RecordRefused,
  RecordTable,
  RecordUnapplied,
  Transition,
  TransitionAnswer,
  WriteAnswer,
} from './record-table';

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
function findVersion(
  { version, transition }: Known,
  document: Pick<ResourceDocument, 'version' | 'transition'> | null,
): number {
  const isNext = document?.version === version + 1 && document.transition === transition;
  return isNext ? version + 1 : version;
}

function buildStale<D extends ResourceDocument>(
  document: D,
  moved: Movement[],
): Extract<WriteAnswer<D>, { status: unknown }> {
  const { status, version, transition, attention } = document;
  const movements = moved.length === 0 ? {} : { moved };
  return { status, version, transition, stale: { attention }, ...movements };
}

interface LoadInput {
  resource_id: string;
  request_id: string;
}

export function createRecord<Document extends ResourceDocument, Change, Snapshot>(
  deps: RecordDeps,
  table: RecordTable<Document, Change>,
  buildSnapshot: (document: Document, request_id: string) => Snapshot | Promise<Snapshot>,
) {
  return {
    transition: (input: Transition<Document, Change>): Promise<TransitionAnswer<Document>> =>
      recordMove(deps, table, input),
    setAttention: async (
      input: RecordAttention<NonNullable<Document['attention']>>,
    ): Promise<WriteAnswer<Document>> => await recordAttention(deps, table, input),
    /** @throws ApplicationFailure not retryable, `{resource}_not_found` */
    load: async ({
      resource_id,
      request_id,
    }: LoadInput): Promise<
      Snapshot & LoadedState<Document['status'], NonNullable<Document['attention']>>
    > => {
      const document = await table.store.get(resource_id);
      if (document === null) {
        const code = `${table.resource}_not_found`;
        throw ApplicationFailure.nonRetryable(`No such ${table.resource}.`, code);
      }
      await startPendingDeliveries(deps, document);
      const { status, version, transition, attention, livemode } = document;
      const { attention_at, acknowledged, bank_reference } = document;
      const { applied_callbacks: applied = [], snoozed } = document;
      const rows = await deps.stores.callbacks.listMissed(resource_id, applied);
      const missed = rows.map(({ name, body, key_id, signature: v1 }): MissedCallback => {
        const isSigned = key_id !== undefined && v1 !== undefined;
        return { name, body, ...(isSigned ? { signature: { key_id, v1 } } : {}) };
      });
      const account = livemode ? null : await deps.stores.accounts.get(document.account_id);
      const clock = account?.clock && readAccountTime(livemode, account.clock);
      return {
        ...(await buildSnapshot(document, request_id)),
        ...{ status, version, transition, attention, applied },
        ...(missed.length === 0 ? {} : { missed }),
        ...(snoozed?.transition === transition ? { snoozed_until: snoozed.until } : {}),
        ...omitUndefined({ attention_at, clock }),
        ...omitUndefined({ acknowledged: acknowledged?.map(({ reason }) => reason) }),
        ...(bank_reference === null ? {} : { bank_reference }),
        verification: getVerificationMode(livemode),
      };
    },
  };
}

/**
 * Writes a reason, or an operator's act with it, once.
 * @throws ApplicationFailure not retryable, `money_in_suspense`
 * @throws Error when the database is behind
 */
async function recordAttention<Document extends ResourceDocument, Change>(
  deps: RecordDeps,
  table: RecordTable<Document, Change>,
  input: RecordAttention<NonNullable<Document['attention']>>,
): Promise<WriteAnswer<Document>> {
  const { resource_id, request_id, audit, snoozed_until: until, ...known } = input;
  const { version, transition, attention, attention_at, bank_reference, verification } = known;
  const snoozed = until === undefined ? {} : { snoozed: { transition, until } };
  const named = omitUndefined({ bank_reference, verification });
  const update = { version, attention, attention_at, ...snoozed, ...named };
  const isWritten =
    audit === null
      ? await table.store.setAttention(resource_id, { ...update, audit })
      : await recordAct(deps, table, resource_id, update, audit);
  if (isWritten) return { version: version + 1 };
  const document = await table.store.get(resource_id);
  const isStored =
    audit === null
      ? document?.attention === attention && hasVerification(document, verification)
      : document?.audit.some(({ id }) => id === audit.id);
  // A later reason of the service prevails.
  if (isStored || (audit === null && document?.version === version)) {
    return { version: findVersion(known, document) };
  }
  if (document === null || document.version <= version) {
    throw await buildBehind(table, document, known, resource_id);
  }
  return buildStale(document, await listMovements(deps.stores, resource_id));
}

function hasVerification(
  document: ResourceDocument & { verification?: PayeeVerification },
  wanted: PayeeVerification | undefined,
): boolean {
  const { result, checked_at } = wanted ?? {};
  const { verification: stored } = document;
  return wanted === undefined || (stored?.result === result && stored?.checked_at === checked_at);
}

/** @returns false at another version, or for a repeat */
async function recordAct<Document extends ResourceDocument, Change>(
  { mongo, stores }: RecordDeps,
  table: RecordTable<Document, Change>,
  resource_id: string,
  update: Omit<AttentionUpdate, 'audit'>,
  act: DatedAct,
): Promise<boolean> {
  const { id, at } = act;
  const {
    resource,
    store,
    isInSuspense = async () => holdsMoney({ movements: await listMovements(stores, resource_id) }),
  } = table;
  const document = await store.get(resource_id);
  if (document === null) return false;
  if (act.what === 'acknowledge' && (await isInSuspense(document))) {
    const message = 'Its money is in suspense: acknowledge it once the money has left.';
    throw ApplicationFailure.nonRetryable(message, 'money_in_suspense');
  }
  const { account_id, livemode } = document;
  const before = document.attention ?? 'no attention';
  const actChange = { act, id, at, before, after: update.attention ?? 'no attention' };
  return await inTransaction(mongo, async (session) => {
    const audit = { ...toStoredAct(act), id, at };
    if (!(await store.setAttention(resource_id, { ...update, audit }, session))) return false;
    const subject = { resource, resource_id, account_id, livemode };
    await auditAct({ stores }, subject, actChange, session);
    return true;
  });
}

export async function recordUnapplied(
  { stores, log }: RecordDeps,
  { resource, resource_id, connector, name, callback, reason, request_id }: RecordUnapplied,
): Promise<void> {
  const about = { connector, resource, resource_id, name, body: callback };
  const key = callbackKey(connector, callback.callback_id);
  await stores.callbacks.markUnapplied(key, reason, about);
  const ids = { [`${resource}_id`]: resource_id, request_id, connector };
  log.warn({ ...ids, code: name }, 'callback moved nothing');
}

export async function recordRefused(
  { stores, log, refusals }: RecordDeps,
  { report, signature, code, at, request_id }: RecordRefused,
): Promise<void> {
  const { connector, resource, resource_id, name, callback } = report;
  const signing =
    signature === undefined ? {} : { key_id: signature.key_id, signature: signature.v1 };
  const about = { connector, resource, resource_id, name, body: callback };
  const reason = `sender not known: ${VERIFICATION_FAULTS[code]}`;
  await stores.callbacks.markRefused(reason, { ...about, ...signing, received_at: at });
  refusals?.refused({ connector, resource, reason: code });
  const { callback_id } = callback;
  const ids = { [`${resource}_id`]: resource_id, request_id, connector, callback_id };
  log.warn({ ...ids, code }, 'callback refused: its sender is not verified');
}

/**
 * Shows that a long activity is alive, and how far it is.
 * @param progress what the next try continues from
 * @throws CancelledFailure once its worker, which is stopping, waits for it no longer
 */
export function reportProgress(progress?: unknown): void {
  heartbeat(progress);
  cancellationSignal().throwIfAborted();
}

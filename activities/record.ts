import { ApplicationFailure } from '@temporalio/activity';
import type { ClientSession, MongoClient } from 'mongodb';
import { assertLawful } from '../src/domain/assert';
import type { CallbackResource } from '../src/domain/callback';
import { defined } from '../src/domain/defined';
import type { EventType, Subscription } from '../src/domain/event';
import { eventId } from '../src/ids';
import { bookId } from '../src/ledger/postings';
import type { Logger } from '../src/log';
import { inTransaction, isDuplicateKey } from '../src/mongo';
import type { Stores } from '../src/store';
import type { AttentionAct, AuditEntry, Marking } from '../src/store/attention';
import { callbackKey } from '../src/store/callbacks';
import type { WrittenWith } from '../src/store/resource';
import { type DeliveryStarter, startDeliveries } from '../src/temporal/deliveries';
import { foldOften } from './debit';
import { eventsOf, subscriptionOf } from './events';
import { auditAct, entryOf, keptAct } from './operator-acts';
import type {
  DatedAct,
  MoveAnswer,
  ReadStanding,
  RecordAttention,
  RecordMove,
  RecordUnapplied,
  Standing,
} from './record-inputs';

/** Dependencies of every lifecycle's activities. */
export interface RecordDeps extends DeliveryStarter {
  mongo: MongoClient;
  stores: Stores;
  log: Logger;
}

/** The part of a document that every kind of resource has. */
interface Recorded<Status extends string, Attention extends string> {
  _id: string;
  account_id: string;
  livemode: boolean;
  currency: string;
  status: Status;
  version: number;
  updated_at: string;
  attention: Attention | null;
  marked_at?: number;
  applied_callbacks?: string[];
  audit: AuditEntry[];
}

/** The points in which the record of one kind of resource differs from the others. */
export interface RecordTable<
  Status extends string,
  Attention extends string,
  Change,
  Document extends Recorded<Status, Attention>,
  Loaded,
> {
  resource: CallbackResource;
  store: {
    get: (id: string) => Promise<Document | null>;
    /** Writes conditionally; null when the document is no longer at `version`. */
    update: (
      id: string,
      version: number,
      change: Partial<Document>,
      written: WrittenWith,
      session: ClientSession,
    ) => Promise<Document | null>;
    /** Writes conditionally; false when it changed nothing. */
    setAttention: (
      id: string,
      marking: Marking<Attention>,
      session?: ClientSession,
    ) => Promise<boolean>;
  };
  /** The lawful moves. */
  moves: Record<Status, readonly Status[]>;
  /** The event of each state that is reached. */
  events: Record<Status, EventType | undefined>;
  /** The ids that its events carry. */
  eventData: (document: Document) => Record<string, string>;
  /** Fields that a move changes. @see standingOf */
  changeOf: (move: RecordMove<Status, Attention, Change>) => Partial<Document>;
  /** States whose reaching is posted. */
  posted: readonly Status[];
  /** The postings of a move, and what else its transaction writes. @param document after the move */
  post: (
    document: Document,
    move: RecordMove<Status, Attention, Change>,
    session: ClientSession,
  ) => Promise<void>;
  /** Whether a move tells the merchant; each does when not given. */
  tells?: (move: RecordMove<Status, Attention, Change>) => boolean;
  /** Book that its money moves in; that of its currency when not given. */
  bookOf?: (document: Document) => string;
  /** Reads which events have somewhere to go. */
  subscriptionOf?: (stores: Stores, account_id: string, livemode: boolean) => Promise<Subscription>;
  /** State and facts for a workflow that starts again. */
  loaded: (document: Document, request_id: string) => Loaded;
}

/** The activities that every kind of resource has. */
export function createRecord<
  Status extends string,
  Attention extends string,
  Change,
  Document extends Recorded<Status, Attention>,
  Loaded,
>(deps: RecordDeps, table: RecordTable<Status, Attention, Change, Document, Loaded>) {
  return {
    /** Document, events, postings and audit entry in one transaction; then the deliveries start. */
    move: (input: RecordMove<Status, Attention, Change>): Promise<MoveAnswer<Status, Attention>> =>
      recordMove(deps, table, input),
    /** Marks or unmarks it for operators while the state stays. An act answers as a move does. */
    setAttention: async (
      input: RecordAttention<Attention>,
    ): Promise<MoveAnswer<Status, Attention> | undefined> => {
      const { resource_id, request_id, audit, ...marking } = input;
      const { version } = marking;
      const isWritten =
        audit === null
          ? await table.store.setAttention(resource_id, { ...marking, audit })
          : await recordAct(deps, table, resource_id, marking, audit);
      if (isWritten || audit === null) return undefined;
      return await actElsewhere(table, resource_id, version, audit);
    },
    /**
     * Reads where the record stands, before a bank is instructed.
     * @throws Error when the record is behind, or not there: a restored database, most likely. It is
     *   retried: no money moves that no record holds.
     */
    standing: async ({ resource_id, version }: ReadStanding): Promise<Standing<Status>> => {
      const document = await table.store.get(resource_id);
      if (document === null || document.version < version) {
        throw new Error(`The record of ${resource_id} is behind its workflow.`);
      }
      return { status: document.status, version: document.version };
    },
    /**
     * State and facts of a resource whose workflow starts again.
     * @throws ApplicationFailure not retryable, `{resource}_not_found`
     */
    load: async (input: {
      resource_id: string;
      request_id: string;
    }): Promise<Loaded & { applied: string[]; marked_at?: number }> => {
      const document = await table.store.get(input.resource_id);
      if (document === null) {
        const code = `${table.resource}_not_found`;
        throw ApplicationFailure.nonRetryable(`No such ${table.resource}.`, code);
      }
      await startPendingDeliveries(deps, document);
      const { applied_callbacks: applied = [], marked_at } = document;
      return { ...table.loaded(document, input.request_id), applied, ...defined({ marked_at }) };
    },
  };
}

/**
 * Makes moves once, and tells of them: a repeated call answers as the first did, also under later
 * moves, since a workflow task that is lost takes the reports of its writes with it. A record that
 * has made the first of these moves already is brought to the last; one that is ahead in another
 * way is told of, for the workflow to decide anew.
 * @throws Error when the record is behind: a restored database, most likely. It is retried: wait in
 *   the open for a person, move nothing.
 */
async function recordMove<
  Status extends string,
  Attention extends string,
  Change,
  Document extends Recorded<Status, Attention>,
  Loaded,
>(
  deps: RecordDeps,
  table: RecordTable<Status, Attention, Change, Document, Loaded>,
  input: RecordMove<Status, Attention, Change>,
): Promise<MoveAnswer<Status, Attention>> {
  const { resource_id, account_id, livemode, from, to, at, request_id } = input;
  assertLawful(table.moves, from.status, to);
  const status = to.at(-1);
  if (status === undefined) return from;
  const version = from.version + to.length;
  const moves = toldMoves(table, input, to);
  const read = table.subscriptionOf ?? subscriptionOf;
  const subscription = await read(deps.stores, account_id, livemode);
  const act = input.audit && {
    act: input.audit,
    id: auditId(resource_id, version),
    ...{ at, before: from.status, after: status },
  };
  const commit = async (session: ClientSession) => {
    const change = table.changeOf(input);
    const audit = act === undefined ? [] : [entryOf(act)];
    const written = { audit, callback_id: input.callback_id };
    const moved = await table.store.update(resource_id, from.version, change, written, session);
    if (moved === null) return null;
    const subject = { resource: table.resource, resource_id, account_id, livemode };
    const events = eventsOf(
      { ...subject, at, data: table.eventData(moved), request_id, moves },
      subscription,
    );
    if (events.length > 0) await deps.stores.events.insert(events, session);
    if (act !== undefined) await auditAct(deps.stores, subject, act, session);
    await table.post(moved, input, session);
    return { events, book: table.bookOf?.(moved) ?? bookId(moved) };
  };
  const made = await inTransaction(deps.mongo, commit);
  if (made === null) return await moveFromElsewhere(deps, table, input);
  await startDeliveries(deps, made.events);
  deps.log.info(
    { [`${table.resource}_id`]: resource_id, request_id, status },
    `${table.resource} moved`,
  );
  if (to.some((reached) => table.posted.includes(reached))) {
    await foldOften(deps, resource_id, made.book);
  }
  return { status, version };
}

/** Keeps an operator's act that moves nothing, on the resource and in the audit log. */
async function recordAct<
  Status extends string,
  Attention extends string,
  Change,
  Document extends Recorded<Status, Attention>,
  Loaded,
>(
  { mongo, stores }: RecordDeps,
  { resource, store }: RecordTable<Status, Attention, Change, Document, Loaded>,
  resource_id: string,
  marking: Omit<Marking<Attention>, 'audit'>,
  act: DatedAct,
): Promise<boolean> {
  const { id, at } = act;
  const found = await store.get(resource_id);
  if (found === null) return false;
  const { account_id, livemode } = found;
  const { attention } = marking;
  const before = found.attention ?? 'no attention';
  const made = { act, id, at, before, after: attention ?? 'no attention' };
  return await inTransaction(mongo, async (session) => {
    const audit = { ...keptAct(act), id, at };
    if (!(await store.setAttention(resource_id, { ...marking, audit }, session))) return false;
    await auditAct(stores, { resource, resource_id, account_id, livemode }, made, session);
    return true;
  });
}

/** Answers a move whose beginning the record has left. */
async function moveFromElsewhere<
  Status extends string,
  Attention extends string,
  Change,
  Document extends Recorded<Status, Attention>,
  Loaded,
>(
  deps: RecordDeps,
  table: RecordTable<Status, Attention, Change, Document, Loaded>,
  input: RecordMove<Status, Attention, Change>,
): Promise<MoveAnswer<Status, Attention>> {
  const { resource_id, from, to, request_id } = input;
  const document = await table.store.get(resource_id);
  const made = document === null ? 0 : document.version - from.version;
  if (document === null || made <= 0) {
    throw new Error(`The record of ${resource_id} is not where this move begins.`);
  }
  const { status, version, attention } = document;
  await startPendingDeliveries(deps, document);
  const first = to.slice(0, made);
  const moves = toldMoves(table, input, first);
  const isMade =
    moves.length === 0
      ? wasAsked(document, input)
      : await wasMade(deps, table.resource, resource_id, moves);
  if (!isMade) {
    deps.log.warn({ [`${table.resource}_id`]: resource_id, request_id, status }, 'record is ahead');
    return { status, version, ahead: { attention } };
  }
  const last = to.at(-1);
  if (made >= to.length && last !== undefined) {
    return { status: last, version: from.version + to.length };
  }
  const rest = { ...input, from: { status, version }, to: to.slice(made) };
  return await recordMove(deps, table, rest);
}

/**
 * Answers an act that was not written: undefined where an earlier attempt has, or where the record
 * stands.
 * @throws Error when the record is behind, as for a move
 */
async function actElsewhere<
  Status extends string,
  Attention extends string,
  Change,
  Document extends Recorded<Status, Attention>,
  Loaded,
>(
  { store }: RecordTable<Status, Attention, Change, Document, Loaded>,
  resource_id: string,
  from: number,
  act: AttentionAct,
): Promise<MoveAnswer<Status, Attention> | undefined> {
  const document = await store.get(resource_id);
  if (document?.audit.some(({ id }) => id === act.id)) return undefined;
  if (document === null || document.version <= from) {
    throw new Error(`The record of ${resource_id} is not where this act was asked for.`);
  }
  const { status, version, attention } = document;
  return { status, version, ahead: { attention } };
}

/** The fields that every move changes. */
export function standingOf<Status extends string, Attention extends string, Change>({
  from,
  to,
  at,
  attention,
}: RecordMove<Status, Attention, Change>) {
  const status = to.at(-1) ?? from.status;
  return { status, version: from.version + to.length, updated_at: at, attention };
}

/** Keys that an opening may find taken before it gives up: its own, by another attempt, or a place. */
const TAKEN_MAX = 3;

/**
 * Opens a resource, and looks again when a unique key was taken meanwhile: another attempt was
 * first, or (one in a million) the place in a list was.
 * @throws Error of MongoDB when keys are taken again and again: the collections contradict each other
 */
export async function openedOnce<T>(attempt: (isAgain: boolean) => Promise<T>): Promise<T> {
  for (let taken = 1; ; taken += 1) {
    try {
      return await attempt(taken > 1);
    } catch (error) {
      if (!isDuplicateKey(error) || taken === TAKEN_MAX) throw error;
    }
  }
}

/** The events of moves made at once, each with the version that it reaches. */
export function eventsOfMoves<Status extends string>(
  events: Record<Status, EventType | undefined>,
  to: readonly Status[],
  fromVersion: number,
): { type: EventType; version: number }[] {
  return to.flatMap((status, index) => {
    const type = events[status];
    return type === undefined ? [] : [{ type, version: fromVersion + index + 1 }];
  });
}

/** Starts deliveries that an earlier attempt may not have started after its write. */
export async function startPendingDeliveries(
  deps: RecordDeps,
  { _id, account_id, livemode }: { _id: string; account_id: string; livemode: boolean },
): Promise<void> {
  await startDeliveries(deps, await deps.stores.events.pending(_id, account_id, livemode));
}

/** Events of the moves that tell the merchant. */
function toldMoves<
  Status extends string,
  Attention extends string,
  Change,
  Document extends Recorded<Status, Attention>,
  Loaded,
>(
  { events, tells }: RecordTable<Status, Attention, Change, Document, Loaded>,
  move: RecordMove<Status, Attention, Change>,
  to: readonly Status[],
) {
  return (tells?.(move) ?? true) ? eventsOfMoves(events, to, move.from.version) : [];
}

/** Whether a move without events stands in the record: by its callback, or by its operator's act. */
function wasAsked(
  { applied_callbacks = [], audit }: Pick<Recorded<string, string>, 'applied_callbacks' | 'audit'>,
  { resource_id, from, to, callback_id, audit: act }: RecordMove<string, string, unknown>,
): boolean {
  const id = auditId(resource_id, from.version + to.length);
  if (act !== undefined) return audit.some((entry) => entry.id === id);
  return callback_id !== undefined && applied_callbacks.includes(callback_id);
}

/** Whether these very moves stand in the record; their events' ids are derived. */
async function wasMade(
  { stores }: RecordDeps,
  resource: CallbackResource,
  resource_id: string,
  moves: readonly { type: EventType; version: number }[],
): Promise<boolean> {
  const stored = await Promise.all(
    moves.map(({ version }) => stores.events.get(eventId(resource, resource_id, version))),
  );
  return stored.every((event, index) => event !== null && event.type === moves[index]?.type);
}

/** Keeps a callback that moved nothing, with its reason. */
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

function auditId(resource_id: string, version: number): string {
  return `${resource_id}:${version}`;
}

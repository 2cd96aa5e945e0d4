import type { ClientSession } from 'mongodb';
import { assertLawful } from '../src/domain/assert';
import type { CallbackResource } from '../src/domain/callback';
import type { EventType } from '../src/domain/event';
import { eventId } from '../src/ids';
import { bookId } from '../src/ledger/postings';
import { inTransaction } from '../src/mongo';
import { startDeliveries } from '../src/temporal/deliveries';
import { foldOften } from './debit';
import { eventsOf, subscriptionOf } from './events';
import { auditAct, entryOf } from './operator-acts';
import type { MoveAnswer, RecordMove } from './record-inputs';
import type { RecordDeps, Recorded, RecordTable } from './record-table';

/**
 * Makes moves once, and tells of them: a repeated call answers as the first did, also under later
 * moves, since a workflow task that is lost takes the reports of its writes with it. A record that
 * has made the first of these moves already is brought to the last; one that is ahead in another
 * way is told of, for the workflow to decide anew.
 * @throws Error when the record is behind: a restored database, most likely. It is retried: wait in
 *   the open for a person, move nothing.
 */
export async function recordMove<
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

function auditId(resource_id: string, version: number): string {
  return `${resource_id}:${version}`;
}

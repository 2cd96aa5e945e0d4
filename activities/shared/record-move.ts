import type { ClientSession } from 'mongodb';
import { eventId } from '../../src/base/ids';
import { inTransaction } from '../../src/base/mongo';
import { assertLawful } from '../../src/domain/assert';
import type { CallbackResource } from '../../src/domain/banks/callback';
import type { Movement } from '../../src/domain/banks/movement';
import type { EventType } from '../../src/domain/events/event';
import { bookId } from '../../src/ledger/entries';
import { listMovements, listMovementsUntil, withFreeNames } from '../../src/movements/register';
import { startDeliveries } from '../../src/service/events/deliveries';
import { callbackKey } from '../../src/store/callbacks';
import { findOldestApplied, type ResourceDocument } from '../../src/store/resource';
import { buildEvents, insertEvents, readSubscribers } from './events';
import { applyPendingOften } from './opening';
import { auditAct, buildAuditEntry } from './operator-acts';
import {
  countTransitions,
  type Known,
  type RecordDeps,
  type RecordTable,
  type Transition,
  type TransitionAnswer,
  type TransitionInput,
} from './record-table';

/**
 * Applies transitions exactly once. A repeat returns the first result, since a lost workflow task
 * loses the results of its writes. Where only the first transitions are stored, it applies the
 * rest; any other later version is `stale`, and the workflow decides again.
 * @throws Error when the database is behind, as after a restore: the retries stay visible to
 *   operators
 */
export async function recordMove<Document extends ResourceDocument, Change>(
  deps: RecordDeps,
  table: RecordTable<Document, Change>,
  input: Transition<Document, Change>,
): Promise<TransitionAnswer<Document>> {
  const { resource_id, account_id, livemode, from, to, at, request_id } = input;
  // A merchant moves the sandbox's time.
  if (livemode) deps.clock?.observe(Date.parse(at));
  assertLawful(table.transitions, from.status, to);
  const status = to.at(-1);
  if (status === undefined) return from;
  const counts = countTransitions(from, to);
  const transitions = listReportedEvents(table, input, to);
  const read = table.readSubscribers ?? readSubscribers;
  const subscribers = await read(deps.stores, account_id, livemode);
  const act = input.audit && {
    act: input.audit,
    id: auditId(resource_id, counts.transition),
    ...{ at, before: from.status, after: status },
  };
  const commit = async (session: ClientSession, clashes: number) => {
    const change = table.buildChange(input);
    const audit = act === undefined ? [] : [buildAuditEntry(act)];
    const extras = { audit, callback_id: input.callback_id, id: input.id };
    const updated = await table.store.update(resource_id, from.version, change, extras, session);
    if (updated === null) return null;
    const oldest = findOldestApplied(updated);
    if (input.callback_id !== undefined && oldest !== undefined) {
      const { callbacks } = deps.stores;
      await callbacks.markApplied(callbackKey(updated.connector, oldest), session);
    }
    const subject = { resource: table.resource, resource_id, account_id, livemode };
    const events = buildEvents(
      { ...subject, at, data: table.eventData(updated), request_id, transitions },
      subscribers,
    );
    await insertEvents(deps.stores, events, session);
    if (act !== undefined) await auditAct(deps, subject, act, session);
    const moved = await table.post(updated, { ...input, clashes }, session);
    return { events, moved, book: table.getBook?.(updated) ?? bookId(updated) };
  };
  const result = await withFreeNames((clashes) =>
    inTransaction(deps.mongo, (session) => commit(session, clashes)),
  );
  if (result === null) return await resolveStaleTransition(deps, table, input);
  await startDeliveries(deps, result.events);
  deps.log.info(
    { [`${table.resource}_id`]: resource_id, request_id, status },
    `${table.resource} moved`,
  );
  if (to.some((reached) => table.posted.includes(reached))) {
    await applyPendingOften(deps, resource_id, result.book);
  }
  return { status, ...counts, ...pickMoved(result.moved) };
}

function pickMoved(moved: Movement[]) {
  return moved.length === 0 ? {} : { moved };
}

async function resolveStaleTransition<Document extends ResourceDocument, Change>(
  deps: RecordDeps,
  table: RecordTable<Document, Change>,
  input: Transition<Document, Change>,
): Promise<TransitionAnswer<Document>> {
  const { resource_id, from, to, request_id } = input;
  const document = await table.store.get(resource_id);
  if (document === null || document.version <= from.version) {
    throw await buildBehind(table, document, from, resource_id);
  }
  const { status, version, transition, attention } = document;
  const doneCount = transition - from.transition;
  await startPendingDeliveries(deps, document);
  const first = to.slice(0, doneCount);
  const transitions = listReportedEvents(table, input, first);
  const isDone =
    doneCount > 0 &&
    (transitions.length === 0
      ? isRecorded(document, input)
      : await areEventsStored(deps, table.resource, resource_id, transitions));
  if (!isDone) {
    deps.log.warn({ [`${table.resource}_id`]: resource_id, request_id, status }, 'stale state');
    const moved = await listMovements(deps.stores, resource_id);
    return { status, version, transition, stale: { attention }, ...pickMoved(moved) };
  }
  const last = to.at(-1);
  if (doneCount >= to.length && last !== undefined) {
    const counts = countTransitions(from, to);
    // The workflow decides again about the reports of later movements, as for the first time.
    const moved = await listMovementsUntil(deps.stores, resource_id, counts.version);
    return { status: last, ...counts, ...pickMoved(moved) };
  }
  const rest = { ...input, from: { status, version, transition }, to: to.slice(doneCount) };
  return await recordMove(deps, table, rest);
}

/**
 * Shows operators that a workflow waits for its document, which a transition ends.
 * @param document not later than what the workflow knows
 */
export async function buildBehind(
  { store }: { store: Pick<RecordTable<ResourceDocument, unknown>['store'], 'markAttention'> },
  document: Pick<ResourceDocument, '_id' | 'version'> | null,
  known: Pick<Known, 'version'>,
  resource_id: string,
): Promise<Error> {
  if (document !== null && document.version < known.version) {
    const mark = { attention: 'record_behind', audit: null, attention_at: Date.now() } as const;
    await store.markAttention(resource_id, { version: document.version, ...mark });
  }
  return new Error(`The record of ${resource_id} is not at version ${known.version}.`);
}

export function listTransitionEvents<Status extends string>(
  events: Record<Status, EventType | undefined>,
  to: readonly Status[],
  from: number,
): { type: EventType; transition: number }[] {
  return to.flatMap((status, index) => {
    const type = events[status];
    return type === undefined ? [] : [{ type, transition: from + index + 1 }];
  });
}

/** Starts deliveries that an earlier attempt may have missed. */
export async function startPendingDeliveries(
  deps: RecordDeps,
  { _id, account_id, livemode }: { _id: string; account_id: string; livemode: boolean },
): Promise<void> {
  const { events, deliveries } = deps.stores;
  const pending = await deliveries.pending(_id, account_id, livemode);
  const ids = [...new Set(pending.map(({ event_id }) => event_id))];
  await startDeliveries(deps, { events: await events.getAll(ids), deliveries: pending });
}

function listReportedEvents<Document extends ResourceDocument, Change>(
  { events, shouldReport, getEvent }: RecordTable<Document, Change>,
  transition: Transition<Document, Change>,
  to: readonly Document['status'][],
) {
  if (shouldReport?.(transition) === false) return [];
  const { status, transition: first } = transition.from;
  if (getEvent === undefined) return listTransitionEvents(events, to, first);
  return to.map((reached, index) => {
    const type = getEvent(to[index - 1] ?? status, reached);
    return { type, transition: first + index + 1 };
  });
}

function isRecorded(
  {
    applied_callbacks = [],
    audit,
    last_transition,
  }: Pick<ResourceDocument, 'applied_callbacks' | 'audit' | 'last_transition'>,
  { resource_id, from, to, callback_id, audit: act, id }: TransitionInput<string, string, unknown>,
): boolean {
  if (id !== undefined && last_transition === id) return true;
  const actId = auditId(resource_id, from.transition + to.length);
  if (act !== undefined) return audit.some((entry) => entry.id === actId);
  return callback_id !== undefined && applied_callbacks.includes(callback_id);
}

async function areEventsStored(
  { stores }: RecordDeps,
  resource: CallbackResource,
  resource_id: string,
  transitions: readonly { type: EventType; transition: number }[],
): Promise<boolean> {
  const storedEvents = await Promise.all(
    transitions.map(({ transition }) =>
      stores.events.get(eventId(resource, resource_id, transition)),
    ),
  );
  return storedEvents.every(
    (event, index) => event !== null && event.type === transitions[index]?.type,
  );
}

function auditId(resource_id: string, transition: number): string {
  return `${resource_id}:${transition}`;
}

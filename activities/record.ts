import type { MongoClient } from 'mongodb';
import type { BankCallback, CallbackName, CallbackResource } from '../src/domain/callback';
import type { Logger } from '../src/log';
import type { Stores } from '../src/store';
import type { AuditEntry } from '../src/store/attention';
import { callbackKey } from '../src/store/callbacks';
import type { EventDocument } from '../src/store/events';
import { type DeliveryStarter, startDeliveries } from './events';

/** What every lifecycle's activities draw on. */
export interface RecordDeps extends DeliveryStarter {
  mongo: MongoClient;
  stores: Stores;
  log: Logger;
}

/** Where a resource stands after a write. */
export interface Standing<Status extends string> {
  status: Status;
  version: number;
}

/** An operator's act, as its update tells it. */
export interface Act {
  who: string;
  what: string;
  why: string;
}

interface Recording {
  resource_id: string;
  account_id: string;
  livemode: boolean;
  /** Of these very moves; their ids are derived, so a repeat is recognised. */
  events: EventDocument[];
  /** One transaction; true when this call made the moves. */
  commit: () => Promise<boolean>;
}

/**
 * Makes moves once, and tells of them: a repeated call answers as the first did, also under later
 * moves, since a workflow task that is lost takes the reports of its writes with it.
 * @throws Error when the record stands elsewhere: a restored database, most likely. It is retried:
 *   wait in the open for a person, move nothing.
 */
export async function recordOnce(deps: RecordDeps, recording: Recording): Promise<void> {
  if (await recording.commit()) return await startDeliveries(deps, recording.events);
  if (!(await wasMade(deps, recording.events))) {
    throw new Error(`The record of ${recording.resource_id} is not where this move begins.`);
  }
  await tellPending(deps, recording);
}

/** The write was done by an earlier attempt; its deliveries may not have been started. */
export async function tellPending(
  deps: RecordDeps,
  resource: Pick<Recording, 'resource_id' | 'account_id' | 'livemode'>,
): Promise<void> {
  const { resource_id, account_id, livemode } = resource;
  const pending = await deps.stores.events.pending(resource_id, account_id, livemode);
  await startDeliveries(deps, pending);
}

async function wasMade({ stores }: RecordDeps, events: EventDocument[]): Promise<boolean> {
  const stored = await Promise.all(events.map(({ _id }) => stores.events.get(_id)));
  return stored.every((event, index) => event !== null && event.type === events[index]?.type);
}

interface Unapplied {
  resource: CallbackResource;
  resource_id: string;
  connector: string;
  name: CallbackName;
  callback: BankCallback;
  reason: string;
  request_id: string;
}

/** A callback that moved nothing, kept with its reason. */
export async function keepUnapplied({ stores, log }: RecordDeps, input: Unapplied): Promise<void> {
  const { resource, resource_id, connector, name, callback, reason, request_id } = input;
  const about = { connector, resource, resource_id, name, body: callback };
  const key = callbackKey(connector, callback.callback_id);
  await stores.callbacks.markUnapplied(key, reason, about);
  const ids = { [`${resource}_id`]: resource_id, request_id, connector };
  log.warn({ ...ids, code: name }, 'callback moved nothing');
}

/** The audit entry of a move that an operator asked for; none where none did. */
export function auditOf(
  act: Act | undefined,
  move: { id: string; when: string; before: string; after: string },
): AuditEntry[] {
  return act === undefined ? [] : [{ ...act, ...move }];
}

/** Whoever posts to the books of one account takes turns. @see inTransaction */
export function ledgerTurn(owner: { account_id: string; livemode: boolean }): string {
  return `ledger:${owner.account_id}:${owner.livemode}`;
}

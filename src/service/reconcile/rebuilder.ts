import type { Client } from '@temporalio/client';
import type { MongoClient } from 'mongodb';
import type { CallbackResource } from '../../domain/callback/callback';
import type { Stores } from '../../store';

export interface RebuilderDeps {
  mongo: MongoClient;
  stores: Stores;
  temporal: Client;
  /** Key that derives the tokens of pages. */
  payTokenKey: Buffer;
  webhookQueue: string;
}

/**
 * - `rebuilt`: the document has the state of the workflow
 * - `short`: the balance is insufficient for the resource; nothing was posted
 * - `unreadable`: the histories do not show what was written, or they contradict the document
 */
export interface RebuildResult {
  outcome: 'rebuilt' | 'short' | 'unreadable';
  reason?: string;
  /** It is unknown or has expired. */
  key_lost?: boolean;
}

export type Part = 'life' | 'bookings';

/** Rebuilds documents, events, journal entries and idempotency records from workflow histories. */
export interface Rebuilder {
  /**
   * Safe to repeat: existing records are not written again.
   * @param part `life`: opening, transitions and attention reasons; `bookings`: late funds and
   *   disputes, after all others
   */
  rebuild(resource: CallbackResource, id: string, part: Part): Promise<RebuildResult>;
}

export type OpenRebuilder = (deps: RebuilderDeps) => Promise<Rebuilder>;

import type { Client } from '@temporalio/client';
import type { MongoClient } from 'mongodb';
import type { CallbackResource } from '../domain/callback';
import type { KeyRing } from '../keys/ring';
import type { Stores } from '../store';

export interface RebuilderDeps {
  mongo: MongoClient;
  stores: Stores;
  temporal: Client;
  /** Keys that derive the tokens of pages. */
  payTokens: KeyRing;
  webhookQueue: string;
}

/**
 * Outcome of a rebuilding.
 * - `rebuilt`: the document stands where the workflow does
 * - `short`: a balance does not hold what the resource once took from it; nothing of it was posted
 * - `unreadable`: its histories do not tell what was written, or contradict the document
 */
export interface Rebuilt {
  outcome: 'rebuilt' | 'short' | 'unreadable';
  /** Reason why it was left; absent when it was rebuilt. */
  reason?: string;
  /** Whether its idempotency key is not taken again: it is unknown, or its life is over. */
  key_lost?: boolean;
}

export type Part = 'life' | 'bookings';

/** Writes documents, events, postings and claims anew, from the histories of their workflows. */
export interface Rebuilder {
  /**
   * Safe to repeat, also after a stop halfway: what stands in the record is not written again.
   * @param part its opening, moves and marks; or bookings of money that went wrong, after all others
   */
  rebuild(resource: CallbackResource, id: string, part: Part): Promise<Rebuilt>;
}

export type OpenRebuilder = (deps: RebuilderDeps) => Promise<Rebuilder>;

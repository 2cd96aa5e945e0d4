import type { ClientSession, MongoClient } from 'mongodb';
import type { Logger } from '../../src/base/log';
import type { CallbackResource } from '../../src/domain/callback/callback';
import type { VerificationFault } from '../../src/domain/callback/signature';
import type { EventType, Subscription } from '../../src/domain/webhook/event';
import type { DeliveryStarter } from '../../src/service/events/deliveries';
import type { Stores } from '../../src/store';
import type { AttentionUpdate, AuditEntry } from '../../src/store/attention';
import type { AppendedEntries } from '../../src/store/resource';
import type { RecordMove } from './record-inputs';

/** Dependencies of every lifecycle's activities. */
export interface RecordDeps extends DeliveryStarter {
  mongo: MongoClient;
  stores: Stores;
  log: Logger;
  /** Counter of callbacks whose sender is not verified; absent in tests. */
  refusals?: RefusalMeter | undefined;
}

/** Counter of callbacks whose sender is not verified, for metrics. */
export interface RefusalMeter {
  refused(about: {
    connector: string;
    resource: CallbackResource;
    reason: VerificationFault;
  }): void;
}

/** The part of a document that every kind of resource has. */
export interface StoredResource<Status extends string, Attention extends string> {
  _id: string;
  account_id: string;
  livemode: boolean;
  currency: string;
  status: Status;
  version: number;
  updated_at: string;
  attention: Attention | null;
  attention_at?: number;
  applied_callbacks?: string[];
  audit: AuditEntry[];
}

/** The points in which the record of one kind of resource differs from the others. */
export interface RecordTable<
  Status extends string,
  Attention extends string,
  Change,
  Document extends StoredResource<Status, Attention>,
  Snapshot,
> {
  resource: CallbackResource;
  store: {
    get: (id: string) => Promise<Document | null>;
    /** Writes conditionally; null when the document is no longer at `version`. */
    update: (
      id: string,
      version: number,
      change: Partial<Document>,
      written: AppendedEntries,
      session: ClientSession,
    ) => Promise<Document | null>;
    /** Writes conditionally; false when it changed nothing. */
    setAttention: (
      id: string,
      marking: AttentionUpdate<Attention>,
      session?: ClientSession,
    ) => Promise<boolean>;
  };
  /** The lawful moves. */
  transitions: Record<Status, readonly Status[]>;
  /** The event of each state that is reached. */
  events: Record<Status, EventType | undefined>;
  /** The ids that its events carry. */
  eventData: (document: Document) => Record<string, string>;
  /** Fields that a move changes. @see buildCommonChange */
  buildChange: (move: RecordMove<Status, Attention, Change>) => Partial<Document>;
  /** States that are posted when they are reached. */
  posted: readonly Status[];
  /** Posts the journal entries of a transition, and writes what else its transaction writes. @param document after the move */
  post: (
    document: Document,
    move: RecordMove<Status, Attention, Change>,
    session: ClientSession,
  ) => Promise<void>;
  /** Whether a transition notifies the merchant; each does when absent. */
  shouldReport?: (move: RecordMove<Status, Attention, Change>) => boolean;
  /** Book that its money moves in; that of its currency when not given. */
  getBook?: (document: Document) => string;
  /** Reads which events have somewhere to go. */
  readSubscription?: (
    stores: Stores,
    account_id: string,
    livemode: boolean,
  ) => Promise<Subscription>;
  /** State and facts for a workflow that starts again. */
  buildSnapshot: (document: Document, request_id: string) => Snapshot;
}

/** The fields that every move changes. */
export function buildCommonChange<Status extends string, Attention extends string, Change>({
  from,
  to,
  at,
  attention,
}: RecordMove<Status, Attention, Change>) {
  const status = to.at(-1) ?? from.status;
  return { status, version: from.version + to.length, updated_at: at, attention };
}

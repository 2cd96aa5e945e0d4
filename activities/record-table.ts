import type { ClientSession, MongoClient } from 'mongodb';
import type { CallbackResource } from '../src/domain/callback';
import type { SenderFault } from '../src/domain/callback-mac';
import type { EventType, Subscription } from '../src/domain/event';
import type { Logger } from '../src/log';
import type { Stores } from '../src/store';
import type { AuditEntry, Marking } from '../src/store/attention';
import type { WrittenWith } from '../src/store/resource';
import type { DeliveryStarter } from '../src/temporal/deliveries';
import type { RecordMove } from './record-inputs';

/** Dependencies of every lifecycle's activities. */
export interface RecordDeps extends DeliveryStarter {
  mongo: MongoClient;
  stores: Stores;
  log: Logger;
  /** Counter of callbacks whose sender is not known; none when not given. */
  refusals?: RefusalMeter | undefined;
}

/** Counter of callbacks whose sender is not known, such as that of a process's figures. */
export interface RefusalMeter {
  refused(about: { connector: string; resource: CallbackResource; reason: SenderFault }): void;
}

/** The part of a document that every kind of resource has. */
export interface Recorded<Status extends string, Attention extends string> {
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

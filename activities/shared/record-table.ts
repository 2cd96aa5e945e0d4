import type { ClientSession, MongoClient } from 'mongodb';
import type { Logger } from '../../src/base/log';
import type { CallbackResource } from '../../src/domain/callback/callback';
import type { VerificationFault } from '../../src/domain/callback/signature';
import type { EventType, Subscription } from '../../src/domain/webhook/event';
import type { DeliveryStarter } from '../../src/service/events/deliveries';
import type { Stores } from '../../src/store';
import type { AttentionUpdate, AuditEntry } from '../../src/store/attention';
import type { AppendedEntries } from '../../src/store/resource';
import type { TransitionInput } from './record-inputs';

export interface RecordDeps extends DeliveryStarter {
  mongo: MongoClient;
  stores: Stores;
  log: Logger;
  refusals?: RefusalMeter | undefined;
}

/** Counter of callbacks whose sender is not verified. */
export interface RefusalMeter {
  refused(about: {
    connector: string;
    resource: CallbackResource;
    reason: VerificationFault;
  }): void;
}

/** Fields that the documents of all resources share. */
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

/** Differences between the records of the resources. */
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
    /** @returns null when the document is no longer at `version` */
    update: (
      id: string,
      version: number,
      change: Partial<Document>,
      written: AppendedEntries,
      session: ClientSession,
    ) => Promise<Document | null>;
    /** @returns false when it changed nothing */
    setAttention: (
      id: string,
      marking: AttentionUpdate<Attention>,
      session?: ClientSession,
    ) => Promise<boolean>;
  };
  transitions: Record<Status, readonly Status[]>;
  events: Record<Status, EventType | undefined>;
  eventData: (document: Document) => Record<string, string>;
  buildChange: (transition: TransitionInput<Status, Attention, Change>) => Partial<Document>;
  /** States that post journal entries. */
  posted: readonly Status[];
  /**
   * Posts the journal entries of a transition, and its further writes.
   * @param document after the transition
   */
  post: (
    document: Document,
    transition: TransitionInput<Status, Attention, Change>,
    session: ClientSession,
  ) => Promise<void>;
  /** Whether a transition notifies the merchant; by default it does. */
  shouldReport?: (transition: TransitionInput<Status, Attention, Change>) => boolean;
  /** Book of its money; by default that of its currency. */
  getBook?: (document: Document) => string;
  readSubscription?: (
    stores: Stores,
    account_id: string,
    livemode: boolean,
  ) => Promise<Subscription>;
  buildSnapshot: (document: Document, request_id: string) => Snapshot;
}

export function buildCommonChange<Status extends string, Attention extends string, Change>({
  from,
  to,
  at,
  attention,
}: TransitionInput<Status, Attention, Change>) {
  const status = to.at(-1) ?? from.status;
  return { status, version: from.version + to.length, updated_at: at, attention };
}

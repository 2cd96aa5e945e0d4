import type { ClientSession, MongoClient } from 'mongodb';
import type { ClockMeter } from '../../src/base/clock-meter';
import type { Logger } from '../../src/base/log';
import type { ApprovalLimits } from '../../src/domain/approval';
import type { CallbackResource } from '../../src/domain/callback/callback';
import type { VerificationFault } from '../../src/domain/callback/signature';
import type { Movement } from '../../src/domain/movement/movement';
import type { EventType, Subscriber } from '../../src/domain/webhook/event';
import type { Reported } from '../../src/movements/register';
import type { DeliveryStarter } from '../../src/service/events/deliveries';
import type { Stores } from '../../src/store';
import type { ResourceDocument, resourceStore } from '../../src/store/resource';
import type { Known, TransitionInput, TransitionResult, Written } from './record-inputs';

export interface RecordDeps extends DeliveryStarter {
  mongo: MongoClient;
  stores: Stores;
  log: Logger;
  refusals?: RefusalMeter | undefined;
  clock?: ClockMeter | undefined;
  approvalLimits?: ApprovalLimits | undefined;
  /** Repeats writes of a history, whose approvals may be lost. */
  isRebuild?: true;
}

export interface RefusalMeter {
  refused(about: {
    connector: string;
    resource: CallbackResource;
    reason: VerificationFault;
  }): void;
}

export type Transition<Document extends ResourceDocument, Change> = TransitionInput<
  Document['status'],
  NonNullable<Document['attention']>,
  Change
>;

export type TransitionAnswer<Document extends ResourceDocument> = TransitionResult<
  Document['status'],
  NonNullable<Document['attention']>
>;

/** Answer of a write that is no transition. */
export type WriteAnswer<Document extends ResourceDocument, Answer = object> = Written<
  Answer,
  Document['status'],
  NonNullable<Document['attention']>
>;

export interface RecordTable<Document extends ResourceDocument, Change> {
  resource: CallbackResource;
  store: Pick<
    ReturnType<typeof resourceStore<Document, never>>,
    'get' | 'update' | 'setAttention' | 'markAttention' | 'countWrite'
  >;
  transitions: Record<Document['status'], readonly Document['status'][]>;
  events: Record<Document['status'], EventType | undefined>;
  eventData: (document: Document) => Record<string, string>;
  buildChange: (transition: Transition<Document, Change>) => Partial<Document>;
  posted: readonly Document['status'][];
  /**
   * Posts entries, and further writes.
   * @param document after the transition
   * @returns new or changed movements
   */
  post: (
    document: Document,
    transition: Transition<Document, Change> & Partial<Pick<Reported, 'clashes'>>,
    session: ClientSession,
  ) => Promise<Movement[]>;
  /** Blocks acknowledging the attention reason. */
  isInSuspense?: (document: Document) => boolean | Promise<boolean>;
  shouldReport?: (transition: Transition<Document, Change>) => boolean;
  /** By default the book of its currency. */
  getBook?: (document: Document) => string;
  readSubscribers?: (
    stores: Stores,
    account_id: string,
    livemode: boolean,
  ) => Promise<Subscriber[]>;
}

export function buildCommonChange<Status extends string, Attention extends string, Change>({
  from,
  to,
  at,
  attention,
}: TransitionInput<Status, Attention, Change>) {
  const status = to.at(-1) ?? from.status;
  return { status, ...countTransitions(from, to), updated_at: at, attention };
}

/** Each transition counts as a write. */
export function countTransitions({ version, transition }: Known, { length }: readonly string[]) {
  return { version: version + length, transition: transition + length };
}

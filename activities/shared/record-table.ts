import type { ClientSession, MongoClient } from 'mongodb';
import type { Logger } from '../../src/base/log';
import type { ClockMeter } from '../../src/base/metrics';
import type {
  AnyCallback,
  CallbackName,
  CallbackResource,
  CallbackSignature,
  MissedCallback,
  SignedCallback,
  VerificationFault,
  VerificationMode,
} from '../../src/domain/banks/callback';
import type { Movement, Taken } from '../../src/domain/banks/movement';
import type { EventType, Subscriber } from '../../src/domain/events/event';
import type { FeeBearer } from '../../src/domain/merchants/acquirer-fee';
import type { AccountTime } from '../../src/domain/merchants/clock';
import type { ApprovalLimits } from '../../src/domain/operators/approval';
import type { ActSender, CountedAct } from '../../src/domain/operators/operator-act';
import type { Reported } from '../../src/movements/register';
import type { DeliveryStarter } from '../../src/service/events/deliveries';
import type { Stores } from '../../src/store';
import type { AttentionUpdate, ResourceDocument, resourceStore } from '../../src/store/resource';

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
  /** Replaces `events` where the status before counts, too. */
  getEvent?: (from: Document['status'], to: Document['status']) => EventType;
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
  /** Blocks acknowledging the attention reason; by default a movement in suspense. */
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

export interface ResourceState<Status extends string> {
  status: Status;
  /** Number of the workflow's writes. */
  version: number;
  /** Number of transitions. */
  transition: number;
}

/** State that a workflow knows of its document. */
export type Known = Pick<ResourceState<string>, 'version' | 'transition'>;

export interface OpenedState<Status extends string> extends ResourceState<Status> {
  verification: VerificationMode;
}

/** Stored state with which a workflow goes on in a new run. */
export interface LoadedState<Status extends string, Attention extends string>
  extends OpenedState<Status> {
  attention: Attention | null;
  /** Applied callbacks. */
  applied: string[];
  /** Ms since the epoch. */
  attention_at?: number;
  acknowledged?: Attention[];
  missed?: MissedCallback[];
  /** Ms since the epoch. */
  snoozed_until?: number;
  /** Absent until a sandbox's clock advances. */
  clock?: AccountTime;
  bank_reference?: string;
}

export interface TransitionResult<Status extends string, Attention extends string>
  extends ResourceState<Status> {
  /** Stored state where the input was stale and nothing was written. */
  stale?: { attention: Attention | null };
  /** New or changed ones, or all of a stale resource; absent where no money moved. */
  moved?: Movement[];
}

/** Answer of a write that is no transition: the version after it, or the stored state. */
export type Written<Answer, Status extends string = string, Attention extends string = string> =
  | (Answer & { version: number; stale?: never })
  | StaleResult<Status, Attention>;

/** Stored state, where the workflow knew an earlier one. */
export type StaleResult<Status extends string, Attention extends string> = Omit<
  TransitionResult<Status, Attention>,
  'stale'
> & { stale: { attention: Attention | null } };

export interface Act {
  who: string;
  what: string;
  why: string;
  approved_by?: string;
  approval_id?: string;
  by?: ActSender;
  bank_confirmed_not_executed?: boolean;
  credited?: CountedAct | undefined;
}

export interface DatedAct extends Act {
  /** Makes a repeat write nothing. */
  id: string;
  at: string;
}

export interface TransitionInput<Status extends string, Attention extends string, Change> {
  resource_id: string;
  account_id: string;
  livemode: boolean;
  from: ResourceState<Status>;
  /** States in order; the record skips none. */
  to: Status[];
  at: string;
  attention: Attention | null;
  change: Partial<Change>;
  audit?: Act;
  /** Makes a repeat known. */
  callback_id?: string;
  /** Makes a repeat without event, callback or act known. */
  id?: string;
  value_date?: string;
  /** The bank's, of the movement that a callback reports. */
  reference?: string;
  /** Minor units that the acquirer keeps of it. */
  fee?: number;
  /** Bore the fee when a history was written. */
  fee_bearer?: FeeBearer | undefined;
  /** Parts of movements that leave suspense with it. */
  taken?: Taken[];
  request_id: string;
}

export interface RecordAttention<Attention extends string>
  extends Omit<AttentionUpdate<Attention>, 'audit' | 'snoozed'>,
    Known {
  resource_id: string;
  audit: DatedAct | null;
  /** Ms since the epoch. */
  snoozed_until?: number;
  request_id: string;
}

export interface RecordUnapplied {
  resource: CallbackResource;
  resource_id: string;
  connector: string;
  name: CallbackName;
  callback: AnyCallback;
  reason: string;
  request_id: string;
}

export interface RecordRefused {
  report: SignedCallback;
  signature?: CallbackSignature;
  code: VerificationFault;
  at: string;
  request_id: string;
}

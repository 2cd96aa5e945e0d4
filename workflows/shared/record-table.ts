import type {
  RecordAttention,
  ResourceState,
  TransitionInput,
  TransitionResult,
  Written,
} from '../../activities/shared/record-inputs';
import type { CallbackResource } from '../../src/domain/callback/callback';
import type { Taken } from '../../src/domain/movement/movement';
import type { AuditedAct } from './operator-acts';
import type { Write } from './persist';
import type { View } from './view';

interface Next<Status extends string, Change> {
  to: readonly Status[];
  at: string;
  change: Partial<Change>;
  isAct: boolean;
  /** The bank's, of the movement that a callback reports. */
  reference?: string | undefined;
  /** Movement that an act takes. */
  movement?: string | undefined;
}

export interface RecordTable<Status extends string, Attention extends string, Resource, Change> {
  noun: CallbackResource;
  view: View<Status>;
  /** Waiting time as the end of a clause; empty when nothing is due. */
  until: (resource: Resource) => string;
  /** Whether `status` ends a reason; by default it ends overdue and different amounts. */
  isPast?: (attention: Attention, status: Status) => boolean;
  /** Parts of movements that leave suspense with a transition. */
  take?: (resource: Resource, next: Next<Status, Change>) => Taken[];
  /** Cleared by the next transition. */
  unverifiedReason: Attention;
  malformedReason: Attention;
  givenUpReason: Attention;
  refusedReason: Attention;
  /** Replaced by an overdue reason: any other says more. */
  weakReasons?: readonly Attention[];
  overdueReasons: readonly Attention[];
  getExtraFields?: (resource: Resource) => Partial<Change>;
  remember?: (resource: Resource, next: Next<Status, Change>) => void;
  writeTransition: (
    input: TransitionInput<Status, Attention, Change>,
  ) => Write<TransitionResult<Status, Attention>>;
  writeAttention: (input: RecordAttention<Attention>) => Write<Written<object, Status, Attention>>;
}

export interface StoredState<Status extends string, Attention extends string>
  extends ResourceState<Status> {
  attention: Attention | null;
}

export interface TransitionOptions<Change> {
  change?: Partial<Change>;
  audit?: AuditedAct;
  callback_id?: string;
  /** Makes a repeat known without an event, callback or act. */
  id?: string;
  value_date?: string | undefined;
  /** The bank's, of the movement that a callback reports. */
  reference?: string | undefined;
  /** Movement that an act takes. */
  movement?: string | undefined;
  scheduled?: boolean;
}

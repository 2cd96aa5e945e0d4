import type {
  RecordAttention,
  ResourceState,
  TransitionInput,
  TransitionResult,
} from '../../activities/shared/record-inputs';
import type { CallbackResource } from '../../src/domain/callback/callback';
import type { AuditedAct } from './operator-acts';
import type { Write } from './persist';
import type { View } from './view';

/** Transition that is being made. */
export interface Next<Status extends string, Change> {
  to: readonly Status[];
  /** ISO 8601, ms. */
  at: string;
  change: Partial<Change>;
  /** Whether an operator makes it. */
  isAct: boolean;
}

/** Differences between the resources when they are written and shown. */
export interface RecordTable<Status extends string, Attention extends string, Resource, Change> {
  noun: CallbackResource;
  view: View<Status, Attention>;
  /** How long it waits, as the end of a clause; empty when nothing is due. */
  until: (resource: Resource) => string;
  /** Whether `status` ends an attention reason; by default it ends overdue and different amounts. */
  isPast?: (attention: Attention, status: Status) => boolean;
  /** Whether the present attention reason stays, also after a transition: its money is in suspense. */
  isKept?: (resource: Resource, next?: Next<Status, Change>) => boolean;
  /** Attention reason for an unverified callback: the next transition clears it. */
  unverifiedReason: Attention;
  malformedReason: Attention;
  givenUpReason: Attention;
  /** Attention reasons that an overdue reason replaces: any other says more. */
  weakReasons?: readonly Attention[];
  /** Attention reasons for being overdue, which say the least. */
  overdueReasons: readonly Attention[];
  /** Facts that the next transition stores, too, such as the bank's own name for it. */
  getExtraFields?: (resource: Resource) => Partial<Change>;
  /** Stores in memory what a transition changes besides the status. */
  remember?: (resource: Resource, next: Next<Status, Change>) => void;
  writeTransition: (
    input: TransitionInput<Status, Attention, Change>,
  ) => Write<TransitionResult<Status, Attention>>;
  writeAttention: (
    input: RecordAttention<Attention>,
  ) => Write<TransitionResult<Status, Attention> | undefined>;
}

export interface StoredState<Status extends string, Attention extends string>
  extends ResourceState<Status> {
  attention: Attention | null;
}

export interface TransitionOptions<Change> {
  change?: Partial<Change>;
  audit?: AuditedAct;
  callback_id?: string;
  /** Makes a repeat known that has no event, callback or act. */
  id?: string;
  value_date?: string | undefined;
  scheduled?: boolean;
}

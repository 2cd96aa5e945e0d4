import type { AnyCallback, CallbackName, CallbackResource } from '../src/domain/callback';
import type {
  CallbackMac,
  SenderCheck,
  SenderFault,
  ToldCallback,
} from '../src/domain/callback-mac';
import type { SentBy } from '../src/domain/lifecycle';
import type { Marking } from '../src/store/attention';

/** State and version of a resource after a write. */
export interface Standing<Status extends string> {
  status: Status;
  version: number;
}

/** State and version of a resource as it was opened. */
export interface OpenedStanding<Status extends string> extends Standing<Status> {
  /** Extent to which the senders of its callbacks are looked at; absent from runs before. */
  senders?: SenderCheck;
}

/** The answer to a move: where the resource stands now. */
export interface MoveAnswer<Status extends string, Attention extends string>
  extends Standing<Status> {
  /** The record was ahead: nothing was moved, and this is where it stands. */
  ahead?: { attention: Attention | null };
}

/** An operator's act, as its update tells it. */
export interface Act {
  who: string;
  what: string;
  why: string;
  /** Second operator. */
  approved_by?: string;
  /** Sender, where it came by the command line. */
  by?: SentBy;
}

/** An operator's act that changes the mark only. */
export interface DatedAct extends Act {
  /** Id made once, so that a repeat writes nothing. */
  id: string;
  /** ISO 8601, ms. */
  at: string;
}

/** Moves made at once: one or several. */
export interface RecordMove<Status extends string, Attention extends string, Change> {
  resource_id: string;
  account_id: string;
  livemode: boolean;
  from: Standing<Status>;
  /** The states passed through, in order; none is skipped in the record. */
  to: Status[];
  /** ISO 8601, ms. */
  at: string;
  attention: Attention | null;
  /** Fields that change beside the status. */
  change: Partial<Change>;
  audit?: Act;
  /** Callback that asked for the move: repeated later, it is known. */
  callback_id?: string;
  /** Day on which the bank books it, where it says so. */
  value_date?: string;
  request_id: string;
}

export interface RecordAttention<Attention extends string>
  extends Omit<Marking<Attention>, 'audit'> {
  resource_id: string;
  audit: DatedAct | null;
  request_id: string;
}

/** A question where the record stands. */
export interface ReadStanding {
  resource_id: string;
  /** Version that the workflow believes in. */
  version: number;
}

/** A callback that moved nothing. */
export interface RecordUnapplied {
  resource: CallbackResource;
  resource_id: string;
  connector: string;
  name: CallbackName;
  callback: AnyCallback;
  reason: string;
  request_id: string;
}

/** A callback whose sender is not known. */
export interface RecordRefused {
  told: ToldCallback;
  /** Absent where it carries none. */
  mac?: CallbackMac;
  code: SenderFault;
  /** ISO 8601, ms. */
  at: string;
  request_id: string;
}

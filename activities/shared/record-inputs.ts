import type {
  AnyCallback,
  CallbackName,
  CallbackResource,
} from '../../src/domain/callback/callback';
import type {
  CallbackSignature,
  SignedCallback,
  VerificationFault,
  VerificationMode,
} from '../../src/domain/callback/signature';
import type { ActSender } from '../../src/domain/lifecycle';
import type { AttentionUpdate } from '../../src/store/attention';

/** State and version of a resource after a write. */
export interface ResourceState<Status extends string> {
  status: Status;
  version: number;
}

/** State and version of a resource as it was opened. */
export interface OpenedState<Status extends string> extends ResourceState<Status> {
  /** Whether a callback without a signature counts. */
  verification: VerificationMode;
}

/** The answer to a transition: the state of the resource now. */
export interface TransitionResult<Status extends string, Attention extends string>
  extends ResourceState<Status> {
  /** Present when the state was stale: nothing was moved, and this is the stored state. */
  stale?: { attention: Attention | null };
}

/** An operator's act, as its update names it. */
export interface Act {
  who: string;
  what: string;
  why: string;
  /** Second operator. */
  approved_by?: string;
  /** Sender, where it came by the command line. */
  by?: ActSender;
}

/** An operator's act that changes the attention reason only. */
export interface DatedAct extends Act {
  /** Id made once, so that a repeat writes nothing. */
  id: string;
  /** ISO 8601, ms. */
  at: string;
}

/** Transition, or several in one step. */
export interface RecordMove<Status extends string, Attention extends string, Change> {
  resource_id: string;
  account_id: string;
  livemode: boolean;
  from: ResourceState<Status>;
  /** The states passed through, in order; none is skipped in the record. */
  to: Status[];
  /** ISO 8601, ms. */
  at: string;
  attention: Attention | null;
  /** Fields that change besides the status. */
  change: Partial<Change>;
  audit?: Act;
  /** Callback that asked for the move: repeated later, it is known. */
  callback_id?: string;
  /** Value date of the bank, where it names one. */
  value_date?: string;
  request_id: string;
}

export interface RecordAttention<Attention extends string>
  extends Omit<AttentionUpdate<Attention>, 'audit'> {
  resource_id: string;
  audit: DatedAct | null;
  request_id: string;
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

/** A callback whose sender is not verified. */
export interface RecordRefused {
  report: SignedCallback;
  /** Absent where it carries none. */
  signature?: CallbackSignature;
  code: VerificationFault;
  /** ISO 8601, ms. */
  at: string;
  request_id: string;
}

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
import type { ActSender } from '../../src/domain/operator-act';
import type { AttentionUpdate } from '../../src/store/attention';

export interface ResourceState<Status extends string> {
  status: Status;
  version: number;
}

export interface OpenedState<Status extends string> extends ResourceState<Status> {
  /** Whether a callback without a signature is applied. */
  verification: VerificationMode;
}

export interface TransitionResult<Status extends string, Attention extends string>
  extends ResourceState<Status> {
  /** Stored state; present when it was stale and nothing was written. */
  stale?: { attention: Attention | null };
}

export interface Act {
  who: string;
  what: string;
  why: string;
  /** Second operator. */
  approved_by?: string;
  approval_id?: string;
  /** Present where it came by the command line. */
  by?: ActSender;
  bank_confirmed_not_executed?: boolean;
}

/** Report of a bank that money moved, as its callback states it. */
export interface MoneyReport<Amount = number> {
  /** ISO 8601, ms. */
  at: string;
  callback_id: string;
  bank_reference?: string;
  /** Minor units, of an asset as a text; without it and the currency: as instructed. */
  amount?: Amount;
  /** ISO 4217. */
  currency?: string;
  value_date?: string;
}

export interface DatedAct extends Act {
  /** Makes a repeat write nothing. */
  id: string;
  /** ISO 8601, ms. */
  at: string;
}

export interface TransitionInput<Status extends string, Attention extends string, Change> {
  resource_id: string;
  account_id: string;
  livemode: boolean;
  from: ResourceState<Status>;
  /** States in order; the record skips none. */
  to: Status[];
  /** ISO 8601, ms. */
  at: string;
  attention: Attention | null;
  change: Partial<Change>;
  audit?: Act;
  /** Makes a repeat of the callback known. */
  callback_id?: string;
  /** Makes a repeat known that has no event, callback or act. */
  id?: string;
  value_date?: string;
  request_id: string;
}

export interface RecordAttention<Attention extends string>
  extends Omit<AttentionUpdate<Attention>, 'audit'> {
  resource_id: string;
  audit: DatedAct | null;
  /** End of a snooze, in ms since the epoch. */
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

/** Callback whose sender is not verified. */
export interface RecordRefused {
  report: SignedCallback;
  signature?: CallbackSignature;
  code: VerificationFault;
  /** ISO 8601, ms. */
  at: string;
  request_id: string;
}

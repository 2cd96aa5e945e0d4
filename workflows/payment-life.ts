import { ApplicationFailure, type Trigger } from '@temporalio/workflow';
import type { SessionAnswer } from '../connectors/contract/activities';
import type { BankCallback, PaymentCallbackName } from '../src/domain/callback';
import type { CancelledBy, PaymentAttention, PaymentStatus } from '../src/domain/payment';
import type {
  OperatorAct,
  PaymentInput,
  PaymentStart,
  PaymentState,
} from '../src/domain/payment-workflow';

/** What the loop takes in, in order of arrival. Handlers only enqueue; the loop decides. */
export type InboxItem =
  | { kind: 'callback'; name: PaymentCallbackName; callback: BankCallback }
  | { kind: 'malformed'; name: PaymentCallbackName; fault: string }
  | { kind: 'cancel'; by: CancelledBy; answer: Trigger<PaymentState> }
  | { kind: 'session'; answer: SessionAnswer }
  | {
      kind: 'operator';
      what: 'mark_settled' | 'mark_failed' | 'snooze';
      act: OperatorAct;
      hours?: number;
      answer: Trigger<PaymentState>;
    };

/** What the loop needs of the input; the same after a resume. */
export type PaymentFacts = Omit<PaymentInput, 'return_url' | 'expires_in_seconds'> & {
  expires_at_ms: number;
};

/** A payment's memory within one run. MongoDB holds its projection. */
export interface PaymentLife {
  paymentId: string;
  facts: PaymentFacts | undefined;
  status: PaymentStatus;
  version: number;
  /** The document is written; the API may answer. */
  stored: boolean;
  inbox: InboxItem[];
  seen: Set<string>;
  attention: PaymentAttention | null;
  /** When the state was reached, in ms since the epoch. */
  since: number;
  snoozedUntil: number | undefined;
  /** What was tried, for operators: newest last, bounded. */
  journal: string[];
  /** What the search attributes say now. */
  shown: { status: PaymentStatus | null; attention: PaymentAttention | null };
}

export function beginLife(start: PaymentStart): PaymentLife {
  return {
    paymentId: start.payment_id,
    facts: undefined,
    status: 'created',
    version: 0,
    stored: false,
    inbox: [],
    seen: new Set(),
    attention: null,
    since: Date.now(),
    snoozedUntil: undefined,
    journal: [],
    shown: { status: 'resume' in start ? null : 'created', attention: null },
  };
}

const JOURNAL_LINES_MAX = 20;

export function note(life: PaymentLife, line: string): void {
  life.journal.push(`${new Date().toISOString()} ${line}`);
  if (life.journal.length > JOURNAL_LINES_MAX) life.journal.shift();
}

export function stateOf(life: PaymentLife): PaymentState {
  return { payment_id: life.paymentId, status: life.status, version: life.version };
}

/** @throws ApplicationFailure before the payment is stored or loaded: a fault of ours. */
export function factsOf(life: PaymentLife): PaymentFacts {
  if (life.facts === undefined) throw ApplicationFailure.nonRetryable('The payment is not loaded.');
  return life.facts;
}

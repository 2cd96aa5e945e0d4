import type { CancellationScope, Trigger } from '@temporalio/workflow';
import type { CancelAnswer, Outdated } from '../../connectors/contract/activities';
import type { Movement, Outcome } from '../../src/domain/banks/movement';
import type { ActItem, CommonItem, Lifecycle, LifecycleKind } from './lifecycle';
import type { MovingKind, Suspension } from './movement';
import type { AuditedAct } from './operator-acts';
import type { Write } from './persist';
import { initialState, type ResourceSnapshot, startLabels, type WorkflowState } from './state';

export interface BankAnswer {
  outcome: string;
  bank_reference?: string;
  transaction_id?: string;
}

export type NotFound = { outcome: 'not_found' };

export interface InstructionState {
  /** Number of the newest instruction: only this one continues. */
  instruction: number;
  unanswered: { number: number; scope: CancellationScope } | undefined;
  /** Time until which an earlier run's instruction may arrive; ms since the epoch. */
  arrivesBy: number;
  /** Attempts without an answer; no run ends before them. */
  readonly pendingSends: Set<PendingSend>;
  bankReference: string | undefined;
}

export interface PendingSend {
  /** Cancelled, it ends if no connector has started it. */
  scope: CancellationScope;
  cancelled: boolean;
  /** Resolves when its instruction is over. */
  end: Promise<BankAnswer | undefined>;
}

export interface Kind extends LifecycleKind {
  answer: BankAnswer;
}

interface AnswerItem<K extends Kind> {
  kind: 'answer';
  answer: K['answer'] | Outdated;
}

export type InstructedItem<K extends Kind> = CommonItem<K> | AnswerItem<K>;

export interface BankQuestion<Answer extends BankAnswer> {
  /** Fails where the connector does not implement it. */
  cancel: () => Promise<CancelAnswer>;
  lookUp: () => Promise<Answer | NotFound>;
}

export interface Finding<Answer> {
  outcome: 'not_executed' | 'held' | 'may_arrive' | 'unreachable';
  answer?: Answer;
  status: string;
  instruction: number;
  /** Whether the question interrupted an unanswered instruction. */
  isInterrupted: boolean;
}

export interface Instructed<K extends Kind>
  extends WorkflowState<K['status'], K['attention'], K['facts']>,
    InstructionState {
  readonly inbox: InstructedItem<K>[];
  /** Operators who wait for the bank's answer. */
  resubmits: Trigger<K['actResult']>[];
  /** `mark_failed` acts that wait for the bank's answer. */
  failures: ActItem<K>[];
  isMarkedFailed: boolean;
}

type Decision<Status extends string, Attention extends string> =
  | { kind: 'move'; to: readonly Status[] }
  | { kind: 'unapplied'; reason: string; attention?: Attention };

type CommonAct = 'resubmit' | 'mark_failed' | 'snooze' | 'acknowledge' | 'resolve_movement';

/** @param amount minor units */
export type ActTransition<K extends Kind, R extends Instructed<K>> = (
  resource: R,
  amount: number | undefined,
) => {
  to: readonly K['status'][];
  change?: Partial<K['change']>;
  /** Records an act that changes no status. */
  write?: (audit: AuditedAct) => Promise<void>;
};

export interface InstructedRules<K extends Kind, R extends Instructed<K>>
  extends Omit<
    Lifecycle<K, R>,
    'acts' | 'handle' | 'applyCallback' | 'isFinal' | 'isIdle' | 'nextDue'
  > {
  kind: MovingKind;
  isEnded: (status: K['status']) => boolean;
  /** The bank may still have to be instructed. */
  isUnsent: (status: K['status']) => boolean;
  /** Reads the version for each `send`. */
  buildInstruction: (resource: R) => {
    send: () => Promise<K['answer'] | Outdated>;
    lookUp: () => Promise<K['answer'] | NotFound>;
    /** Waits stay short. */
    isInstant?: boolean;
  };
  buildQuestion?: (resource: R) => BankQuestion<K['answer']>;
  readSnapshot: (input: {
    resource_id: string;
    request_id: string;
  }) => Write<ResourceSnapshot<K['status'], K['attention'], K['facts']>>;
  decide: (
    resource: R,
    name: K['callbackName'],
    callback: K['callback'],
  ) => Decision<K['status'], K['attention']>;
  buildChange: (to: readonly K['status'][], callback: K['callback']) => Partial<K['change']>;
  applyAnswer: (resource: R, answer: K['answer']) => Promise<void>;
  /** Decides how a report moves money although the status stays; undefined: not at all. */
  suspend: (
    resource: R,
    name: K['callbackName'],
    callback: K['callback'],
    attention: K['attention'] | undefined,
  ) => Suspension | 'back' | undefined;
  /** Books what else a report says although the status stays. */
  bookMore?: (resource: R, callback: K['callback']) => Promise<void>;
  /** Whether a report is about what an earlier one has moved. */
  isLaterStep?: (to: readonly K['status'][]) => boolean;
  /** Act that takes a movement in suspense; undefined where none does. */
  findTaker: (resource: R, movement: Movement) => string | undefined;
  /** Act that a decision about a movement in suspense is. */
  findDecided?: (resource: R, movement: Movement, as: Outcome | undefined) => K['act'] | undefined;
  /** Minor units that an act may post at most. */
  getAmount?: (resource: R) => number;
  /** Changes by its own acts. */
  transitions: Record<Exclude<K['act'], CommonAct>, ActTransition<K, R>>;
  operatorFailure: Partial<K['change']>;
  /** Ms since the epoch. */
  dueAt: (resource: R) => number;
  /** Reason of one that is overdue; undefined where it has ended. */
  getOverdueReason: (status: K['status']) => K['attention'] | undefined;
}

export type InstructedLifecycle<K extends Kind, R extends Instructed<K>> = InstructedRules<K, R> &
  Lifecycle<K, R, AnswerItem<K>>;

/** @param resumed its search attributes are not known */
export function newInstructed<K extends Kind>(
  { inbox, clock }: Pick<Instructed<K>, 'inbox' | 'clock'>,
  id: string,
  snapshot: ResourceSnapshot<K['status'], K['attention'], K['facts']>,
  resumed: boolean,
): Instructed<K> {
  const state = initialState<K['status'], K['attention'], K['facts']>(
    id,
    snapshot,
    startLabels(resumed),
    clock,
  );
  return {
    ...state,
    inbox,
    instruction: 0,
    unanswered: undefined,
    arrivesBy: 0,
    pendingSends: new Set(),
    bankReference: undefined,
    resubmits: [],
    failures: [],
    isMarkedFailed: false,
  };
}

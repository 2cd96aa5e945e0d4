import type { Trigger } from '@temporalio/workflow';
import type { PayoutFacts } from '../../activities/payouts';
import type { PayoutAnswer } from '../../connectors/contract/activities';
import type { PayoutCallbackName } from '../../src/domain/callback';
import type { PayoutAttention, PayoutStatus } from '../../src/domain/payout';
import type { PayoutResult, PayoutStart, PayoutState } from '../../src/domain/payout-workflow';
import type { RefusedFor } from '../../src/domain/refund-rules';
import type { Instructing } from '../shared/bank-instruction';
import { type Life, newLife } from '../shared/life';
import type { CallbackItem } from '../shared/mailbox';
import type { OperatorItem } from '../shared/operator-acts';

/** What an operator can do to a payout. */
export type PayoutAct = 'resubmit' | 'mark_failed' | 'mark_returned' | 'mark_completed' | 'snooze';

/** Answer of an operator's update. */
export interface PayoutActed extends PayoutState {
  /** Of `resubmit`: what the bank said; absent when the payout moved before it had answered. */
  bank?: PayoutAnswer['outcome'];
}

/** What the loop takes in, in order of arrival. Handlers only enqueue; the loop decides. */
export type InboxItem =
  | CallbackItem<PayoutCallbackName>
  /** The bank's, to the instruction or to the look-up. */
  | { kind: 'answer'; answer: PayoutAnswer }
  | OperatorItem<PayoutAct, PayoutActed>;

/** A payout's memory within one run. */
export interface PayoutLife extends Life<PayoutStatus, PayoutAttention, PayoutFacts>, Instructing {
  payoutId: string;
  /** Started again: until it is loaded, nothing is known of its state. */
  resumed: boolean;
  /** In ms since the epoch: accepted by then, or not at all. */
  acceptBy: number;
  /** The attempt to accept it is over, however it went. */
  attempted: boolean;
  inbox: InboxItem[];
  /** Operators know that it is overdue in this state. */
  overdueTold: boolean;
  /** In ms since the epoch: a payout that moves on past its time is left alone until then. */
  notOverdueBefore: number;
  /** Why it was never accepted; nothing is stored then. */
  refusal: RefusedFor | undefined;
  /** The bank's own name for it, from its answer. */
  bankReference: string | undefined;
  /** ISO 8601; null before. */
  sentAt: string | null;
  completedAt: string | null;
  /** Operators who wait for what the bank says. */
  resubmits: Trigger<PayoutActed>[];
}

/** @param acceptBy in ms since the epoch */
export function beginLife(start: PayoutStart, acceptBy: number): PayoutLife {
  const resumed = 'resume' in start;
  return {
    ...newLife('created', resumed),
    ...{ payoutId: start.payout_id, resumed, acceptBy, attempted: resumed },
    inbox: [],
    overdueTold: false,
    notOverdueBefore: 0,
    refusal: undefined,
    bankReference: undefined,
    sentAt: null,
    completedAt: null,
    instruction: 0,
    sending: undefined,
    resubmits: [],
  };
}

/** Whether the bank still has to hand it to the scheme. */
export function isUnsent({ status }: Pick<PayoutLife, 'status'>): boolean {
  return status === 'created' || status === 'submitted';
}

export function stateOf(life: PayoutLife): PayoutState {
  return { payout_id: life.payoutId, status: life.status, version: life.version };
}

/** The same, or that it was refused. */
export function resultOf(life: PayoutLife): PayoutResult {
  const { payoutId: payout_id, refusal } = life;
  return refusal === undefined ? stateOf(life) : { payout_id, status: 'refused', ...refusal };
}

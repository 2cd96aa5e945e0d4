import { defineUpdate, type Trigger } from '@temporalio/workflow';
import type { DisputeChange, DisputeFacts } from '../../activities/disputes';
import type { DisputeReply, Outdated } from '../../connectors/contract/activities';
import { type BankCallback, readCallback } from '../../src/domain/banks/callback';
import {
  DISPUTE_ACTS,
  type DisputeAct,
  type DisputeAnswer,
  type DisputeAttention,
  type DisputeStatus,
} from '../../src/domain/dispute/dispute';
import { DISPUTE_CALLBACKS, type DisputeCallbackName } from '../../src/domain/dispute/report';
import type {
  DisputeResponse,
  DisputeState,
  RespondInput,
} from '../../src/domain/dispute/workflow';
import type { Refused } from '../../src/domain/lifecycle';
import { defineMessages, type Mailbox, readResult } from '../shared/inbox';
import type { InstructionState } from '../shared/instructed-rules';
import type { CommonItem } from '../shared/lifecycle';
import { ACKNOWLEDGE, OPERATOR, SNOOZE } from '../shared/operator-acts';
import { ResourceRecord } from '../shared/record';
import {
  FINAL,
  initialState,
  type ResourceSnapshot,
  startLabels,
  type Waiting,
  type WorkflowState,
} from '../shared/state';

export type DisputeResult = DisputeState | Refused<'dispute_id'>;

export interface DisputeKind {
  status: DisputeStatus;
  attention: DisputeAttention;
  facts: DisputeFacts;
  change: DisputeChange;
  callbackName: DisputeCallbackName;
  callback: BankCallback;
  act: DisputeAct;
  actResult: DisputeState;
  result: DisputeResult;
  opened: DisputeState;
}

/** Reply of the bank, with what it is about. */
export type NamedReply = DisputeReply & { to: DisputeAnswer };

export type DisputeItem =
  | CommonItem<DisputeKind>
  | { kind: 'respond'; with: DisputeAnswer; answer: Trigger<DisputeResponse> }
  | { kind: 'answer'; answer: NamedReply | Outdated };

export type DisputeCallback = Extract<DisputeItem, { kind: 'callback' }>;

export interface Dispute
  extends WorkflowState<DisputeStatus, DisputeAttention, DisputeFacts>,
    InstructionState {
  readonly inbox: DisputeItem[];
  /** ISO 8601. */
  dueAt: string | null;
  isSubmitted: boolean;
  isReminded: boolean;
  /** Answer that the bank has not confirmed. */
  answering: DisputeAnswer | null;
  /** Ms since the epoch. */
  answeringSince: number;
  /** Reports of what came back before it was taken, with their times; ms since the epoch. */
  early: { report: DisputeCallback; at: number }[];
  /** Callers who wait for the bank's answer. */
  waiting: Trigger<DisputeResponse>[];
}

export type DisputeMailbox = Mailbox<DisputeItem, Dispute>;

export interface DisputeSnapshot
  extends ResourceSnapshot<DisputeStatus, DisputeAttention, DisputeFacts> {
  evidence_due_at: string | null;
  isSubmitted?: boolean;
  isReminded?: boolean;
  answering?: DisputeAnswer | null;
  answering_since?: string | null;
}

/** @param resumed its search attributes are not known */
export function newDispute(
  { inbox, clock }: DisputeMailbox,
  id: string,
  snapshot: DisputeSnapshot,
  resumed: boolean,
): Dispute {
  const { answering = null, answering_since } = snapshot;
  return {
    ...initialState(id, snapshot, startLabels(resumed), clock),
    inbox,
    dueAt: snapshot.evidence_due_at,
    isSubmitted: snapshot.isSubmitted ?? false,
    isReminded: snapshot.isReminded ?? false,
    answering,
    answeringSince: Date.parse(answering_since ?? '') || 0,
    early: [],
    waiting: [],
    instruction: 0,
    unanswered: undefined,
    arrivesBy: 0,
    pendingSends: new Set(),
    bankReference: undefined,
  };
}

/** Contract, changed only by addition. */
export const messages = defineMessages<DisputeKind>(DISPUTE_ACTS, DISPUTE_CALLBACKS, readCallback, {
  open: 'Waits until the dispute is stored.',
  accept: `Gives in for the merchant: ${OPERATOR}}. What the bank took stays with the customer.`,
  dispute_won:
    `What the dispute took is back: ${OPERATOR}}. A "fee" in minor units came back, too. As a ` +
    'signal, from the bank.',
  snooze: SNOOZE,
  acknowledge: ACKNOWLEDGE,
  state: 'The state of the dispute.',
  dispute_opened: 'From the bank: the dispute, and what it took.',
  dispute_updated: 'From the bank: the status of the dispute, or its deadline.',
  dispute_withdrawn: 'From the bank: the dispute took money, by a movement of its own.',
  dispute_reinstated: 'From the bank: money came back, by a movement of its own.',
  dispute_lost: 'From the bank: what the dispute took does not come back.',
});

export const respond = defineUpdate<DisputeResponse, [RespondInput]>('respond');

export function getState({ id, status, version }: Dispute): DisputeState {
  return { dispute_id: id, status, version };
}

export function getResult(
  mail: Pick<DisputeMailbox, 'opening'>,
  dispute_id: string,
): DisputeResult {
  return readResult(mail, { dispute_id, status: 'needs_response', version: 0 }, getState);
}

const WAITING_FOR: Record<DisputeStatus, Waiting> = {
  needs_response: {
    what: 'evidence, or an acceptance',
    updates: '`respond`, `accept`, `dispute_won`',
  },
  under_review: { what: 'the bank to decide', updates: '`accept`, `dispute_won`' },
  won: FINAL,
  lost: { what: FINAL.what, updates: '`dispute_won`' },
  accepted: { what: FINAL.what, updates: '`dispute_won`' },
};

export const record = new ResourceRecord<DisputeKind, Dispute>({
  noun: 'dispute',
  getReported: ({ facts }) => ({ resource: 'payment', resource_id: facts.payment_id }),
  waitingFor: WAITING_FOR,
  until: ({ status, dueAt }) =>
    status === 'needs_response' && dueAt !== null ? `, until ${dueAt}` : '',
  overdueReasons: ['answer_overdue'],
  writeTransition: (input) => (activities) => activities.recordDisputeMove(input),
  writeAttention: (input) => (activities) => activities.recordDisputeAttention(input),
});

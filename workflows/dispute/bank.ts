import type { ConnectorActivities, Outdated } from '../../connectors/contract/activities';
import {
  type DisputeAnswer,
  type DisputeStatus,
  disputeInstructionId,
  isDisputeClosed,
} from '../../src/domain/dispute/dispute';
import { now, timestamp } from '../shared/clock';
import { getEarlierArrival, instruct, moneyActivities } from '../shared/instruction';
import { writeScheduled } from '../shared/persist';
import { rejectUpdate } from '../shared/refusal';
import { note } from '../shared/state';
import { type Dispute, getState, type NamedReply, record } from './state';

/** Answers the bank, unless that is under way; its confirmation comes by the inbox. */
export async function beginAnswer(dispute: Dispute, answer: DisputeAnswer): Promise<void> {
  if (dispute.answering === answer) {
    if (dispute.unanswered === undefined) instructBank(dispute, getEarlierArrival());
    return;
  }
  const at = timestamp(dispute);
  const step = { dispute_id: dispute.id, at, step: { kind: 'answering', answer } } as const;
  await record.book(dispute, 'recordDisputeStep', step);
  dispute.answering = answer;
  dispute.answeringSince = now(dispute);
  dispute.isOverdueReported = false;
  instructBank(dispute);
}

/** @see instruct */
export function instructBank(dispute: Dispute, arrivesBy?: number): void {
  void instruct<NamedReply, Dispute>(
    {
      noun: 'dispute',
      record,
      isUnsent: (status: DisputeStatus) => !isDisputeClosed(status),
      buildInstruction,
    },
    dispute,
    arrivesBy,
  );
}

function buildInstruction(dispute: Dispute) {
  const { id: dispute_id, facts, answering } = dispute;
  const { payment_id, name: bank_dispute_id, connector, livemode } = facts;
  const answer = answering ?? 'acceptance';
  const { once, patient } = moneyActivities<Required<ConnectorActivities>>(connector, answer);
  const instruction_id = disputeInstructionId(dispute_id, answer);
  const ids = { instruction_id, dispute_id, payment_id, bank_dispute_id };
  const build = () => ({ ...ids, version: dispute.transition, livemode });
  // An answer may come when the next instruction is under way.
  const name = <Reply extends object>(reply: Reply) => ({ ...reply, to: answer });
  if (answer === 'acceptance') {
    return {
      send: async () => name(await once.acceptDispute(build())),
      lookUp: async () => name(await patient.lookUpAcceptance(ids)),
    };
  }
  return {
    send: async () => name(isTooLate(dispute) ? TOO_LATE : await once.submitEvidence(build())),
    lookUp: async () => name(await patient.lookUpEvidence(ids)),
  };
}

/** Whether the deadline is over, as it may be once the bank is back. */
export function isTooLate(dispute: Pick<Dispute, 'dueAt' | 'clock'>): boolean {
  return dispute.dueAt !== null && now(dispute) >= Date.parse(dispute.dueAt);
}

const TOO_LATE = {
  outcome: 'refused',
  code: 'dispute_closed',
  message: 'Its deadline was over before the bank could be reached.',
} as const;

export async function applyAnswer(
  dispute: Dispute,
  answer: NamedReply | (Outdated & { to?: DisputeAnswer }),
): Promise<void> {
  const { id: resource_id, answering, status, facts } = dispute;
  note(dispute, `${answer.to ?? 'answer'} at the bank: ${answer.outcome}`);
  const isCurrent = answer.to === answering;
  if (answer.outcome === 'outdated') {
    if (!isCurrent) return;
    const { request_id } = facts;
    const stored = await writeScheduled((activities) =>
      activities.loadDispute({ resource_id, request_id }),
    );
    record.applyStored(dispute, stored);
    if (!isDisputeClosed(dispute.status)) instructBank(dispute, getEarlierArrival());
    else endWaits(dispute);
    return;
  }
  const at = timestamp(dispute);
  if (answer.outcome === 'refused') {
    if (!isCurrent) return;
    const step = { kind: 'refused', answer: answer.to } as const;
    await record.book(dispute, 'recordDisputeStep', { dispute_id: dispute.id, at, step });
    dispute.answering = null;
    await record.setAttention(dispute, 'answer_refused');
    return endWaits(dispute, `The bank refused it: ${answer.message}`);
  }
  const isEvidence = answer.to === 'evidence';
  if (isEvidence && dispute.isSubmitted) return;
  const reached = isEvidence ? 'under_review' : 'accepted';
  const change = {
    ...(isCurrent ? { answering: null } : {}),
    ...(isEvidence ? { evidence_submitted_at: at } : {}),
  };
  // The bank may have decided before it answered.
  const to = isDisputeClosed(status) ? status : reached;
  await record.transition(dispute, [to], { change, scheduled: true });
  dispute.isSubmitted ||= isEvidence;
  if (!isCurrent) return;
  dispute.answering = null;
  confirmWaits(dispute);
}

/** @param why by default, the bank has decided before it answered */
export function endWaits(dispute: Dispute, why = `The dispute is ${dispute.status}.`): void {
  if (dispute.status === 'accepted') confirmWaits(dispute);
  for (const waiting of dispute.waiting.splice(0)) {
    rejectUpdate(waiting, 'dispute_closed', why);
  }
}

function confirmWaits(dispute: Dispute): void {
  for (const waiting of dispute.waiting.splice(0)) {
    waiting.resolve({ ...getState(dispute), outcome: 'accepted' });
  }
}

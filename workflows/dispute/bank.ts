import type {
  ConnectorActivities,
  DisputeReply,
  Outdated,
} from '../../connectors/contract/activities';
import {
  type DisputeAnswer,
  type DisputeStatus,
  disputeInstructionId,
  isDisputeClosed,
} from '../../src/domain/dispute/dispute';
import { now, timestamp } from '../shared/clock';
import type { Earlier } from '../shared/instructed-rules';
import { getEarlierInstruction, instruct, moneyActivities } from '../shared/instruction';
import { writeScheduled } from '../shared/persist';
import { rejectUpdate } from '../shared/refusal';
import { note } from '../shared/state';
import { type Dispute, getState, record } from './state';

/** Answers the bank, unless that is under way; its confirmation comes by the inbox. */
export async function beginAnswer(dispute: Dispute, answer: DisputeAnswer): Promise<void> {
  if (dispute.answering === answer) {
    if (dispute.unanswered === undefined) instructBank(dispute, getEarlierInstruction());
    return;
  }
  const at = timestamp(dispute);
  const step = { dispute_id: dispute.id, at, step: { kind: 'answering', answer } } as const;
  await record.book(
    dispute,
    (known) => (activities) => activities.recordDisputeStep({ ...step, ...known }),
  );
  dispute.answering = answer;
  dispute.answeringSince = now(dispute);
  dispute.isOverdueReported = false;
  instructBank(dispute);
}

/** @param earlier is looked up before anything is sent */
export function instructBank(dispute: Dispute, earlier?: Earlier): void {
  void instruct<DisputeReply, Dispute>(
    {
      noun: 'dispute',
      record,
      isUnsent: (status: DisputeStatus) => !isDisputeClosed(status),
      buildInstruction,
    },
    dispute,
    earlier,
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
  return answer === 'evidence'
    ? { send: () => once.submitEvidence(build()), lookUp: () => patient.lookUpEvidence(ids) }
    : { send: () => once.acceptDispute(build()), lookUp: () => patient.lookUpAcceptance(ids) };
}

export async function applyAnswer(
  dispute: Dispute,
  answer: DisputeReply | Outdated,
): Promise<void> {
  const { id: resource_id, answering, status, facts } = dispute;
  note(dispute, `${answering ?? 'answer'} at the bank: ${answer.outcome}`);
  if (answer.outcome === 'outdated') {
    const { request_id } = facts;
    const stored = await writeScheduled((activities) =>
      activities.loadDispute({ resource_id, request_id }),
    );
    record.applyStored(dispute, stored);
    if (!isDisputeClosed(dispute.status)) instructBank(dispute, getEarlierInstruction());
    return;
  }
  if (answering === null) return;
  if (answer.outcome === 'refused') return await applyRefusal(dispute, answering, answer.message);
  const at = timestamp(dispute);
  const isEvidence = answering === 'evidence';
  const reached = isEvidence ? 'under_review' : 'accepted';
  const change = { answering: null, ...(isEvidence ? { evidence_submitted_at: at } : {}) };
  // The bank may have decided before it answered.
  const to = isDisputeClosed(status) ? status : reached;
  await record.transition(dispute, [to], { change, scheduled: true });
  dispute.isSubmitted ||= isEvidence;
  dispute.answering = null;
  for (const waiting of dispute.waiting.splice(0)) {
    waiting.resolve({ ...getState(dispute), outcome: 'accepted' });
  }
}

async function applyRefusal(
  dispute: Dispute,
  answer: DisputeAnswer,
  message: string,
): Promise<void> {
  const at = timestamp(dispute);
  const step = { dispute_id: dispute.id, at, step: { kind: 'refused', answer } } as const;
  await record.book(
    dispute,
    (known) => (activities) => activities.recordDisputeStep({ ...step, ...known }),
  );
  dispute.answering = null;
  await record.setAttention(dispute, 'answer_refused');
  for (const waiting of dispute.waiting.splice(0)) {
    rejectUpdate(waiting, 'dispute_closed', `The bank refused it: ${message}`);
  }
}

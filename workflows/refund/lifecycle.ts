import type { OpenRefund, RefundOpening } from '../../activities/refunds';
import {
  type BankCallback,
  describeDifference,
  describeFailure,
  type RefundCallbackName,
} from '../../src/domain/callback/callback';
import {
  decideRefund,
  isFinalRefund,
  REFUND_FAILURES,
  REFUND_STATUSES,
  type RefundAct,
  type RefundStatus,
  refundWorkflowId,
} from '../../src/domain/refund/refund';
import type { RefundInput, RefundResult, RefundStart } from '../../src/domain/refund/workflow';
import { timestamp } from '../shared/clock';
import { listen, type Opening, openMailbox, untilOpened } from '../shared/inbox';
import {
  beginInstructed,
  differs,
  LACKS_AMOUNT,
  lacksAmount,
  resumeInstructed,
  runInstructed,
} from '../shared/instructed';
import type { InstructedRules } from '../shared/instructed-rules';
import { cancelUnstartedSends, moneyActivities } from '../shared/instruction';
import type { Suspension } from '../shared/movement';
import { type ActRule, type ActRules, stateFault } from '../shared/operator-acts';
import { writeLocally, writeScheduled } from '../shared/persist';
import { assertIdentity } from '../shared/refusal';
import { showRefusal, upsertLabels } from '../shared/state';
import { messages } from './messages';
import {
  dueAt,
  getResult,
  getState,
  newRefund,
  type Refund,
  type RefundKind,
  type RefundMailbox,
  record,
} from './state';

/** @see docs/api.md#refunds */
export async function refund(start: RefundStart): Promise<RefundResult> {
  assertIdentity('refund_id', Object(start).refund_id, refundWorkflowId);
  const mail: RefundMailbox = openMailbox(start);
  listen<RefundKind, Refund>(mail, messages, {
    noun: 'refund',
    resumed: 'resume' in start,
    state: () => getResult(mail, start.refund_id),
    opened: async () => getState(await untilOpened(mail)),
    actFault,
  });
  await runInstructed(rules, mail, () => {
    if (!('resume' in start)) return open(mail, start);
    const { refund_id: resource_id, request_id } = start;
    return resumeInstructed(rules, mail, { resource_id, request_id }, 'refund_overdue');
  });
  return getResult(mail, start.refund_id);
}

const rules: InstructedRules<RefundKind, Refund> = {
  kind: 'refund',
  noun: 'refund',
  messages,
  record,
  isEnded: isFinalRefund,
  isUnsent: (status) => !isFinalRefund(status),
  buildInstruction: (refund) => {
    const { refund_id, payment_id, payment_bank_reference, connector } = refund.facts;
    const { amount, currency, method, livemode } = refund.facts;
    const { once, patient } = moneyActivities(connector, 'refund');
    const ids = { refund_id, payment_id, payment_bank_reference };
    const money = { amount, currency, method, livemode };
    return {
      send: () => once.sendRefund({ ...ids, version: refund.transition, ...money }),
      lookUp: () => patient.lookUpRefund({ refund_id }),
    };
  },
  readSnapshot: (input) => (activities) => activities.loadRefund(input),
  decide: (refund, name, callback) => {
    const decision = decideRefund(refund.status, name);
    if (decision.kind !== 'move' || name !== 'settled') return decision;
    const difference = describeDifference(callback, refund.facts);
    if (difference !== undefined) return differs(difference);
    return lacksAmount(refund, callback) ? differs(LACKS_AMOUNT) : decision;
  },
  buildChange: (to, callback) => {
    const { bank_reference } = callback;
    const failure = describeFailure(callback, REFUND_FAILURES.bank);
    return {
      ...(to.includes('failed') ? { failure } : {}),
      ...(bank_reference ? { bank_reference } : {}),
    };
  },
  applyAnswer: async (refund, answer) => {
    record.logActivity(refund, `instruction at the bank: ${answer.outcome}`);
    if (refund.isMarkedFailed && answer.outcome === 'accepted') {
      return await record.setAttention(refund, 'moved_after_failed');
    }
    if (isFinalRefund(refund.status) || answer.outcome !== 'refused') return;
    const failure = { code: answer.code, message: answer.message };
    await record.transition(refund, ['failed'], { change: { failure }, scheduled: true });
  },
  suspend,
  findTaker: ({ status, facts }, { direction, currency }) => {
    const isTaken = direction === 'out' && status === 'processing' && currency === facts.currency;
    return isTaken ? 'mark_settled' : undefined;
  },
  actFault,
  getAmount: ({ facts }) => facts.amount,
  acts: {
    mark_settled: (_refund, amount) => ({
      to: ['settled'],
      ...(amount === undefined ? {} : { change: { settled_amount: amount } }),
    }),
  },
  operatorFailure: { failure: REFUND_FAILURES.operator },
  nextDue: (refund) => {
    if (isFinalRefund(refund.status)) return cancelUnstartedSends(refund);
    if (refund.isOverdueReported) return undefined;
    const act = () => record.flagOverdue(refund, 'refund_overdue');
    return { at: dueAt(refund), summary: 'The refund is due', act };
  },
  getState,
  buildResume: (refund_id, request_id) => ({ refund_id, resume: true, request_id }),
};

async function open(
  mail: RefundMailbox,
  { clock, ...input }: RefundInput,
): Promise<Opening<Refund>> {
  const opening = await reserve({ ...input, created_at: timestamp(mail) });
  if (opening.outcome === 'refused') {
    showRefusal({ status: 'processing', attention: null }, opening);
    return opening;
  }
  const refund = newRefund(mail, input.refund_id, { ...opening, attention: null }, false);
  if (input.amount === null) {
    upsertLabels(refund, { ...refund.labels, amount: opening.facts.amount });
  }
  return beginInstructed(rules, refund);
}

/**
 * Reserves, or releases the key: an attempt that was given up may still succeed. Scheduled, since a
 * repeated task must find the idempotency record.
 */
async function reserve(input: OpenRefund): Promise<RefundOpening> {
  const opening = await writeLocally((activities) => activities.openRefund(input));
  if (opening.outcome === 'accepted') return opening;
  return (await writeScheduled((activities) => activities.abandonRefund(input))) ?? opening;
}

export function suspend(
  { status, facts }: Refund,
  name: RefundCallbackName,
  callback: BankCallback,
): Suspension | undefined {
  if (name === 'failed') {
    // What the customer had is back with us.
    if (status !== 'settled') return undefined;
    return { direction: 'in', reason: 'failed_after_settled' };
  }
  if (status === 'settled') return { direction: 'out', reason: 'second_completion' };
  if (status === 'failed') {
    const reason = 'settled_after_failed';
    return { direction: 'out', reason, isAfresh: true, isBorne: true };
  }
  if (describeDifference(callback, facts) === undefined) return undefined;
  return { direction: 'out', reason: 'amount_differs' };
}

const IN_FLIGHT: ActRule<RefundStatus> = {
  from: ['processing'],
  refusal: (status) => `The refund is ${status}; a final state is never left.`,
};

const ACTS: ActRules<RefundAct, RefundStatus> = {
  mark_settled: IN_FLIGHT,
  mark_failed: IN_FLIGHT,
  resolve_movement: { from: REFUND_STATUSES, refusal: IN_FLIGHT.refusal },
  snooze: IN_FLIGHT,
};

function actFault(refund: Refund, what: RefundAct): string | undefined {
  return stateFault(ACTS, refund.status, what);
}

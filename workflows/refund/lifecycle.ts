import type { RefundChange, RefundFacts } from '../../activities/refunds';
import type { RefundAnswer } from '../../connectors/contract/activities';
import {
  type BankCallback,
  describeDifference,
  describeFailure,
  REFUND_CALLBACKS,
  type RefundCallbackName,
  readCallback,
} from '../../src/domain/banks/callback';
import { isLateRefund, take } from '../../src/domain/banks/movement';
import {
  decideRefund,
  isFinalRefund,
  REFUND_ACTS,
  REFUND_FAILURES,
  REFUND_STATUSES,
  type RefundAct,
  type RefundAttention,
  type RefundInput,
  type RefundResult,
  type RefundStart,
  type RefundState,
  type RefundStatus,
  refundWorkflowId,
} from '../../src/domain/refund/refund';
import { timestamp } from '../shared/clock';
import {
  defineMessages,
  listen,
  type Mailbox,
  type Opening,
  openMailbox,
  readResult,
} from '../shared/inbox';
import {
  beginInstructed,
  defineInstructed,
  differs,
  LACKS_AMOUNT,
  lacksAmount,
  resumeInstructed,
} from '../shared/instructed';
import {
  type Instructed,
  type InstructedItem,
  type InstructedLifecycle,
  newInstructed,
} from '../shared/instructed-rules';
import { moneyActivities } from '../shared/instruction';
import { runLifecycle } from '../shared/lifecycle';
import { listOwn, type Suspension } from '../shared/movement';
import {
  ACKNOWLEDGE,
  type ActRule,
  type ActRules,
  OPERATOR,
  RESOLVE_MOVEMENT,
  SNOOZE,
  stateFault,
} from '../shared/operator-acts';
import { writeLocally, writeScheduled } from '../shared/persist';
import { ResourceRecord } from '../shared/record';
import { FINAL, showRefusal, upsertLabels, type Waiting } from '../shared/state';

interface RefundKind {
  status: RefundStatus;
  attention: RefundAttention;
  facts: RefundFacts;
  change: RefundChange;
  callbackName: RefundCallbackName;
  callback: BankCallback;
  answer: RefundAnswer;
  act: RefundAct;
  actResult: RefundState;
  result: RefundResult;
  opened: RefundState;
}

type Refund = Instructed<RefundKind>;
type RefundMailbox = Mailbox<InstructedItem<RefundKind>, Refund>;

/** @see docs/api.md#refunds */
export async function refund(start: RefundStart): Promise<RefundResult> {
  const mail: RefundMailbox = openMailbox(start);
  listen(rules, mail, start);
  await runLifecycle(rules, mail, () => {
    if (!('resume' in start)) return open(mail, start);
    const { refund_id: resource_id, request_id } = start;
    return resumeInstructed(rules, mail, { resource_id, request_id });
  });
  return getResult(mail, start.refund_id);
}

/** Contract, changed only by addition. */
export const messages = defineMessages<RefundKind>(REFUND_ACTS, REFUND_CALLBACKS, readCallback, {
  open: 'Waits until the refund is accepted or refused. Sent by the API with the start.',
  mark_settled:
    `The bank confirmed that the customer has the money: ${OPERATOR}}. ` +
    'An "amount" in minor units posts what was really sent.',
  mark_failed: `The bank confirmed that no money goes out: ${OPERATOR}}. The merchant gets it back.`,
  snooze: SNOOZE,
  resolve_movement: RESOLVE_MOVEMENT,
  acknowledge: ACKNOWLEDGE,
  state: 'The state of the refund.',
  settled: 'From the bank: the money reached the customer.',
  failed: 'From the bank: refused or sent back.',
});

function getState({ id, status, version }: Refund): RefundState {
  return { refund_id: id, status, version };
}

function getResult(mail: Pick<RefundMailbox, 'opening'>, refund_id: string): RefundResult {
  return readResult(mail, { refund_id, status: 'processing', version: 0 }, getState);
}

const WAITING_FOR: Record<RefundStatus, Waiting> = {
  processing: {
    what: 'the bank to say that the customer has the money',
    updates: '`mark_settled`, `mark_failed`, `snooze`',
  },
  settled: FINAL,
  failed: FINAL,
};

const record = new ResourceRecord<RefundKind, Refund>({
  noun: 'refund',
  waitingFor: WAITING_FOR,
  until: (refund) =>
    isFinalRefund(refund.status) ? '' : `, due ${new Date(dueAt(refund)).toISOString()}`,
  overdueReasons: ['refund_overdue'],
  take: ({ movements, facts }, next) => {
    if (!next.to.includes('settled')) return [];
    const { currency, amount } = facts;
    const own = listOwn(movements, next, { direction: 'out', currency });
    return take(own, BigInt(next.change.settled_amount ?? amount));
  },
  getExtraFields: ({ bankReference: bank_reference, storedReference }) =>
    bank_reference === undefined || storedReference !== undefined ? {} : { bank_reference },
  writeTransition: (input) => (activities) => activities.recordRefundMove(input),
  writeAttention: (input) => (activities) => activities.recordRefundAttention(input),
});

function dueAt({ snoozedUntil, facts }: Refund): number {
  return snoozedUntil ?? facts.due_at_ms;
}

const rules: InstructedLifecycle<RefundKind, Refund> = defineInstructed({
  kind: 'refund',
  noun: 'refund',
  workflowId: refundWorkflowId,
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
  actFault: ({ status }, what) => stateFault(ACTS, status, what),
  getAmount: ({ facts }) => facts.amount,
  transitions: {
    mark_settled: (_refund, amount) => ({
      to: ['settled'],
      ...(amount === undefined ? {} : { change: { settled_amount: amount } }),
    }),
  },
  operatorFailure: { failure: REFUND_FAILURES.operator },
  dueAt,
  getOverdueReason: (status) => (isFinalRefund(status) ? undefined : 'refund_overdue'),
  getState,
  getResult,
});

async function open(
  mail: RefundMailbox,
  { clock, ...input }: RefundInput,
): Promise<Opening<Refund>> {
  const request = { ...input, created_at: timestamp(mail) };
  let opening = await writeLocally((activities) => activities.openRefund(request));
  if (opening.outcome === 'refused') {
    // Releases the key: an attempt that was given up may still succeed. Scheduled, since a repeated
    // task must find the idempotency record.
    const stored = await writeScheduled((activities) => activities.abandonRefund(request));
    opening = stored ?? opening;
  }
  if (opening.outcome === 'refused') {
    showRefusal({ status: 'processing', attention: null }, opening);
    return opening;
  }
  const refund = newInstructed<RefundKind>(
    mail,
    input.refund_id,
    { ...opening, attention: null },
    false,
  );
  if (input.amount === null) {
    upsertLabels(refund, { ...refund.labels, amount: opening.facts.amount });
  }
  return beginInstructed(rules, refund);
}

export function suspend(
  { status, facts, movements }: Refund,
  name: RefundCallbackName,
  callback: BankCallback,
): Suspension | undefined {
  if (name === 'failed') {
    // What the customer had is back with us.
    if (status !== 'settled' && !movements.some(isLateRefund)) return undefined;
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

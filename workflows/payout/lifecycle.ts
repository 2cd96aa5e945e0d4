import { workflowInfo } from '@temporalio/workflow';
import type { PayoutChange } from '../../activities/payouts';
import type { PayoutAnswer } from '../../connectors/contract/activities';
import {
  type BankCallback,
  describeDifference,
  describeFailure,
  type PayoutCallbackName,
} from '../../src/domain/callback/callback';
import {
  decidePayout,
  isEnded,
  isUnsent,
  OVERDUE_ATTENTION,
  PAYOUT_FAILURES,
  type PayoutDecision,
  type PayoutStatus,
  pathTo,
  payoutWorkflowId,
  RETURNS,
} from '../../src/domain/payout/payout';
import type {
  PayoutInput,
  PayoutResult,
  PayoutResume,
  PayoutStart,
} from '../../src/domain/payout/workflow';
import { isOpenSent } from '../../src/domain/sent-held';
import type { Due } from '../shared/alarm';
import { moneyActivities, questionActivities } from '../shared/bank-activities';
import { cancelUnstartedSends, getEarlierInstruction } from '../shared/bank-instruction';
import { now, timestamp } from '../shared/clock';
import { listen } from '../shared/handlers';
import { instruct } from '../shared/instruct';
import {
  answerResubmits,
  beginInstructed,
  differs,
  LACKS_AMOUNT,
  lacksAmount,
  runInstructed,
} from '../shared/instructed';
import type { BankQuestion, InstructedRules } from '../shared/instructed-rules';
import { type Opening, receiveMissed } from '../shared/mailbox';
import { writeScheduled } from '../shared/persist';
import { assertIdentity } from '../shared/refusal';
import { holdSent } from '../shared/sent-held';
import { isReported, note } from '../shared/state';
import { showRefusal } from '../shared/view';
import { actFault } from './acts';
import { messages } from './messages';
import { bookUnapplied } from './money';
import { openPayoutMailbox, reserve, untilSent } from './opening';
import {
  dueAt,
  getResult,
  getState,
  newPayout,
  OVERDUE_AGAIN_MS,
  type Payout,
  type PayoutKind,
  type PayoutMailbox,
  record,
} from './state';

/** @see docs/api.md#states-of-a-payout */
export async function payout(start: PayoutStart): Promise<PayoutResult> {
  assertIdentity('payout_id', Object(start).payout_id, payoutWorkflowId);
  const mail = openPayoutMailbox(start);
  const callerWaits = !('resume' in start) && start.caller_waits === true;
  listen(mail, messages, {
    noun: 'payout',
    resumed: 'resume' in start,
    state: () => getResult(mail, start.payout_id),
    opened: async () => getState(await untilSent(mail, callerWaits)),
    asksBank: true,
    actFault,
  });
  await runInstructed(rules, mail, () =>
    'resume' in start ? load(mail, start) : open(mail, start),
  );
  return getResult(mail, start.payout_id);
}

const rules: InstructedRules<PayoutKind, Payout> = {
  kind: 'payout',
  noun: 'payout',
  messages,
  record,
  isEnded,
  isUnsent,
  buildInstruction,
  buildQuestion,
  readSnapshot: (input) => (activities) => activities.loadPayout(input),
  decide,
  buildChange,
  applyAnswer,
  bookUnapplied,
  actFault,
  getAmount: ({ facts }) => facts.amount,
  acts: {
    mark_returned: ({ status }, amount) => {
      const amountChange = amount === undefined ? {} : { returned_amount: amount };
      const change = { returned: RETURNS.operator, ...amountChange };
      return { to: pathTo(status, 'returned'), change };
    },
    mark_completed: ({ status }) => ({ to: pathTo(status, 'completed') }),
  },
  operatorFailure: { failure: PAYOUT_FAILURES.operator },
  nextDue,
  getState,
  buildResume: (payout_id, request_id) => ({ payout_id, resume: true, request_id }),
};

async function open(
  mail: PayoutMailbox,
  { clock, ...input }: PayoutInput,
): Promise<Opening<Payout>> {
  const created_at = timestamp(mail);
  const opening = await reserve(mail, { ...input, created_at, accept_by_ms: mail.acceptBy });
  if (opening.outcome === 'refused') {
    showRefusal({ status: 'created', attention: null }, opening);
    return opening;
  }
  const snapshot = { ...opening, attention: null };
  return beginInstructed(rules, newPayout(mail, input.payout_id, snapshot, false));
}

async function load(mail: PayoutMailbox, start: PayoutResume): Promise<Opening<Payout>> {
  const { payout_id: resource_id, request_id } = start;
  const snapshot = await writeScheduled((activities) =>
    activities.loadPayout({ resource_id, request_id }),
  );
  const payout = newPayout(mail, resource_id, snapshot, true);
  payout.sentAt = snapshot.sent_at;
  payout.completedAt = snapshot.completed_at;
  payout.holdsReturn = snapshot.holds_return === true;
  receiveMissed(mail, messages, snapshot.missed);
  if (isEnded(payout.status)) record.logActivity(payout, 'Started again after the end.');
  else await resumeInFlight(payout);
  return { outcome: 'accepted', resource: payout };
}

/** Reports to operators that a workflow was ended from outside. */
async function resumeInFlight(payout: Payout): Promise<void> {
  if (workflowInfo().continuedFromExecutionRunId !== undefined) {
    const { status } = payout;
    if (status === 'created' || status === 'submitted' || status === 'sent') {
      payout.isOverdueReported = isReported(payout, OVERDUE_ATTENTION[status]);
    }
    record.logActivity(payout, 'Goes on in a new run, since the history was long.');
  } else {
    note(payout, 'Started again in flight: its workflow was ended from outside.');
    payout.notOverdueBefore = now(payout) + OVERDUE_AGAIN_MS;
    await record.setAttention(payout, 'restarted_in_flight');
  }
  if (isUnsent(payout.status)) void instruct(rules, payout, getEarlierInstruction());
}

function decide(payout: Payout, name: PayoutCallbackName, callback: BankCallback): PayoutDecision {
  const { status, facts, sentAt: sent_at, completedAt: completed_at } = payout;
  const { can_be_returned } = facts;
  const returnable = { can_be_returned, sent_at, completed_at };
  // The bank's report may come late, but not before it happened.
  const at = Math.min(now(payout), Date.parse(callback.occurred_at));
  const decision = decidePayout(status, name, returnable, at);
  if (decision.kind !== 'move' || name === 'failed') return decision;
  const difference = describeDifference(callback, facts);
  if (difference !== undefined) return differs(difference);
  const isPosted = name === 'returned' || isUnsent(status);
  return isPosted && lacksAmount(payout, callback) ? differs(LACKS_AMOUNT) : decision;
}

function buildChange(to: readonly PayoutStatus[], callback: BankCallback): Partial<PayoutChange> {
  const { bank_reference, code, reason } = callback;
  const { bank: byDefault } = RETURNS;
  const failure = describeFailure(callback, PAYOUT_FAILURES.bank);
  const returned = { code: code ?? byDefault.code, reason: reason ?? byDefault.reason };
  return {
    ...(to.includes('failed') ? { failure } : {}),
    ...(to.includes('returned') ? { returned } : {}),
    ...(bank_reference ? { bank_reference } : {}),
  };
}

async function applyAnswer(payout: Payout, answer: PayoutAnswer): Promise<void> {
  record.logActivity(payout, `instruction at the bank: ${answer.outcome}`);
  if (payout.status === 'failed' && answer.outcome !== 'refused') {
    const { outcome, bank_reference } = answer;
    const sent = { callback_id: `answer:${payout.id}`, bank_reference, says: 'sent' } as const;
    // A worker that dies at the wrong moment reads the answer again, after the failure.
    const isNew = outcome !== 'sent' || (await holdSent(record, 'payout', payout, sent));
    return isNew ? await record.setAttention(payout, 'moved_after_failed') : undefined;
  }
  if (!isUnsent(payout.status)) return;
  // An answer names no amount: what the bank has reported decides, and an operator.
  if (answer.outcome === 'sent' && payout.sentHeld.some(isOpenSent)) {
    return answerResubmits(rules, payout, { bank: answer.outcome });
  }
  if (answer.outcome === 'refused') {
    const failure = { code: answer.code, message: answer.message };
    await record.transition(payout, ['failed'], { change: { failure }, scheduled: true });
  } else await record.transition(payout, pathTo(payout.status, answer.outcome));
  answerResubmits(rules, payout, { bank: answer.outcome });
}

function nextDue(payout: Payout): Due | undefined {
  const { status, isOverdueReported } = payout;
  if (status !== 'created' && status !== 'submitted' && status !== 'sent') {
    return cancelUnstartedSends(payout);
  }
  if (isOverdueReported) return undefined;
  const act = () => record.flagOverdue(payout, OVERDUE_ATTENTION[status]);
  return { at: dueAt(payout), summary: 'The payout is due', act };
}

function buildInstruction(payout: Payout) {
  const { payout_id, connector, amount, currency, method, livemode } = payout.facts;
  const { once, patient } = moneyActivities(connector, 'payout');
  const money = { amount, currency, method, livemode };
  return {
    send: () => once.sendPayout({ payout_id, version: payout.transition, ...money }),
    lookUp: () => patient.lookUpPayout({ payout_id }),
  };
}

function buildQuestion({ facts: { connector, payout_id } }: Payout): BankQuestion<PayoutAnswer> {
  const { canceller, asker } = questionActivities(connector, 'payout');
  return {
    cancel: () => canceller.cancelPayout({ payout_id }),
    lookUp: () => asker.lookUpPayout({ payout_id }),
  };
}

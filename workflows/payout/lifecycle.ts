import { workflowInfo } from '@temporalio/workflow';
import {
  type BankCallback,
  describeDifference,
  describeFailure,
  type PayoutCallbackName,
} from '../../src/domain/banks/callback';
import { isInSuspense, listReleased, type Movement } from '../../src/domain/banks/movement';
import { omitUndefined } from '../../src/domain/defined';
import { unapplied } from '../../src/domain/lifecycle';
import {
  decidePayout,
  isEnded,
  isUnsent,
  OVERDUE_ATTENTION,
  PAYOUT_FAILURES,
  type PayoutAttention,
  type PayoutInput,
  type PayoutResult,
  type PayoutResume,
  type PayoutStart,
  type PayoutStatus,
  pathTo,
  payoutWorkflowId,
  RETURNS,
} from '../../src/domain/payout/payout';
import { endOfNextBusinessDay, isInstant } from '../../src/domain/payout/rails';
import { now, timestamp } from '../shared/clock';
import { listen, type Opening, receiveMissed } from '../shared/inbox';
import {
  answerResubmits,
  beginInstructed,
  defineInstructed,
  differs,
  LACKS_AMOUNT,
  lacksAmount,
} from '../shared/instructed';
import type { InstructedLifecycle } from '../shared/instructed-rules';
import {
  askForOperator,
  getEarlierArrival,
  instruct,
  moneyActivities,
} from '../shared/instruction';
import { runLifecycle } from '../shared/lifecycle';
import { holdMovement, type Suspension } from '../shared/movement';
import { writeScheduled } from '../shared/persist';
import { isReported, note, showRefusal } from '../shared/state';
import {
  actFault,
  dueAt,
  getResult,
  getState,
  messages,
  newPayout,
  OVERDUE_AGAIN_MS,
  OVERDUE_REASONS,
  openPayoutMailbox,
  type Payout,
  type PayoutKind,
  type PayoutMailbox,
  record,
  reserve,
  untilSent,
} from './state';

/** @see docs/api.md#states-of-a-payout */
export async function payout(start: PayoutStart): Promise<PayoutResult> {
  const mail = openPayoutMailbox(start);
  listen(rules, mail, start, async () => {
    const callerWaits = !('resume' in start) && start.caller_waits === true;
    return getState(await untilSent(mail, callerWaits));
  });
  await runLifecycle(rules, mail, () =>
    'resume' in start ? load(mail, start) : open(mail, start),
  );
  return getResult(mail, start.payout_id);
}

const rules: InstructedLifecycle<PayoutKind, Payout> = defineInstructed({
  kind: 'payout',
  noun: 'payout',
  workflowId: payoutWorkflowId,
  messages,
  asksBank: true,
  record,
  isEnded,
  isUnsent,
  buildInstruction: (payout) => {
    const { payout_id, connector, amount, currency, method, livemode } = payout.facts;
    const { once, patient } = moneyActivities(connector, 'payout', {
      isInstant: isInstant(method),
    });
    const money = { amount, currency, method, livemode };
    return {
      send: () => once.sendPayout({ payout_id, version: payout.transition, ...money }),
      lookUp: () => patient.lookUpPayout({ payout_id }),
      isInstant: isInstant(method),
    };
  },
  buildQuestion: (payout) => {
    const { connector, payout_id } = payout.facts;
    const ask = askForOperator(connector, 'payout');
    return {
      // The connector may know only the second copy.
      cancel: async () =>
        isReported(payout, 'called_duplicate')
          ? { outcome: 'too_late' }
          : await ask(({ canceller }) => canceller.cancelPayout({ payout_id })),
      lookUp: () => ask(({ asker }) => asker.lookUpPayout({ payout_id })),
    };
  },
  readSnapshot: (input) => (activities) => activities.loadPayout(input),
  decide: (payout, name, callback) => {
    const { status, facts, sentAt: sent_at, completedAt: completed_at } = payout;
    const { can_be_returned } = facts;
    const returnable = { can_be_returned, sent_at, completed_at };
    // The bank's report may come late, but not before it happened.
    const at = Math.min(now(payout), Date.parse(callback.occurred_at));
    const decision = decidePayout(status, name, returnable, at);
    if (name === 'payee_verified' && callback.result === undefined) return NO_RESULT;
    if (decision.kind !== 'move' || name === 'failed') return decision;
    const difference = describeDifference(callback, facts);
    if (difference !== undefined) return differs(difference);
    const isPosted = name === 'returned' || isUnsent(status);
    return isPosted && lacksAmount(payout, callback) ? differs(LACKS_AMOUNT) : decision;
  },
  buildChange: (to, callback) => {
    const { bank_reference, code, reason } = callback;
    const { bank: byDefault } = RETURNS;
    const failure = describeFailure(callback, PAYOUT_FAILURES.bank);
    const returned = { code: code ?? byDefault.code, reason: reason ?? byDefault.reason };
    return {
      ...(to.includes('failed') ? { failure } : {}),
      ...(to.includes('returned') ? { returned } : {}),
      ...(bank_reference ? { bank_reference } : {}),
    };
  },
  applyAnswer: async (payout, answer) => {
    record.logActivity(payout, `instruction at the bank: ${answer.outcome}`);
    if (payout.status === 'failed' && answer.outcome !== 'refused') {
      const { outcome, bank_reference } = answer;
      // A worker that dies at the wrong moment reads the answer again, after the failure.
      if (outcome === 'sent') {
        const source = { kind: 'answer', id: payout.id } as const;
        const named = omitUndefined({ bank_reference: bank_reference || undefined });
        const report = { source, direction: 'out', ...named } as const;
        const held = await holdMovement(record, 'payout', payout, report, MOVED_AFTER_FAILED);
        if (held.movement?.reason !== 'moved_after_failed') return;
      }
      return await record.setAttention(payout, 'moved_after_failed');
    }
    if (!isUnsent(payout.status)) return;
    // An answer names no amount: what the bank has reported decides, and an operator.
    if (answer.outcome === 'sent' && listReleased(payout.movements).length > 0) {
      return answerResubmits(rules, payout, { bank: answer.outcome });
    }
    if (answer.outcome === 'refused') {
      const failure = { code: answer.code, message: answer.message };
      await record.transition(payout, ['failed'], { change: { failure }, scheduled: true });
    } else {
      const reference = answer.bank_reference || undefined;
      await record.transition(payout, pathTo(payout.status, answer.outcome), { reference });
      if (answer.watched) payout.notOverdueBefore = endOfNextBusinessDay(payout.facts.due_at_ms);
    }
    answerResubmits(rules, payout, { bank: answer.outcome });
  },
  suspend,
  // Keeps the newest result: banks repeat them, and files come in any order.
  bookMore: async (payout, { result, occurred_at }) => {
    if (result === undefined) return;
    const checked_at = new Date(occurred_at).toISOString();
    if (payout.payee !== undefined && payout.payee.checked_at >= checked_at) return;
    const verification = { result, checked_at };
    const isFlagged = payout.attention === 'payee_not_verified';
    const isVerified = result === 'match';
    const needsOperator = !isVerified && isUnsent(payout.status) && LESS.includes(payout.attention);
    const left = isFlagged && isVerified ? null : payout.attention;
    const attention = needsOperator ? 'payee_not_verified' : left;
    await record.noteVerification(payout, verification, attention);
    payout.payee = verification;
  },
  isLaterStep: (to) => to[0] === 'completed',
  findTaker,
  // The bank keeps back what it had debited: the payout came back.
  findDecided: (payout, movement, as) =>
    movement.reason === 'debit_reversed' && as === 'merchant'
      ? findTaker(payout, movement)
      : undefined,
  actFault,
  getAmount: ({ facts }) => facts.amount,
  transitions: {
    mark_returned: ({ status }, amount) => {
      const amountChange = amount === undefined ? {} : { returned_amount: amount };
      const change = { returned: RETURNS.operator, ...amountChange };
      return { to: pathTo(status, 'returned'), change };
    },
    mark_completed: ({ status }) => ({ to: pathTo(status, 'completed') }),
    // Lets the connector put a payout that waits for it into its next file.
    release_unverified: (payout) => ({
      to: [],
      write: async (audit) => {
        if (payout.payee === undefined) return;
        const verification = { ...payout.payee, released: true } as const;
        const isFlagged = payout.attention === 'payee_not_verified';
        const attention = isFlagged ? null : payout.attention;
        await record.recordAct(payout, audit, attention, { verification });
        payout.payee = verification;
        record.show(payout);
      },
    }),
  },
  operatorFailure: { failure: PAYOUT_FAILURES.operator },
  dueAt,
  getOverdueReason,
  getState,
  getResult,
});

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
  payout.payee = snapshot.payee;
  receiveMissed(mail, messages, snapshot.missed);
  const opening = { outcome: 'accepted', resource: payout } as const;
  if (isEnded(payout.status)) {
    record.logActivity(payout, 'Started again after the end.');
    return opening;
  }
  if (workflowInfo().continuedFromExecutionRunId !== undefined) {
    const reason = getOverdueReason(payout.status);
    payout.isOverdueReported = reason !== undefined && isReported(payout, reason);
    record.logActivity(payout, 'Goes on in a new run, since the history was long.');
  } else {
    note(payout, 'Started again in flight: its workflow was ended from outside.');
    payout.notOverdueBefore = now(payout) + OVERDUE_AGAIN_MS;
    await record.flagUnlessMore(payout, 'restarted_in_flight');
  }
  if (isUnsent(payout.status)) void instruct(rules, payout, getEarlierArrival());
  return opening;
}

function getOverdueReason(status: PayoutStatus): PayoutAttention | undefined {
  const reasons: Partial<Record<PayoutStatus, PayoutAttention>> = OVERDUE_ATTENTION;
  return reasons[status];
}

const NO_RESULT = unapplied('it names no result of the name check', 'malformed_callback');

/** Reasons that say less than a name which is not verified. */
const LESS: readonly (PayoutAttention | null)[] = [
  ...([null, 'sender_not_known', 'restarted_in_flight', 'payee_not_verified'] as const),
  ...OVERDUE_REASONS,
];

const MOVED_AFTER_FAILED = { direction: 'out', reason: 'moved_after_failed' } as const;

export function suspend(
  { status, facts, movements }: Payout,
  name: PayoutCallbackName,
  callback: BankCallback,
  attention: PayoutAttention | undefined,
): Suspension | 'back' | undefined {
  const isDifferent = describeDifference(callback, facts) !== undefined;
  const isReturnHeld = movements.some((each) => each.direction === 'in' && isInSuspense(each));
  switch (name) {
    case 'returned':
      if (status === 'failed') return 'back';
      if (callback.amount === undefined && isReturnHeld) return undefined;
      return {
        direction: 'in',
        reason: REFUSED_RETURNS.find((each) => each === attention) ?? 'amount_differs',
      };
    case 'debit_reversed':
      return { direction: 'in', reason: name };
    case 'return_reversed':
      return { direction: 'out', reason: name };
    case 'failed':
      return status === 'failed' ? 'back' : undefined;
    case 'sent':
      // A bank that says it again has sent it twice, where it names another movement.
      if (status === 'sent') return { direction: 'out', reason: 'second_completion' };
      if (status === 'failed') return MOVED_AFTER_FAILED;
      return isDifferent ? { direction: 'out', reason: 'amount_differs' } : undefined;
    case 'completed':
      if (status === 'failed') return { ...MOVED_AFTER_FAILED, isAfresh: true };
      if (status === 'completed') return { direction: 'out', reason: 'second_completion' };
      if (status === 'returned') return { direction: 'out', reason: 'moved_after_returned' };
      if (isDifferent) return { direction: 'out', reason: 'amount_differs' };
      return status === 'sent' ? NAMED_AGAIN : undefined;
    default:
      return undefined;
  }
}

const NAMED_AGAIN = { direction: 'out', reason: 'second_completion', isLaterStep: true } as const;

const REFUSED_RETURNS = ['return_too_late', 'return_not_possible', 'second_return'] as const;

function findTaker({ status, facts }: Payout, { direction, currency }: Movement) {
  if (currency !== facts.currency) return undefined;
  if (direction === 'out') return isUnsent(status) ? 'mark_completed' : undefined;
  return status === 'sent' || status === 'completed' ? 'mark_returned' : undefined;
}

import { assertNever } from '../../src/domain/assert';
import { PAYOUT_FAILURES, type PayoutStatus, RETURNS, wayTo } from '../../src/domain/payout';
import { stopInstructing } from '../shared/bank-instruction';
import { factsOf } from '../shared/life';
import { auditOf, datedAudit } from '../shared/operator-acts';
import { persistRecorded } from '../shared/persist';
import { reject } from '../shared/refusal';
import { instructPayout } from './bank';
import { type InboxItem, isUnsent, type PayoutAct, type PayoutLife, stateOf } from './life';
import { move } from './record';
import { show, tell } from './view';

const IN_FLIGHT = ['created', 'submitted', 'sent'] as const;

/** Where each act is possible, and why nowhere else. */
const ACTS: Record<PayoutAct, { from: readonly PayoutStatus[]; only: string }> = {
  resubmit: {
    from: ['created', 'submitted'],
    only: 'only one that the bank has not sent can be given to it again',
  },
  mark_failed: { from: IN_FLIGHT, only: 'only one that is under way can be marked as failed' },
  mark_completed: {
    from: IN_FLIGHT,
    only: 'only one that is under way can be marked as completed',
  },
  mark_returned: {
    from: ['sent', 'completed'],
    only: 'only one that was sent, and did not fail or return, can come back',
  },
  snooze: { from: IN_FLIGHT, only: 'only one that is under way can be snoozed' },
};

/** Why an operator can't do it now, in words; undefined when it can be done. */
export function actFault(life: PayoutLife, what: PayoutAct): string | undefined {
  const { from, only } = ACTS[what];
  if (!from.includes(life.status)) return `The payout is ${life.status}; ${only}.`;
  // What a bank reports against the rail's rules may still be true: a person decides.
  const isContradicted =
    life.attention === 'return_not_possible' || life.attention === 'failed_after_completed';
  if (what !== 'mark_returned' || factsOf(life).can_be_returned || isContradicted) {
    return undefined;
  }
  return `Nothing comes back on the rail ${factsOf(life).method}.`;
}

/** An operator's act, decided now: the state may be another than when it was sent. */
export async function applyOperator(
  life: PayoutLife,
  item: Extract<InboxItem, { kind: 'operator' }>,
): Promise<void> {
  const { what, act, answer, hours = 0 } = item;
  const fault = actFault(life, what);
  if (fault !== undefined) return reject(answer, 'wrong_state', fault);
  tell(life, `operator ${act.operator}: ${what} (${act.reason})`);
  const audit = auditOf(item);
  if (what === 'resubmit') {
    await recordAct(life, audit, life.attention);
    life.resubmits.push(answer);
    void instructPayout(life, true);
    return show(life);
  }
  if (what === 'mark_failed' && isUnsent(life) && (await stopInstructing(life))) {
    return reject(answer, 'wrong_state', 'The bank has just taken the payout; look again.');
  }
  if (what === 'snooze') await snooze(life, audit, hours);
  else await mark(life, what, audit);
  answer.resolve(stateOf(life));
}

type Audit = ReturnType<typeof auditOf>;

async function mark(
  life: PayoutLife,
  what: 'mark_failed' | 'mark_returned' | 'mark_completed',
  audit: Audit,
): Promise<void> {
  const recorded = true;
  switch (what) {
    case 'mark_failed':
      return await move(life, ['failed'], { audit, failure: PAYOUT_FAILURES.operator, recorded });
    case 'mark_returned': {
      const way = wayTo(life.status, 'returned');
      return await move(life, way, { audit, returned: RETURNS.operator, recorded });
    }
    case 'mark_completed':
      return await move(life, wayTo(life.status, 'completed'), { audit, recorded });
    default:
      assertNever(what);
  }
}

async function snooze(life: PayoutLife, audit: Audit, hours: number): Promise<void> {
  await recordAct(life, audit, null);
  life.snoozedUntil = Date.now() + hours * 3_600_000;
  life.overdueTold = false;
  life.attention = null;
  show(life);
}

/** An act that moves nothing; the mark is as it says. */
async function recordAct(
  life: PayoutLife,
  act: Audit,
  attention: PayoutLife['attention'],
): Promise<void> {
  const { payout_id, request_id } = factsOf(life);
  const { version } = life;
  const audit = datedAudit(act);
  await persistRecorded((activities) =>
    activities.recordPayoutAttention({ payout_id, version, attention, request_id, audit }),
  );
}

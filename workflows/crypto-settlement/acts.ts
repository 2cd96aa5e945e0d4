import { assertNever } from '../../src/domain/assert';
import {
  CRYPTO_SETTLEMENT_FAILURES,
  type CryptoSettlementAct,
  type CryptoSettlementStatus,
  settlementPathTo,
} from '../../src/domain/crypto/settlement';
import { stopInstructing } from '../shared/bank-instruction';
import { type ActRule, buildAudit, type OperatorItem, stateFault } from '../shared/operator-acts';
import { rejectUpdate } from '../shared/refusal';
import { instructSettlement } from './bank';
import { getState, record, type Settlement, type SettlementActResult } from './state';

const IN_FLIGHT = ['pending', 'sent'] as const;

const neverLeft = (status: CryptoSettlementStatus) =>
  `The settlement is ${status}; a final state is never left.`;

/** States in which each act is possible, for the validators and the loop. */
export const ACTS: Record<CryptoSettlementAct, ActRule<CryptoSettlementStatus>> = {
  resubmit: {
    from: ['pending'],
    refusal: (status) =>
      `The settlement is ${status}; only one that is not on the chain can be sent again.`,
  },
  mark_failed: { from: IN_FLIGHT, refusal: neverLeft },
  mark_completed: { from: IN_FLIGHT, refusal: neverLeft },
  snooze: { from: IN_FLIGHT, refusal: neverLeft },
};

export function actFault(settlement: Settlement, what: CryptoSettlementAct): string | undefined {
  return stateFault(ACTS[what], settlement.status);
}

/** Decides an act again: the state may have changed since its update was accepted. */
export async function applyAct(
  settlement: Settlement,
  item: OperatorItem<CryptoSettlementAct, SettlementActResult>,
): Promise<void> {
  const { what, act, hours, answer } = item;
  const fault = actFault(settlement, what);
  if (fault !== undefined) return rejectUpdate(answer, 'wrong_state', fault);
  record.logActivity(settlement, `operator ${act.operator}: ${what} (${act.reason})`);
  const audit = buildAudit(item);
  switch (what) {
    case 'resubmit':
      await record.recordAct(settlement, audit, settlement.attention);
      // Resolved with the connector's answer, or when the settlement changes before it.
      settlement.resubmits.push(answer);
      void instructSettlement(settlement, { arrivesBy: 0 });
      return record.show(settlement);
    case 'mark_failed': {
      if (settlement.status === 'pending' && (await stopInstructing(settlement))) {
        const message = 'The connector has just taken the settlement; look again.';
        return rejectUpdate(answer, 'wrong_state', message);
      }
      const change = { failure: CRYPTO_SETTLEMENT_FAILURES.operator };
      await record.transition(settlement, ['failed'], { change, audit, scheduled: true });
      break;
    }
    case 'mark_completed': {
      const path = settlementPathTo(settlement.status, 'completed');
      await record.transition(settlement, path, { audit, scheduled: true });
      break;
    }
    case 'snooze':
      await record.snooze(settlement, audit, hours);
      break;
    default:
      assertNever(what);
  }
  answer.resolve(getState(settlement));
}

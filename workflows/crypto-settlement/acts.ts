import { assertNever } from '../../src/domain/assert';
import {
  CRYPTO_SETTLEMENT_FAILURES,
  type CryptoSettlementAct,
  type CryptoSettlementStatus,
  settlementWayTo,
} from '../../src/domain/crypto-settlement';
import { stopInstructing } from '../shared/bank-instruction';
import { type ActRule, auditOf, type OperatorItem, stateFault } from '../shared/operator-acts';
import { rejectUpdate } from '../shared/refusal';
import { instructSettlement } from './bank';
import { record, type Settlement, type SettlementActed, stateOf } from './life';

const IN_FLIGHT = ['pending', 'sent'] as const;

const neverLeft = (status: CryptoSettlementStatus) =>
  `The settlement is ${status}; a final state is never left.`;

/** From which states each act is possible; read by the updates' validators and by the loop. */
export const ACTS: Record<CryptoSettlementAct, ActRule<CryptoSettlementStatus>> = {
  resubmit: {
    from: ['pending'],
    refusal: (status) =>
      `The settlement is ${status}; only one that is not on the chain can be given again.`,
  },
  mark_failed: { from: IN_FLIGHT, refusal: neverLeft },
  mark_completed: { from: IN_FLIGHT, refusal: neverLeft },
  snooze: { from: IN_FLIGHT, refusal: neverLeft },
};

/** Why an operator can't do it now, in words; undefined when it can be done. */
export function actFault(settlement: Settlement, what: CryptoSettlementAct): string | undefined {
  return stateFault(ACTS[what], settlement.status);
}

/** Decides an operator's act anew: the state may have changed since its update was accepted. */
export async function applyAct(
  settlement: Settlement,
  item: OperatorItem<CryptoSettlementAct, SettlementActed>,
): Promise<void> {
  const { what, act, hours, answer } = item;
  const fault = actFault(settlement, what);
  if (fault !== undefined) return rejectUpdate(answer, 'wrong_state', fault);
  record.tell(settlement, `operator ${act.operator}: ${what} (${act.reason})`);
  const audit = auditOf(item);
  switch (what) {
    case 'resubmit':
      await record.recordAct(settlement, audit, settlement.attention);
      // Answered with the connector's answer, or when the settlement moves before it.
      settlement.resubmits.push(answer);
      void instructSettlement(settlement, { arrivesBy: 0 });
      return record.show(settlement);
    case 'mark_failed': {
      if (settlement.status === 'pending' && (await stopInstructing(settlement))) {
        const taken = 'The connector has just taken the settlement; look again.';
        return rejectUpdate(answer, 'wrong_state', taken);
      }
      const change = { failure: CRYPTO_SETTLEMENT_FAILURES.operator };
      await record.move(settlement, ['failed'], { change, audit, scheduled: true });
      break;
    }
    case 'mark_completed': {
      const way = settlementWayTo(settlement.status, 'completed');
      await record.move(settlement, way, { audit, scheduled: true });
      break;
    }
    case 'snooze':
      await record.snooze(settlement, audit, hours);
      break;
    default:
      assertNever(what);
  }
  answer.resolve(stateOf(settlement));
}

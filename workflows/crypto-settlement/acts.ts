import {
  CRYPTO_SETTLEMENT_STATUSES,
  type CryptoSettlementAct,
  type CryptoSettlementStatus,
} from '../../src/domain/crypto/settlement';
import { type ActRules, stateFault } from '../shared/operator-acts';
import type { Settlement } from './state';

const IN_FLIGHT = ['pending', 'sent'] as const;

const neverLeft = (status: CryptoSettlementStatus) =>
  `The settlement is ${status}; a final state is never left.`;

const ACTS: ActRules<CryptoSettlementAct, CryptoSettlementStatus> = {
  resubmit: {
    from: ['pending'],
    refusal: (status) =>
      `The settlement is ${status}; only one that is not on the chain can be sent again.`,
  },
  mark_failed: { from: IN_FLIGHT, refusal: neverLeft },
  mark_completed: { from: IN_FLIGHT, refusal: neverLeft },
  resolve_movement: { from: CRYPTO_SETTLEMENT_STATUSES, refusal: neverLeft },
  snooze: { from: IN_FLIGHT, refusal: neverLeft },
};

export function actFault(settlement: Settlement, what: CryptoSettlementAct): string | undefined {
  return stateFault(ACTS, settlement.status, what);
}

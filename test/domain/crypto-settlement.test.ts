import { assertLawful } from '../../src/domain/assert';
import { CRYPTO_SETTLEMENT_CALLBACKS } from '../../src/domain/crypto/callback';
import {
  CRYPTO_SETTLEMENT_STATUSES,
  CRYPTO_SETTLEMENT_TRANSITIONS,
  decideSettlement,
  isSettlementEnded,
  settlementPathTo,
} from '../../src/domain/crypto/settlement';

test('every decision is lawful, and an ended settlement is never left', () => {
  for (const status of CRYPTO_SETTLEMENT_STATUSES) {
    for (const callback of CRYPTO_SETTLEMENT_CALLBACKS) {
      const decision = decideSettlement(status, callback);
      if (decision.kind === 'move') {
        assertLawful(CRYPTO_SETTLEMENT_TRANSITIONS, status, decision.to);
        expect(isSettlementEnded(status)).toBe(false);
      } else if (!isSettlementEnded(status)) expect(callback).toBe('sent');
    }
  }
});

test('a completion that overtakes the broadcast passes it by', () => {
  expect(settlementPathTo('pending', 'completed')).toEqual(['sent', 'completed']);
  expect(settlementPathTo('failed', 'completed')).toEqual([]);
});

import { defineQuery, defineSignal, defineUpdate } from '@temporalio/workflow';
import { CRYPTO_SETTLEMENT_CALLBACKS, readCryptoCallback } from '../../src/domain/crypto/callback';
import { CRYPTO_SETTLEMENT_ACTS } from '../../src/domain/crypto/settlement';
import type {
  CryptoSettlementResult,
  CryptoSettlementState,
} from '../../src/domain/crypto/workflow';
import type { ActPayload } from '../../src/domain/operator-act';
import { ACKNOWLEDGE, OPERATOR, RESOLVE_MOVEMENT } from '../shared/operator-acts';
import type { SettlementActResult } from './state';

/** Contract, changed only by addition. */
export const messages = {
  open: defineUpdate<CryptoSettlementState>('open'),
  state: defineQuery<CryptoSettlementResult>('state'),
  acts: CRYPTO_SETTLEMENT_ACTS.map((name) => ({
    name,
    update: defineUpdate<SettlementActResult, [ActPayload]>(name),
  })),
  callbacks: CRYPTO_SETTLEMENT_CALLBACKS.map((name) => ({
    name,
    signal: defineSignal<[unknown]>(name),
  })),
  read: readCryptoCallback,
  descriptions: {
    open: 'Waits until the settlement is accepted or refused. Sent by the API with the start.',
    resubmit:
      `Asks the connector, and sends it again only if the connector does not know it: ${OPERATOR}}. ` +
      'Answers with what the connector said.',
    mark_failed:
      `Nothing left or will leave: ${OPERATOR}}. The merchant gets it back. Asks the connector ` +
      'first, and is refused if the connector holds it, unless "bank_confirmed_not_executed" is true.',
    mark_completed: `The chain shows that the wallet has it: ${OPERATOR}}.`,
    snooze: `Clears the attention reason for some hours: ${OPERATOR}, "hours": 24}.`,
    resolve_movement: RESOLVE_MOVEMENT,
    acknowledge: ACKNOWLEDGE,
    state: 'The state of the settlement.',
    sent: 'From the connector: the transaction is broadcast.',
    completed: 'From the chain: the transaction is confirmed.',
    failed: 'From the connector: nothing has left, and nothing will.',
  },
};

import { defineQuery, defineSignal, defineUpdate } from '@temporalio/workflow';
import { CRYPTO_PAYMENT_CALLBACKS, readCryptoCallback } from '../../src/domain/crypto/callback';
import { CRYPTO_PAYMENT_ACTS } from '../../src/domain/crypto/payment';
import type { CryptoPaymentResult, CryptoPaymentState } from '../../src/domain/crypto/workflow';
import type { ActPayload } from '../../src/domain/operator-act';
import { ACKNOWLEDGE, OPERATOR } from '../shared/operator-acts';

/** Contract, changed only by addition. */
export const messages = {
  open: defineUpdate<CryptoPaymentState>('open'),
  state: defineQuery<CryptoPaymentResult>('state'),
  acts: CRYPTO_PAYMENT_ACTS.map((name) => ({
    name,
    update: defineUpdate<CryptoPaymentState, [ActPayload]>(name),
  })),
  callbacks: CRYPTO_PAYMENT_CALLBACKS.map((name) => ({
    name,
    signal: defineSignal<[unknown]>(name),
  })),
  read: readCryptoCallback,
  descriptions: {
    open: 'Waits until rate and address are given and stored. Sent by the API with the start.',
    release: `Credits the deposits that screening holds, for good: ${OPERATOR}}.`,
    reject: `Gives the waiting deposits up, for good: ${OPERATOR}}. They stay in suspense.`,
    accept: `Accepts the lower amount: ${OPERATOR}}. The payment becomes received.`,
    return:
      `Debits an underpaid payment, once its window is over: ${OPERATOR}}. It becomes expired; the ` +
      'asset is in suspense until you have sent it back.',
    credit_late: `Credits the deposits that came late, for good: ${OPERATOR}}.`,
    resolve_movement:
      `Decides about a deposit in suspense: ${OPERATOR}, "as": "customer", "transaction_id": "of the ` +
      'return", "address": "its own"}, or "as": "loss" or "never_happened". Of a credited one that ' +
      'the chain removed: "as": "merchant" or "loss". Of several, the "movement".',
    confirm: `The chain has confirmed a pending deposit: ${OPERATOR}, "transaction_id": "its own"}.`,
    snooze: `Clears the attention reason for some hours: ${OPERATOR}, "hours": 24}.`,
    acknowledge: ACKNOWLEDGE,
    state: 'The state of the crypto payment.',
    deposit: 'From the chain: a deposit was seen, or has more confirmations.',
    deposit_undone: 'From the chain: a deposit is in no block any more.',
    wrong_asset: 'From the chain: another asset than the payment asks for came to its address.',
    expired: 'From the connector: nothing more is coming.',
  },
};

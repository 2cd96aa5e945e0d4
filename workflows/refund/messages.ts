import { defineQuery, defineSignal, defineUpdate } from '@temporalio/workflow';
import { REFUND_CALLBACKS, readCallback } from '../../src/domain/callback/callback';
import type { ActPayload } from '../../src/domain/operator-act';
import { REFUND_ACTS } from '../../src/domain/refund/refund';
import type { RefundResult, RefundState } from '../../src/domain/refund/workflow';
import { ACKNOWLEDGE, OPERATOR, RESOLVE_MOVEMENT } from '../shared/operator-acts';

/** Contract, changed only by addition. */
export const messages = {
  open: defineUpdate<RefundState>('open'),
  state: defineQuery<RefundResult>('state'),
  acts: REFUND_ACTS.map((name) => ({
    name,
    update: defineUpdate<RefundState, [ActPayload]>(name),
  })),
  callbacks: REFUND_CALLBACKS.map((name) => ({ name, signal: defineSignal<[unknown]>(name) })),
  read: readCallback,
  descriptions: {
    open: 'Waits until the refund is accepted or refused. Sent by the API with the start.',
    mark_settled:
      `The bank confirmed that the customer has the money: ${OPERATOR}}. ` +
      'An "amount" in minor units posts what was really sent.',
    mark_failed: `The bank confirmed that no money goes out: ${OPERATOR}}. The merchant gets it back.`,
    snooze: `Clears the attention reason for some hours: ${OPERATOR}, "hours": 24}.`,
    resolve_movement: RESOLVE_MOVEMENT,
    acknowledge: ACKNOWLEDGE,
    state: 'The state of the refund.',
    settled: 'From the bank: the money reached the customer.',
    failed: 'From the bank: refused or sent back.',
  },
};

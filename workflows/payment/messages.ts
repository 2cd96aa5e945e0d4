import { defineQuery, defineSignal, defineUpdate } from '@temporalio/workflow';
import { PAYMENT_CALLBACKS, readCallback } from '../../src/domain/callback/callback';
import type { ActPayload } from '../../src/domain/operator-act';
import { PAYMENT_ACTS } from '../../src/domain/payment/payment';
import type { CancelInput, PaymentOpened, PaymentState } from '../../src/domain/payment/workflow';
import { ACKNOWLEDGE, OPERATOR, RESOLVE_MOVEMENT } from '../shared/operator-acts';

/** Contract, changed only by addition. */
export const messages = {
  open: defineUpdate<PaymentOpened>('open'),
  cancel: defineUpdate<PaymentState, [CancelInput]>('cancel'),
  state: defineQuery<PaymentState>('state'),
  acts: PAYMENT_ACTS.map((name) => ({
    name,
    update: defineUpdate<PaymentState, [ActPayload]>(name),
  })),
  callbacks: PAYMENT_CALLBACKS.map((name) => ({ name, signal: defineSignal<[unknown]>(name) })),
  read: readCallback,
  descriptions: {
    open: 'Waits until the payment is stored. Sent by the API with the start.',
    cancel: 'Cancels the payment: {"by": "merchant"}. Refused once the customer has paid.',
    mark_settled:
      `The bank confirmed that the money moved: ${OPERATOR}}. ` +
      'It credits what is in suspense, or one "movement" of it; an "amount" in minor units posts ' +
      'what really came.',
    mark_failed: `The bank confirmed that the payment failed: ${OPERATOR}}.`,
    claw_back:
      `Posts the chargeback of a settled payment: ${OPERATOR}}. The merchant owes what the balance ` +
      'does not have. An "amount" in minor units posts a part, once for each "operation_id".',
    mark_reversed: `Money in suspense is back with the customer: ${OPERATOR}}. Of several, the "movement".`,
    resolve_movement: RESOLVE_MOVEMENT,
    give_up_closing:
      `Ends the attempts to close a session, void or send money back at a retired bank: ${OPERATOR}}. ` +
      'The money stays in suspense.',
    snooze: `Clears the attention reason for some hours: ${OPERATOR}, "hours": 24}.`,
    acknowledge: ACKNOWLEDGE,
    state: 'The state of the payment.',
    authorized: 'From the bank: the customer paid, the money has not moved yet.',
    settled: 'From the bank: the money moved.',
    failed: 'From the bank: declined or errored.',
    expired: 'From the bank: the session closed unpaid.',
    reversed: 'From the bank: money in suspense is back with the customer.',
    reversal_failed: 'From the bank: money in suspense could not be sent back.',
    clawed_back: 'From the bank: it takes settled money back.',
    dispute_opened: 'From the bank: it takes settled money back, at once.',
    dispute_won:
      `What a dispute took is back: ${OPERATOR}}. The payment can be refunded again. Of several, ` +
      'the "dispute_id"; a "fee" in minor units came back, too. As a signal, from the bank.',
    dispute_updated: 'From the bank: the status of a dispute, or its deadline.',
    dispute_withdrawn: 'From the bank: a dispute took money, by a movement of its own.',
    dispute_reinstated: 'From the bank: money of a dispute came back, by a movement of its own.',
    dispute_lost: 'From the bank: what a dispute took does not come back.',
  },
};

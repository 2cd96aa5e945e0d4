import { defineQuery, defineSignal, defineUpdate } from '@temporalio/workflow';
import { PAYMENT_CALLBACKS } from '../../src/domain/callback';
import type {
  CancelInput,
  OperatorAct,
  PaymentState,
  SnoozeAct,
} from '../../src/domain/payment-workflow';
import { OPERATOR } from '../shared/operator-acts';

/** Messages of the `payment` workflow: a contract, changed only by addition. */
export const openUpdate = defineUpdate<PaymentState>('open');
export const cancelUpdate = defineUpdate<PaymentState, [CancelInput]>('cancel');
export const markSettledUpdate = defineUpdate<PaymentState, [OperatorAct]>('mark_settled');
export const markFailedUpdate = defineUpdate<PaymentState, [OperatorAct]>('mark_failed');
export const snoozeUpdate = defineUpdate<PaymentState, [SnoozeAct]>('snooze');
export const stateQuery = defineQuery<PaymentState>('state');

/** Bank callbacks; payload `BankCallback`, parsed by the handler. */
export const callbackSignals = PAYMENT_CALLBACKS.map((name) => ({
  name,
  signal: defineSignal<[unknown]>(name),
}));

/** What the Temporal UI shows beside each message. */
export const DESCRIPTIONS = {
  open: 'Waits until the payment is stored. Sent by the API with the start.',
  cancel: 'Calls the payment off: {"by": "merchant"}. Refused once the customer has paid.',
  mark_settled: `The bank confirmed elsewhere that the money moved: ${OPERATOR}}. Only in flight.`,
  mark_failed: `The bank confirmed elsewhere that no money moves: ${OPERATOR}}. Only in flight.`,
  snooze: `Clears the attention mark for a while: ${OPERATOR}, "hours": 24}. Only when authorised.`,
  state: 'Where the payment stands.',
  authorized: 'From the bank: the customer paid, the money has not moved yet.',
  settled: 'From the bank: the money moved.',
  failed: 'From the bank: declined or errored.',
  expired: 'From the bank: the session closed unpaid.',
} as const;

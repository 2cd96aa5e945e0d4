import { defineQuery, defineSignal, defineUpdate } from '@temporalio/workflow';
import { REFUND_CALLBACKS } from '../../src/domain/callback';
import type { OperatorAct, SnoozeAct } from '../../src/domain/payment-workflow';
import type { RefundResult, RefundState } from '../../src/domain/refund-workflow';
import { OPERATOR } from '../shared/operator-acts';

/** Messages of the `refund` workflow: a contract, changed only by addition. */
export const openUpdate = defineUpdate<RefundState>('open');
export const markSettledUpdate = defineUpdate<RefundState, [OperatorAct]>('mark_settled');
export const markFailedUpdate = defineUpdate<RefundState, [OperatorAct]>('mark_failed');
export const snoozeUpdate = defineUpdate<RefundState, [SnoozeAct]>('snooze');
export const stateQuery = defineQuery<RefundResult>('state');

/** Bank callbacks; payload `BankCallback`, parsed by the handler. */
export const callbackSignals = REFUND_CALLBACKS.map((name) => ({
  name,
  signal: defineSignal<[unknown]>(name),
}));

/** What the Temporal UI shows beside each message. */
export const DESCRIPTIONS = {
  open: 'Waits until the refund is accepted or refused. Sent by the API with the start.',
  mark_settled: `The bank confirmed elsewhere that the customer has the money: ${OPERATOR}}.`,
  mark_failed: `The bank confirmed elsewhere that no money goes out: ${OPERATOR}}. Gives it back.`,
  snooze: `Clears the attention mark for a while: ${OPERATOR}, "hours": 24}.`,
  state: 'Where the refund stands.',
  settled: 'From the bank: the money reached the customer.',
  failed: 'From the bank: refused or sent back.',
} as const;

import { defineQuery, defineSignal, defineUpdate } from '@temporalio/workflow';
import { PAYOUT_CALLBACKS } from '../../src/domain/callback';
import type { OperatorAct, SnoozeAct } from '../../src/domain/payment-workflow';
import type { PayoutResult, PayoutState } from '../../src/domain/payout-workflow';
import { OPERATOR } from '../shared/operator-acts';
import type { PayoutActed } from './life';

/** Messages of the `payout` workflow: a contract, changed only by addition. */
export const openUpdate = defineUpdate<PayoutState>('open');
export const resubmitUpdate = defineUpdate<PayoutActed, [OperatorAct]>('resubmit');
export const markFailedUpdate = defineUpdate<PayoutActed, [OperatorAct]>('mark_failed');
export const markReturnedUpdate = defineUpdate<PayoutActed, [OperatorAct]>('mark_returned');
export const markCompletedUpdate = defineUpdate<PayoutActed, [OperatorAct]>('mark_completed');
export const snoozeUpdate = defineUpdate<PayoutActed, [SnoozeAct]>('snooze');
export const stateQuery = defineQuery<PayoutResult>('state');

/** Bank callbacks; payload `BankCallback`, parsed by the handler. */
export const callbackSignals = PAYOUT_CALLBACKS.map((name) => ({
  name,
  signal: defineSignal<[unknown]>(name),
}));

/** What the Temporal UI shows beside each message. */
export const DESCRIPTIONS = {
  open: 'Waits until the payout is sent or refused, 5 s at most. Sent by the API with the start.',
  resubmit:
    'Asks the bank what it knows of the payout, and sends it again, under the same id, only when ' +
    `the bank does not know it: ${OPERATOR}}. Answers with what the bank said.`,
  mark_failed: `The bank confirmed elsewhere that no money left: ${OPERATOR}}. Gives it back.`,
  mark_returned: `The bank confirmed elsewhere that the money came back: ${OPERATOR}}. Credits it.`,
  mark_completed: `The bank confirmed elsewhere that the recipient has the money: ${OPERATOR}}.`,
  snooze: `Clears the attention mark for a while: ${OPERATOR}, "hours": 24}.`,
  state: 'Where the payout stands.',
  submitted: 'From the bank: taken, and queued there.',
  sent: 'From the bank: handed to the scheme.',
  completed: 'From the bank: the money reached the recipient.',
  failed: 'From the bank: rejected, the money never left.',
  returned: 'From the bank: the money left and came back.',
} as const;

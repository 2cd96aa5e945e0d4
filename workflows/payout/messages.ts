import { defineQuery, defineSignal, defineUpdate } from '@temporalio/workflow';
import { PAYOUT_CALLBACKS, readCallback } from '../../src/domain/callback/callback';
import type { ActPayload } from '../../src/domain/operator-act';
import { PAYOUT_ACTS } from '../../src/domain/payout/payout';
import type { PayoutResult, PayoutState } from '../../src/domain/payout/workflow';
import { ACKNOWLEDGE, OPERATOR, RESOLVE_MOVEMENT } from '../shared/operator-acts';
import type { PayoutActResult } from './state';

/** Contract, changed only by addition. */
export const messages = {
  open: defineUpdate<PayoutState>('open'),
  state: defineQuery<PayoutResult>('state'),
  acts: PAYOUT_ACTS.map((name) => ({
    name,
    update: defineUpdate<PayoutActResult, [ActPayload]>(name),
  })),
  callbacks: PAYOUT_CALLBACKS.map((name) => ({ name, signal: defineSignal<[unknown]>(name) })),
  read: readCallback,
  descriptions: {
    open: 'Waits until the payout is sent or refused, 5 s at most. Sent by the API with the start.',
    resubmit:
      `Asks the bank, and sends the payout again only if the bank does not know it: ${OPERATOR}}. ` +
      'Answers with what the bank said.',
    mark_failed:
      `No money left or will leave: ${OPERATOR}}. The merchant gets it back. Asks the bank first, ` +
      'and is refused if the bank holds it, unless "bank_confirmed_not_executed" is true.',
    mark_returned:
      `The bank confirmed that the money came back: ${OPERATOR}}. ` +
      'An "amount" in minor units credits what really came.',
    mark_completed: `The bank confirmed that the recipient has the money: ${OPERATOR}}.`,
    release_unverified:
      'The payout is to be sent, although the bank could not confirm its recipient: the next file ' +
      `takes it: ${OPERATOR}}.`,
    snooze: `Clears the attention reason for some hours: ${OPERATOR}, "hours": 24}.`,
    resolve_movement: RESOLVE_MOVEMENT,
    acknowledge: ACKNOWLEDGE,
    state: 'The state of the payout.',
    submitted: 'From the bank: taken, and queued there.',
    sent: 'From the bank: handed to the scheme.',
    completed: 'From the bank: the money reached the recipient.',
    failed: 'From the bank: rejected, the money never left.',
    returned: 'From the bank: the money left and came back.',
    called_duplicate: 'From the bank: it had arrived before, and may be executed.',
    debit_reversed: 'From the bank: it reversed its debit, and may book it again.',
    return_reversed: 'From the bank: it reversed a return.',
    payee_verified: 'From the bank: it has checked the name of the recipient; "result" says how.',
  },
};

import { defineQuery, defineSignal, defineUpdate } from '@temporalio/workflow';
import { readCallback } from '../../src/domain/callback/callback';
import { DISPUTE_ACTS } from '../../src/domain/dispute/dispute';
import { DISPUTE_CALLBACKS } from '../../src/domain/dispute/report';
import type {
  DisputeResponse,
  DisputeState,
  RespondInput,
} from '../../src/domain/dispute/workflow';
import type { ActPayload } from '../../src/domain/operator-act';
import { ACKNOWLEDGE, OPERATOR } from '../shared/operator-acts';
import type { DisputeResult } from './state';

/** Contract, changed only by addition. */
export const messages = {
  open: defineUpdate<DisputeState>('open'),
  respond: defineUpdate<DisputeResponse, [RespondInput]>('respond'),
  state: defineQuery<DisputeResult>('state'),
  acts: DISPUTE_ACTS.map((name) => ({
    name,
    update: defineUpdate<DisputeState, [ActPayload]>(name),
  })),
  callbacks: DISPUTE_CALLBACKS.map((name) => ({ name, signal: defineSignal<[unknown]>(name) })),
  read: readCallback,
  descriptions: {
    open: 'Waits until the dispute is stored.',
    respond:
      'Sends what the merchant has stored: {"with": "evidence"}, or gives in: {"with": "acceptance"}.',
    accept: `Gives in for the merchant: ${OPERATOR}}. What the bank took stays with the customer.`,
    dispute_won:
      `What the dispute took is back: ${OPERATOR}}. A "fee" in minor units came back, too. As a ` +
      'signal, from the bank.',
    snooze: `Clears the attention reason for some hours: ${OPERATOR}, "hours": 24}.`,
    acknowledge: ACKNOWLEDGE,
    state: 'The state of the dispute.',
    dispute_opened: 'From the bank: the dispute, and what it took.',
    dispute_updated: 'From the bank: the status of the dispute, or its deadline.',
    dispute_withdrawn: 'From the bank: the dispute took money, by a movement of its own.',
    dispute_reinstated: 'From the bank: money came back, by a movement of its own.',
    dispute_lost: 'From the bank: what the dispute took does not come back.',
  },
};

import { defineConnector, type Tools } from '../kit';
import type { Parts, StripeTools } from './api';
import { createEventReader, readWebhook } from './events';
import { METHOD_IDS } from './methods';
import { lookUpRefund, reversePayment, sendRefund } from './refunds';
import { closeSession, openSession, voidPayment } from './sessions';
import { type StripeSettings, settings } from './settings';
import { listTransfers, makeStatement, READY_HOURS } from './statements';

/** @see docs/stripe.md */
export function defineStripe(getParts: () => Parts) {
  const open = (tools: Tools<StripeSettings>): StripeTools => ({ ...tools, ...getParts() });
  const readEvents = createEventReader();
  return defineConnector({
    ...{ name: 'stripe', serves: METHOD_IDS, settings },
    openSession: (input, tools) => openSession(input, open(tools)),
    closeSession: (input, tools) => closeSession(input, open(tools)),
    voidPayment: (input, tools) => voidPayment(input, open(tools)),
    reversePayment: (input, tools) => reversePayment(input, open(tools)),
    sendRefund: (input, tools) => sendRefund(input, open(tools)),
    lookUpRefund: (input, tools) => lookUpRefund(input, open(tools)),
    webhook: {
      path: '/webhooks',
      bodyBytesMax: 524_288,
      read: (request, tools) => readWebhook(request, open(tools)),
    },
    statements: {
      readyHours: READY_HOURS,
      make: (day, tools) => makeStatement(day, open(tools)),
      listTransfers: (isRead, tools) => listTransfers(isRead, open(tools)),
    },
    // Webhooks get lost, so the list of events is read, too.
    poll: { seconds: 30, read: (cursor, tools) => readEvents(cursor, open(tools)) },
  });
}

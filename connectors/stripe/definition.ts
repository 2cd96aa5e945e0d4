import { defineConnector, type Tools } from '../kit';
import type { Parts, StripeTools } from './api';
import { createBook } from './book';
import { acceptDispute, lookUpAcceptance, lookUpEvidence, submitEvidence } from './disputes';
import { createEventReader, readWebhook } from './events';
import { METHOD_IDS } from './methods';
import { lookUpRefund, reversePayment, sendRefund } from './refunds';
import { closeSession, openSession, voidPayment } from './sessions';
import { assertKeyMode, type StripeSettings, settings } from './settings';
import { listTransfers, makeStatement, READY_HOURS } from './statements';

/** Minor units; Stripe charges at most 25 units of the large currencies, twice. */
const DISPUTE_FEE_MAX = 5_000;

/** @see docs/stripe.md */
export function defineStripe() {
  let parts: Parts | undefined;
  const open = (tools: Tools<StripeSettings>): StripeTools => {
    if (parts === undefined) throw new Error('The connector is not connected yet.');
    return { ...tools, ...parts };
  };
  const readEvents = createEventReader();
  return defineConnector({
    ...{ name: 'stripe', serves: METHOD_IDS, settings },
    prepare: async ({ db, settings: own, livemode, now }) => {
      assertKeyMode(own.STRIPE_SECRET_KEY_FILE, livemode ? 'live' : 'sandbox');
      const book = createBook(db, now);
      await book.ensureIndexes();
      parts = { book, livemode, pause: { until: 0 } };
    },
    openSession: (input, tools) => openSession(input, open(tools)),
    closeSession: (input, tools) => closeSession(input, open(tools)),
    voidPayment: (input, tools) => voidPayment(input, open(tools)),
    reversePayment: (input, tools) => reversePayment(input, open(tools)),
    sendRefund: (input, tools) => sendRefund(input, open(tools)),
    lookUpRefund: (input, tools) => lookUpRefund(input, open(tools)),
    submitEvidence: async (input, tools) =>
      submitEvidence(input, open(tools), await tools.evidence()),
    lookUpEvidence: (input, tools) => lookUpEvidence(input, open(tools)),
    acceptDispute: (input, tools) => acceptDispute(input, open(tools)),
    lookUpAcceptance: (input, tools) => lookUpAcceptance(input, open(tools)),
    disputeFeeMax: DISPUTE_FEE_MAX,
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

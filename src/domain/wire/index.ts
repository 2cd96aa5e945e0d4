import { listBalances, listBalanceTransactions } from './balances';
import { listAvailablePaymentMethods, listPaymentMethods } from './catalogue';
import * as crypto from './crypto';
import * as disputes from './disputes';
import type { Endpoint } from './endpoint';
import { getEvent, listEvents } from './events';
import { cancelPayment, createPayment, getPayment, listPayments } from './payments';
import { createPayout, getPayout, listPayoutMethods, listPayouts } from './payouts';
import { createRecipient, deleteRecipient } from './recipients';
import { createRefund, getRefund, listPaymentRefunds, listRefunds } from './refunds';
import { listRequests } from './requests';
import * as sandbox from './sandbox';
import { advanceClock, getClock, stopClock } from './sandbox-clock';
import * as webhooks from './webhook-endpoints';

/** Order of the OpenAPI document; a new endpoint is added here and in `src/api`. */
export const ENDPOINTS: readonly Endpoint[] = [
  createPayment,
  getPayment,
  listPayments,
  cancelPayment,
  listPaymentRefunds,
  createRefund,
  getRefund,
  listRefunds,
  disputes.getDispute,
  disputes.listDisputes,
  disputes.submitEvidence,
  disputes.acceptDispute,
  createRecipient,
  deleteRecipient,
  createPayout,
  getPayout,
  listPayouts,
  listPayoutMethods,
  listBalances,
  listBalanceTransactions,
  listEvents,
  getEvent,
  webhooks.redeliverEvent,
  webhooks.createWebhookEndpoint,
  webhooks.getWebhookEndpoint,
  webhooks.listWebhookEndpoints,
  webhooks.updateWebhookEndpoint,
  webhooks.deleteWebhookEndpoint,
  webhooks.rollWebhookSecret,
  webhooks.testWebhookEndpoint,
  listRequests,
  listPaymentMethods,
  listAvailablePaymentMethods,
  crypto.createCryptoPayment,
  crypto.getCryptoPayment,
  crypto.listCryptoPayments,
  crypto.createCryptoSettlement,
  crypto.getCryptoSettlement,
  crypto.listCryptoSettlements,
  sandbox.simulatePayment,
  sandbox.simulateRefund,
  sandbox.simulatePayout,
  sandbox.simulateCryptoPayment,
  sandbox.simulateCryptoSettlement,
  getClock,
  advanceClock,
  stopClock,
];

import { type ClientOptions, createApi } from './api';
import { createBalances, createBalanceTransactions } from './resources/balances';
import { createCrypto } from './resources/crypto';
import { createDisputes } from './resources/disputes';
import { createEvents } from './resources/events';
import { createPaymentMethods } from './resources/payment-methods';
import { createPayments } from './resources/payments';
import { createPayouts, createRecipients } from './resources/payouts';
import { createRefunds } from './resources/refunds';
import { createRequests } from './resources/requests';
import { createSandbox } from './resources/sandbox';
import { createWebhookEndpoints } from './resources/webhook-endpoints';

export type Client = ReturnType<typeof createClient>;

/** Everything that one API key can do, by resource. */
export function createClient(options: ClientOptions) {
  const api = createApi(options);
  return {
    payments: createPayments(api),
    refunds: createRefunds(api),
    disputes: createDisputes(api),
    recipients: createRecipients(api),
    payouts: createPayouts(api),
    balances: createBalances(api),
    balanceTransactions: createBalanceTransactions(api),
    paymentMethods: createPaymentMethods(api),
    events: createEvents(api),
    webhookEndpoints: createWebhookEndpoints(api),
    requests: createRequests(api),
    crypto: createCrypto(api),
    sandbox: createSandbox(api),
  };
}

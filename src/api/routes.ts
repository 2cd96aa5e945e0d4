import { parseDuration } from '../domain/merchants/clock-request';
import { availableEntry, catalogEntry, PAYMENT_METHOD_IDS } from '../domain/payment/catalog';
import { railEntry } from '../domain/payout/rails';
import * as balances from '../domain/wire/balances';
import * as catalogue from '../domain/wire/catalogue';
import * as crypto from '../domain/wire/crypto';
import * as disputes from '../domain/wire/disputes';
import type { Endpoint } from '../domain/wire/endpoint';
import * as events from '../domain/wire/events';
import type { ById } from '../domain/wire/fields';
import * as payments from '../domain/wire/payments';
import * as payouts from '../domain/wire/payouts';
import * as recipients from '../domain/wire/recipients';
import * as refunds from '../domain/wire/refunds';
import * as requests from '../domain/wire/requests';
import * as sandbox from '../domain/wire/sandbox';
import * as clock from '../domain/wire/sandbox-clock';
import * as webhooks from '../domain/wire/webhook-endpoints';
import type { ApiKey } from '../service/access';
import {
  simulateCryptoPayment,
  simulateCryptoSettlement,
  simulatePayment,
  simulatePayout,
  simulateRefund,
} from '../service/banks/sandbox';
import { findEndpoint, presentEndpoint } from '../service/events/endpoints/manage';
import {
  type Caller,
  createMerchantEndpoint,
  deleteMerchantEndpoint,
  listMerchantEndpoints,
  redeliverMerchantEvent,
  rollMerchantSecret,
  testMerchantEndpoint,
  updateMerchantEndpoint,
} from '../service/events/endpoints/merchant';

import { getMerchantEvent, listMerchantEvents } from '../service/events/list';
import { listRequests, presentRequest } from '../service/events/requests';
import { advanceClock, getClock, stopClock } from '../service/merchants/clock';
import {
  listBalanceTransactions,
  presentBalances,
  presentBalanceTransaction,
} from '../service/money/balances/list';

import {
  createCryptoPayment,
  createCryptoSettlement,
  getCryptoPayment,
  getCryptoSettlement,
  listCryptoPayments,
  listCryptoSettlements,
} from '../service/money/crypto';
import { acceptDispute, getDispute, listDisputes, submitEvidence } from '../service/money/disputes';
import {
  cancelPayment,
  createPayment,
  getPayment,
  listAvailableMethods,
  listPayments,
} from '../service/money/payments';
import { createPayout, getPayout, getPayoutSettings, listPayouts } from '../service/money/payouts';
import {
  presentCryptoPayment,
  presentCryptoSettlement,
  presentDispute,
  presentPage,
  presentPayment,
  presentPaymentTo,
  presentPayout,
  presentRecipient,
  presentRefund,
} from '../service/money/present';
import { type Page, readProvedBalances } from '../service/money/read';
import { createRecipient, deleteRecipient } from '../service/money/recipients';
import { createRefund, getRefund, listPaymentRefunds, listRefunds } from '../service/money/refunds';
import type { ApiDeps } from './context';
import type { Mount, Parsed } from './mount';

/** A row for each endpoint of `src/domain/wire/`, which has its schemas, scope and errors. */
export function mountRoutes(mount: Mount, deps: ApiDeps): void {
  const mountRead = <Row>(
    endpoint: Endpoint & { params: typeof ById },
    read: (from: ApiDeps, key: ApiKey, id: string) => Promise<Row>,
    present: (row: Row) => object | Promise<object>,
  ) =>
    mount.endpoint(endpoint, async ({ key, params }) => present(await read(deps, key, params.id)));
  const mountList = <E extends Endpoint, Row>(
    endpoint: E,
    list: (from: ApiDeps, key: ApiKey, query: Parsed<E['query']>) => Promise<Page<Row>>,
    present: (row: Row) => object | Promise<object>,
  ) =>
    mount.endpoint(endpoint, async ({ key, query }) =>
      presentPage(await list(deps, key, query), present),
    );

  // @see docs/api.md#create-a-payment
  mount.create(payments.createPayment, (request) => createPayment(deps, request));
  mountRead(payments.getPayment, getPayment, (row) => presentPayment(deps, row));
  mountList(payments.listPayments, listPayments, (row) => presentPayment(deps, row));
  mount.endpoint(payments.cancelPayment, async ({ key, params }) =>
    presentPaymentTo(deps, await cancelPayment(deps, key, params.id), key),
  );

  // @see docs/api.md#refunds
  mount.create(refunds.createRefund, (request) => createRefund(deps, request));
  mountRead(refunds.getRefund, getRefund, presentRefund);
  mountList(refunds.listRefunds, listRefunds, presentRefund);
  mount.endpoint(refunds.listPaymentRefunds, async ({ key, params, query }) =>
    presentPage(await listPaymentRefunds(deps, key, params.id, query), presentRefund),
  );

  // @see docs/api.md#disputes
  mountRead(disputes.getDispute, getDispute, presentDispute);
  mountList(disputes.listDisputes, listDisputes, presentDispute);
  mount.endpoint(disputes.submitEvidence, async ({ key, params, body }) =>
    presentDispute(await submitEvidence(deps, key, params.id, body)),
  );
  mount.endpoint(disputes.acceptDispute, async ({ key, params }) =>
    presentDispute(await acceptDispute(deps, key, params.id)),
  );

  // @see docs/api.md#payouts
  mount.create(recipients.createRecipient, (request) => createRecipient(deps, request));
  mount.endpoint(recipients.deleteRecipient, async ({ params, ...call }) => {
    const { owner, actor } = toCaller(call);
    return presentRecipient(await deleteRecipient(deps, owner, params.id, actor));
  });
  mount.create(payouts.createPayout, (request) => createPayout(deps, request));
  mountRead(payouts.getPayout, getPayout, presentPayout);
  mountList(payouts.listPayouts, listPayouts, presentPayout);
  mount.endpoint(payouts.listPayoutMethods, async ({ key }) => ({
    object: 'list',
    data: (await getPayoutSettings(deps, key)).rails.map(railEntry),
  }));

  // @see docs/api.md#balances
  mount.endpoint(balances.listBalances, async ({ key }) =>
    presentBalances(await readProvedBalances(deps, key)),
  );
  mountList(balances.listBalanceTransactions, listBalanceTransactions, presentBalanceTransaction);

  // @see docs/api.md#events
  mountList(events.listEvents, listMerchantEvents, (event) => event);
  mount.endpoint(events.getEvent, ({ key, params }) => getMerchantEvent(deps, key, params.id));

  // @see docs/api.md#webhook-endpoints
  mount.create(webhooks.createWebhookEndpoint, (request, call) =>
    createMerchantEndpoint(deps, request, toCaller({ ...call, ...request }).actor),
  );
  mountRead(webhooks.getWebhookEndpoint, findEndpoint, presentEndpoint);
  mountList(webhooks.listWebhookEndpoints, listMerchantEndpoints, presentEndpoint);
  mount.endpoint(webhooks.updateWebhookEndpoint, async ({ params, body, ...call }) =>
    presentEndpoint(await updateMerchantEndpoint(deps, toCaller(call), params.id, body)),
  );
  mount.endpoint(webhooks.deleteWebhookEndpoint, ({ params, ...call }) =>
    deleteMerchantEndpoint(deps, toCaller(call), params.id),
  );
  mount.endpoint(webhooks.rollWebhookSecret, ({ params, body, ...call }) =>
    rollMerchantSecret(deps, toCaller(call), params.id, body.after),
  );
  mount.endpoint(webhooks.testWebhookEndpoint, ({ params, body, ...call }) =>
    testMerchantEndpoint(deps, toCaller(call), params.id, body.type),
  );
  mount.endpoint(webhooks.redeliverEvent, ({ params, body, ...call }) =>
    redeliverMerchantEvent(deps, toCaller(call), params.id, body.endpoint_id ?? undefined),
  );

  // @see docs/api.md#requests
  mountList(requests.listRequests, listRequests, presentRequest);

  // @see docs/api.md#methods
  const catalog = { object: 'list', data: PAYMENT_METHOD_IDS.map(catalogEntry) };
  mount.endpoint(catalogue.listPaymentMethods, async () => catalog);
  mount.endpoint(catalogue.listAvailablePaymentMethods, async ({ key }) => ({
    object: 'list',
    data: (await listAvailableMethods(deps, key)).map(availableEntry),
  }));

  // @see docs/api.md#crypto
  mount.create(crypto.createCryptoPayment, (request) => createCryptoPayment(deps, request));
  mountRead(crypto.getCryptoPayment, getCryptoPayment, (row) => presentCryptoPayment(deps, row));
  mountList(crypto.listCryptoPayments, listCryptoPayments, (row) =>
    presentCryptoPayment(deps, row),
  );
  mount.create(crypto.createCryptoSettlement, (request) => createCryptoSettlement(deps, request));
  mountRead(crypto.getCryptoSettlement, getCryptoSettlement, presentCryptoSettlement);
  mountList(crypto.listCryptoSettlements, listCryptoSettlements, presentCryptoSettlement);

  // @see docs/decisions.md#sandbox
  mount.endpoint(clock.getClock, ({ key }) => getClock(deps, key.account_id));
  mount.endpoint(clock.advanceClock, async ({ key, body: { advance = '', to } }) => {
    const request = to === undefined ? { by_ms: parseDuration(advance) ?? 0 } : { to };
    return await advanceClock(deps, key.account_id, request);
  });
  mount.endpoint(clock.stopClock, ({ key }) => stopClock(deps, key.account_id));
  mount.endpoint(sandbox.simulatePayment, async ({ key, params, body }) =>
    presentPaymentTo(deps, await simulatePayment(deps, key, params.id, body), key),
  );
  mount.endpoint(sandbox.simulateRefund, async ({ key, params, body }) =>
    presentRefund(await simulateRefund(deps, key, params.id, body)),
  );
  mount.endpoint(sandbox.simulatePayout, async ({ key, params, body }) =>
    presentPayout(await simulatePayout(deps, key, params.id, body)),
  );
  mount.endpoint(sandbox.simulateCryptoPayment, async ({ key, params, body }) =>
    presentCryptoPayment(deps, await simulateCryptoPayment(deps, key, params.id, body)),
  );
  mount.endpoint(sandbox.simulateCryptoSettlement, async ({ key, params, body }) =>
    presentCryptoSettlement(await simulateCryptoSettlement(deps, key, params.id, body)),
  );
}

interface ApiCall {
  key: ApiKey;
  address: string;
  requestId: string;
}

function toCaller({ key, address, requestId: request_id }: ApiCall): Caller {
  const { _id: key_id, account_id, livemode } = key;
  const actor = { via: 'api', key_id, address, request_id } as const;
  return { owner: { account_id, livemode }, actor, request_id };
}

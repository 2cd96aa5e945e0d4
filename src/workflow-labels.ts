import { defineSearchAttributeKey, TypedSearchAttributes } from '@temporalio/common';
import { formatMoney } from './domain/money';
import type { PaymentStatus } from './domain/payment';

const attribute = {
  resource: defineSearchAttributeKey('ServiceResource', 'KEYWORD'),
  status: defineSearchAttributeKey('ServiceStatus', 'KEYWORD'),
  method: defineSearchAttributeKey('ServiceMethod', 'KEYWORD'),
  account: defineSearchAttributeKey('ServiceAccount', 'KEYWORD'),
  connector: defineSearchAttributeKey('ServiceConnector', 'KEYWORD'),
  currency: defineSearchAttributeKey('ServiceCurrency', 'KEYWORD'),
  livemode: defineSearchAttributeKey('ServiceLivemode', 'BOOL'),
  amount: defineSearchAttributeKey('ServiceAmount', 'INT'),
};

/** What operators see and search by in the Temporal UI. Stored in clear: nothing personal. */
export function paymentLabels(
  payment: {
    account_id: string;
    livemode: boolean;
    /** Minor units. */
    amount: number;
    currency: string;
    method: string;
    connector: string;
  },
  status: PaymentStatus,
) {
  const { account_id, livemode, amount, currency, method, connector } = payment;
  const environment = livemode ? 'live' : 'sandbox';
  return {
    staticSummary: `payment ${formatMoney(amount, currency)} ${method} (${environment})`,
    typedSearchAttributes: new TypedSearchAttributes([
      { key: attribute.resource, value: 'payment' },
      { key: attribute.status, value: status },
      { key: attribute.method, value: method },
      { key: attribute.account, value: account_id },
      { key: attribute.connector, value: connector },
      { key: attribute.currency, value: currency },
      { key: attribute.livemode, value: livemode },
      { key: attribute.amount, value: amount },
    ]),
  };
}

/** The same of the delivery of one event. */
export function webhookLabels(event: {
  type: string;
  resource_id: string;
  account_id: string;
  livemode: boolean;
}) {
  return {
    staticSummary: `${event.type} ${event.resource_id}`,
    typedSearchAttributes: new TypedSearchAttributes([
      { key: attribute.resource, value: 'webhook' },
      { key: attribute.account, value: event.account_id },
      { key: attribute.livemode, value: event.livemode },
    ]),
  };
}

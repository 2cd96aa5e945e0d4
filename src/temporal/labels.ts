import { defineSearchAttributeKey, TypedSearchAttributes } from '@temporalio/common';
import type { CallbackResource } from '../domain/callback';
import { formatMoney } from '../domain/money';
import type { PaymentStatus } from '../domain/payment';
import type { PayoutStatus } from '../domain/payout';
import type { RefundStatus } from '../domain/refund';

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

/** Facts of a resource that operators see and search by. */
export interface LabelledFacts {
  account_id: string;
  livemode: boolean;
  /** Minor units; null while it is not known. */
  amount: number | null;
  currency: string;
  method: string;
  connector: string;
}

/** Labels of a resource's workflow in the Temporal UI. Stored in clear: nothing personal. */
export function lifecycleLabels(
  resource: CallbackResource,
  facts: LabelledFacts,
  status: PaymentStatus | RefundStatus | PayoutStatus,
) {
  const { account_id, livemode, amount, currency, method, connector } = facts;
  const environment = livemode ? 'live' : 'sandbox';
  const money = amount === null ? `all that remains, ${currency}` : formatMoney(amount, currency);
  return {
    staticSummary: `${resource} ${money} ${method} (${environment})`,
    typedSearchAttributes: new TypedSearchAttributes([
      { key: attribute.resource, value: resource },
      { key: attribute.status, value: status },
      { key: attribute.method, value: method },
      { key: attribute.account, value: account_id },
      { key: attribute.connector, value: connector },
      { key: attribute.currency, value: currency },
      { key: attribute.livemode, value: livemode },
      ...(amount === null ? [] : [{ key: attribute.amount, value: amount }]),
    ]),
  };
}

/** Labels of the workflow that delivers one event. */
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

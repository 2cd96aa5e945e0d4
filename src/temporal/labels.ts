import { TypedSearchAttributes } from '@temporalio/common';
import type { CallbackResource } from '../domain/callback';
import { formatMoney } from '../domain/money';
import type { PaymentStatus } from '../domain/payment';
import type { PayoutStatus } from '../domain/payout';
import type { RefundStatus } from '../domain/refund';
import { SEARCH_KEYS } from '../domain/search-attributes';

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
      { key: SEARCH_KEYS.resource, value: resource },
      { key: SEARCH_KEYS.status, value: status },
      { key: SEARCH_KEYS.method, value: method },
      { key: SEARCH_KEYS.account, value: account_id },
      { key: SEARCH_KEYS.connector, value: connector },
      { key: SEARCH_KEYS.currency, value: currency },
      { key: SEARCH_KEYS.livemode, value: livemode },
      ...(amount === null ? [] : [{ key: SEARCH_KEYS.amount, value: amount }]),
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
      { key: SEARCH_KEYS.resource, value: 'webhook' },
      { key: SEARCH_KEYS.account, value: event.account_id },
      { key: SEARCH_KEYS.livemode, value: event.livemode },
    ]),
  };
}

import { TypedSearchAttributes } from '@temporalio/common';
import type { CallbackResource } from '../domain/callback';
import { formatUnits } from '../domain/crypto';
import { formatMoney } from '../domain/money';
import { SEARCH_KEYS } from '../domain/search-attributes';

/** Facts of a resource that operators see and search by. */
export interface LabelledFacts {
  account_id: string;
  livemode: boolean;
  /** Minor units; smallest units of a coin as a text; null while it is not known. */
  amount: number | string | null;
  currency: string;
  /** Coin that is taken or paid out. */
  asset?: string;
  network?: string;
  /** Smallest units that a payer owes. */
  amount_due?: string;
  method: string;
  connector: string;
}

/** Labels of a resource's workflow in the Temporal UI. Stored in clear: nothing personal. */
export function lifecycleLabels(resource: CallbackResource, facts: LabelledFacts, status: string) {
  const { account_id, livemode, amount, currency, method, connector } = facts;
  const environment = livemode ? 'live' : 'sandbox';
  const coins = coinsOf(facts);
  const isMoney = typeof amount === 'number';
  const money = isMoney
    ? formatMoney(amount, currency)
    : (coins ?? `all that remains, ${currency}`);
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
      ...(coins === undefined ? [] : [{ key: SEARCH_KEYS.assetAmount, value: coins }]),
      ...(isMoney ? [{ key: SEARCH_KEYS.amount, value: amount }] : []),
    ]),
  };
}

/** Amount in coins for people; undefined where none is known, or there is no coin. */
function coinsOf({ amount, amount_due, asset, network }: LabelledFacts): string | undefined {
  const units = amount_due ?? amount;
  if (typeof units !== 'string' || asset === undefined || network === undefined) return undefined;
  return formatUnits(units, { asset, network });
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

import { TypedSearchAttributes } from '@temporalio/common';
import type { CallbackResource } from '../domain/callback/callback';
import { formatUnits } from '../domain/crypto/assets';
import { formatMoney } from '../domain/money';
import { SEARCH_KEYS } from '../domain/search-attributes';

export interface LabeledFacts {
  account_id: string;
  livemode: boolean;
  /** Minor units, or an asset's smallest as text; null while unknown. */
  amount: number | string | null;
  currency: string;
  asset?: string;
  network?: string;
  /** Smallest units. */
  amount_due?: string;
  method: string;
  connector: string;
}

/** Builds labels, never from personal data: Temporal stores plain text. */
export function lifecycleLabels(
  resource: CallbackResource,
  facts: LabeledFacts,
  { status, version }: { status: string; version?: number },
) {
  const { account_id, livemode, amount, currency, method, connector } = facts;
  const environment = livemode ? 'live' : 'sandbox';
  const assetAmount = formatAssetAmount(facts);
  const isMoney = typeof amount === 'number';
  const money = isMoney
    ? formatMoney(amount, currency)
    : (assetAmount ?? `all that remains, ${currency}`);
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
      ...(assetAmount === undefined ? [] : [{ key: SEARCH_KEYS.assetAmount, value: assetAmount }]),
      ...(isMoney ? [{ key: SEARCH_KEYS.amount, value: amount }] : []),
      ...(version === undefined ? [] : [{ key: SEARCH_KEYS.version, value: version }]),
    ]),
  };
}

function formatAssetAmount(facts: LabeledFacts): string | undefined {
  const { amount, amount_due, asset, network } = facts;
  const units = amount_due ?? amount;
  if (typeof units !== 'string' || asset === undefined || network === undefined) return undefined;
  return formatUnits(units, { asset, network });
}

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

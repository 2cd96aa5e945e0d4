/**
 * Attributes by which operators search in the Temporal UI. The launcher registers them on the
 * namespace, and every lifecycle workflow sets them. They never hold personal data, because
 * Temporal stores them as plain text.
 */
export const SEARCH_ATTRIBUTES = {
  ServiceResource: 'Keyword',
  ServiceStatus: 'Keyword',
  ServiceMethod: 'Keyword',
  ServiceAccount: 'Keyword',
  ServiceConnector: 'Keyword',
  ServiceCurrency: 'Keyword',
  /** Why the resource needs an operator; unset when it doesn't. */
  ServiceAttention: 'Keyword',
  ServiceLivemode: 'Bool',
  /** Formatted amount of an asset, such as `1.5 ETH`; its units do not fit into an Int. */
  ServiceAssetAmount: 'Keyword',
  /** Minor units. */
  ServiceAmount: 'Int',
} as const;

/** These attributes in the form that the SDK expects. */
export const SEARCH_KEYS = {
  resource: { name: 'ServiceResource', type: 'KEYWORD' },
  status: { name: 'ServiceStatus', type: 'KEYWORD' },
  method: { name: 'ServiceMethod', type: 'KEYWORD' },
  account: { name: 'ServiceAccount', type: 'KEYWORD' },
  connector: { name: 'ServiceConnector', type: 'KEYWORD' },
  currency: { name: 'ServiceCurrency', type: 'KEYWORD' },
  attention: { name: 'ServiceAttention', type: 'KEYWORD' },
  livemode: { name: 'ServiceLivemode', type: 'BOOL' },
  assetAmount: { name: 'ServiceAssetAmount', type: 'KEYWORD' },
  amount: { name: 'ServiceAmount', type: 'INT' },
} as const satisfies Record<string, { name: keyof typeof SEARCH_ATTRIBUTES; type: string }>;

/**
 * Attributes by which operators search in the Temporal UI. The launcher registers them on the
 * namespace and every lifecycle workflow sets them. They never hold personal data, since Temporal
 * stores them in clear.
 */
export const SEARCH_ATTRIBUTES = {
  ServiceResource: 'Keyword',
  ServiceStatus: 'Keyword',
  ServiceMethod: 'Keyword',
  ServiceAccount: 'Keyword',
  ServiceConnector: 'Keyword',
  ServiceCurrency: 'Keyword',
  /** Reason why the resource needs a person; unset when it doesn't. */
  ServiceAttention: 'Keyword',
  ServiceLivemode: 'Bool',
  /** Amount of a coin for people, such as `1.5 ETH`; an integer would not hold its units. */
  ServiceAssetAmount: 'Keyword',
  /** Minor units. */
  ServiceAmount: 'Int',
} as const;

/** Keys of these attributes in the form that the SDK takes. */
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

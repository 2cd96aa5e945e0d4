/** Shown in the Temporal UI. Never personal: Temporal stores them as plain text. */

export const SEARCH_KEYS = {
  resource: { name: 'ServiceResource', type: 'KEYWORD' },
  status: { name: 'ServiceStatus', type: 'KEYWORD' },
  method: { name: 'ServiceMethod', type: 'KEYWORD' },
  account: { name: 'ServiceAccount', type: 'KEYWORD' },
  connector: { name: 'ServiceConnector', type: 'KEYWORD' },
  currency: { name: 'ServiceCurrency', type: 'KEYWORD' },
  attention: { name: 'ServiceAttention', type: 'KEYWORD' },
  livemode: { name: 'ServiceLivemode', type: 'BOOL' },
  /** Formatted, such as `1.5 ETH`: its units do not fit into an Int. */
  assetAmount: { name: 'ServiceAssetAmount', type: 'KEYWORD' },
  /** Minor units. */
  amount: { name: 'ServiceAmount', type: 'INT' },
  /** Version of the document; absent where it does not count all that was posted. */
  version: { name: 'ServiceVersion', type: 'INT' },
} as const;

const TYPES = { KEYWORD: 'Keyword', BOOL: 'Bool', INT: 'Int' } as const;
type Name = (typeof SEARCH_KEYS)[keyof typeof SEARCH_KEYS]['name'];

export const SEARCH_ATTRIBUTES = Object.fromEntries(
  Object.values(SEARCH_KEYS).map(({ name, type }) => [name, TYPES[type]]),
) as Record<Name, (typeof TYPES)[keyof typeof TYPES]>;

/**
 * What operators search by in the Temporal UI. Registered on the namespace by the launcher, set
 * by every lifecycle workflow. They are stored in clear: never personal data.
 */
export const SEARCH_ATTRIBUTES = {
  ServiceResource: 'Keyword',
  ServiceStatus: 'Keyword',
  ServiceMethod: 'Keyword',
  ServiceAccount: 'Keyword',
  ServiceConnector: 'Keyword',
  ServiceCurrency: 'Keyword',
  /** Why the resource needs a person; unset when it doesn't. */
  ServiceAttention: 'Keyword',
  ServiceLivemode: 'Bool',
  /** Minor units. */
  ServiceAmount: 'Int',
} as const;

export type SearchAttributeName = keyof typeof SEARCH_ATTRIBUTES;

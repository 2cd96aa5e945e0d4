import type { NamedIndex } from '../base/mongo-indexes';

/** First fields of every list index: no merchant reads rows of another. */
export const OWNER = { account_id: 1, livemode: 1 } as const;

export const UPDATED = { key: { updated_at: 1, _id: 1 }, name: 'updated' } as const;

export const STUCK = { attention: { $type: 'string' } } as const;

export function listIndexes(...fields: string[]): NamedIndex[] {
  return [
    { key: { ...OWNER, position: -1 }, name: 'position', unique: true },
    ...fields.map((field) => ({
      key: { ...OWNER, [field]: 1, position: -1 } as const,
      name: `${field}_position`,
    })),
  ];
}

/** Adds to the list's indexes small ones for what is in flight or stuck. */
export function resourceIndexes(inFlight: readonly string[], ...fields: string[]): NamedIndex[] {
  return [
    ...listIndexes(...fields),
    {
      key: { status: 1, _id: 1 },
      name: 'in_flight',
      partialFilterExpression: { status: { $in: inFlight } },
    },
    {
      key: { ...OWNER, position: -1 },
      name: 'in_need_position',
      partialFilterExpression: STUCK,
    },
    UPDATED,
    { key: { attention: 1, livemode: 1 }, name: 'attention', partialFilterExpression: STUCK },
    {
      key: { attention_since: 1, _id: 1 },
      name: 'attention_since',
      partialFilterExpression: STUCK,
    },
    {
      key: { 'acknowledged.since': 1 },
      name: 'acknowledged',
      partialFilterExpression: { 'acknowledged.since': { $exists: true } },
    },
  ];
}

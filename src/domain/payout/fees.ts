import { isRailId, type RailId, railRules } from './rails';

export type FeeName = RailId | `${RailId}:${string}`;

/** Minor units of the payout's currency. */
export type PayoutFees = Partial<Record<FeeName, number>>;

/** @see docs/ledger.md#fees-of-payouts */
export function payoutFee(fees: PayoutFees, rail: RailId, currency: string): number {
  return fees[`${rail}:${currency}`] ?? fees[rail] ?? 0;
}

/** @returns undefined for an unknown rail, or a currency that it lacks */
export function parseFeeName(text: string): FeeName | undefined {
  const [rail = '', currency, ...more] = text.split(':');
  if (!isRailId(rail) || more.length > 0) return undefined;
  if (currency === undefined) return rail;
  return railRules(rail).currencies.includes(currency) ? `${rail}:${currency}` : undefined;
}

import { isRailId, type RailId, railRules } from './rails';

/** Name of a fee: of a rail, or of a rail in one of its currencies. */
export type FeeName = RailId | `${RailId}:${string}`;

/** Fees in minor units of the payout's own currency. */
export type PayoutFees = Partial<Record<FeeName, number>>;

/**
 * Fee of a payout, in minor units of its currency: that of the currency, else that of the rail, else 0.
 * @see docs/ledger.md#fees-of-payouts
 */
export function payoutFee(fees: PayoutFees, rail: RailId, currency: string): number {
  return fees[`${rail}:${currency}`] ?? fees[rail] ?? 0;
}

/** Reads the name of a fee; undefined where there is no such rail, or it has no such currency. */
export function feeNameOf(text: string): FeeName | undefined {
  const [rail = '', currency, ...more] = text.split(':');
  if (!isRailId(rail) || more.length > 0) return undefined;
  if (currency === undefined) return rail;
  return railRules(rail).currencies.includes(currency) ? `${rail}:${currency}` : undefined;
}

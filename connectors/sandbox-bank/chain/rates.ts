import { type AssetCode, assetRules, type Coin } from '../../../src/domain/crypto';
import { minorUnitDigits } from '../../../src/domain/money';

/** Price of a whole coin, alike in every currency: the sandbox knows no exchange rates. */
const PRICES = { BTC: 60_000, ETH: 2_500, USDC: 1, USDT: 1 } as const satisfies Record<
  AssetCode,
  number
>;

/** Digits behind the point that people are asked to type. */
const DIGITS_MAX = 8;

/** Rate of a coin, and what an amount costs in it, rounded up. */
export interface Quote {
  /** Smallest units. */
  amount_due: string;
  rate: string;
}

/**
 * Quotes an amount in a coin; pure.
 * @param amount minor units of `currency`
 * @throws RangeError for an unknown currency, or a coin that does not exist
 */
export function quoteOf({ asset, network }: Coin, amount: number, currency: string): Quote {
  const decimals = assetRules(asset, network)?.decimals;
  if (decimals === undefined) throw new RangeError(`No asset: ${asset} on ${network}`);
  const price = PRICES[asset];
  const minorPrice = BigInt(price) * 10n ** BigInt(minorUnitDigits(currency));
  const shown = Math.min(decimals, DIGITS_MAX);
  const short = (BigInt(amount) * 10n ** BigInt(shown) + minorPrice - 1n) / minorPrice;
  const amount_due = short * 10n ** BigInt(decimals - shown);
  return { amount_due: String(amount_due), rate: String(price) };
}

import { type AssetCode, type AssetPair, assetRules } from '../../../src/domain/crypto/assets';
import { minorUnitDigits } from '../../../src/domain/money';

/** Price of one whole unit, the same in every currency: the sandbox has no exchange rates. */
const PRICES = { BTC: 60_000, ETH: 2_500, USDC: 1, USDT: 1 } as const satisfies Record<
  AssetCode,
  number
>;

const DIGITS_MAX = 8;

/** Rate of an asset, and what an amount costs in it, rounded up. */
export interface Quote {
  /** Smallest units. */
  amount_due: string;
  rate: string;
}

/**
 * Quotes an amount in an asset.
 * @param amount minor units of `currency`
 * @throws RangeError for an unknown currency or asset
 */
export function buildQuote({ asset, network }: AssetPair, amount: number, currency: string): Quote {
  const decimals = assetRules(asset, network)?.decimals;
  if (decimals === undefined) throw new RangeError(`No asset: ${asset} on ${network}`);
  const price = PRICES[asset];
  const minorPrice = BigInt(price) * 10n ** BigInt(minorUnitDigits(currency));
  const digits = Math.min(decimals, DIGITS_MAX);
  const roundedUnits = (BigInt(amount) * 10n ** BigInt(digits) + minorPrice - 1n) / minorPrice;
  const amount_due = roundedUnits * 10n ** BigInt(decimals - digits);
  return { amount_due: String(amount_due), rate: String(price) };
}

/**
 * Reads a decimal number of whole units; undefined if it is none, is zero, or has too many digits.
 * @returns smallest units
 */
export function parseTypedAmount(text: string, decimals: number): string | undefined {
  const [, whole = '', fraction = ''] = /^(\d{1,12})(?:[.,](\d{1,18}))?$/.exec(text.trim()) ?? [];
  if (whole === '' || fraction.length > decimals) return undefined;
  const units = BigInt(whole + fraction.padEnd(decimals, '0'));
  return units > 0n ? String(units) : undefined;
}

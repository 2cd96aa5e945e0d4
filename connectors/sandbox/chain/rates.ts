import {
  type AssetCode,
  type AssetPair,
  assetRules,
  UNITS,
} from '../../../src/domain/crypto/assets';
import { minorUnitDigits } from '../../../src/domain/money/money';

/** The sandbox has no exchange rates. */
const PRICES = { BTC: 60_000, ETH: 2_500, USDC: 1, USDT: 1 } as const satisfies Record<
  AssetCode,
  number
>;

const DIGITS_MAX = 8;

export interface Quote {
  /** Smallest units. */
  amount_due: string;
  rate: string;
}

/**
 * Rounds up.
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

/** @returns smallest units; undefined for what no report may have, too many digits, or no number */
export function parseTypedAmount(text: string, decimals: number): string | undefined {
  const [, whole = '', fraction = ''] = /^(\d{1,12})(?:[.,](\d{1,18}))?$/.exec(text.trim()) ?? [];
  if (whole === '' || fraction.length > decimals) return undefined;
  const units = String(BigInt(whole + fraction.padEnd(decimals, '0')));
  return UNITS.test(units) ? units : undefined;
}

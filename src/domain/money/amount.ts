import { assetRules, formatDecimalUnits, formatUnits, parseBookCurrency } from '../crypto/assets';
import { decimalMoney, formatMoney } from './money';

/** @param currency ISO 4217, or an asset's book currency, such as `ETH.ethereum` */
export function formatAmount(amount: number | bigint | string, currency: string): string {
  const asset = parseBookCurrency(currency);
  return asset === undefined
    ? formatMoney(BigInt(amount), currency)
    : formatUnits(BigInt(amount), asset);
}

/** Formats for a spreadsheet: 1050 EUR is `10.50`. */
export function decimalAmount(amount: bigint, currency: string): string {
  const pair = parseBookCurrency(currency);
  if (pair === undefined) return decimalMoney(amount, currency);
  const decimals = assetRules(pair.asset, pair.network)?.decimals ?? 0;
  return formatDecimalUnits(amount, decimals);
}

export function formatCurrency(currency: string): string {
  const asset = parseBookCurrency(currency);
  return asset === undefined ? currency : `${asset.asset} on ${asset.network}`;
}

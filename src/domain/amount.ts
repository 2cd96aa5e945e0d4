import { formatUnits, parseBookCurrency } from './crypto/assets';
import { formatMoney } from './money';

/** @param currency ISO 4217 code, or the book currency of an asset, such as `ETH.ethereum` */
export function formatAmount(amount: number | bigint | string, currency: string): string {
  const asset = parseBookCurrency(currency);
  return asset === undefined
    ? formatMoney(BigInt(amount), currency)
    : formatUnits(BigInt(amount), asset);
}

export function formatCurrency(currency: string): string {
  const asset = parseBookCurrency(currency);
  return asset === undefined ? currency : `${asset.asset} on ${asset.network}`;
}

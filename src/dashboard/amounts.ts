import { coinOfBook, formatUnits } from '../domain/crypto';
import { formatMoney } from '../domain/money';

/**
 * Writes an amount for people.
 * @param amount minor units of a currency, or smallest units of the coin whose book it is
 */
export function amountText(amount: number | bigint | string, currency: string): string {
  const coin = coinOfBook(currency);
  return coin === undefined
    ? formatMoney(BigInt(amount), currency)
    : formatUnits(BigInt(amount), coin);
}

/** Name of a currency, or of a coin with its network. */
export function currencyText(currency: string): string {
  const coin = coinOfBook(currency);
  return coin === undefined ? currency : `${coin.asset} on ${coin.network}`;
}

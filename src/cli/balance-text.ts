import { coinOfBook, formatUnits } from '../domain/crypto';
import { amountInJson, formatMoney } from '../domain/money';
import type { BalanceRow } from '../ledger/book';
import { fields } from './output';

/** Amount of a balance for people. */
export function balanceText(amount: number | bigint, currency: string): string {
  const coin = coinOfBook(currency);
  return coin === undefined ? formatMoney(amount, currency) : formatUnits(BigInt(amount), coin);
}

/** Row as JSON: a coin in its smallest unit as a text, with its network. */
export function rowInJson<Row extends BalanceRow>(row: Row) {
  const { currency, available, reserved, ...rest } = row;
  const coin = coinOfBook(currency);
  if (coin !== undefined) {
    return { ...rest, ...coin, available: String(available), reserved: String(reserved) };
  }
  return { ...row, available: amountInJson(available), reserved: amountInJson(reserved) };
}

/** Balance after a movement, for people. */
export function movedText(
  row: BalanceRow & { operation_id: string },
  [done, amount]: [string, number | bigint],
): string {
  return fields([
    ['Balance account', row.balance_account],
    [done, balanceText(amount, row.currency)],
    ['Available', balanceText(row.available, row.currency)],
    ['Reserved', balanceText(row.reserved, row.currency)],
    ['Operation', row.operation_id],
  ]);
}

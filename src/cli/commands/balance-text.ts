import { formatUnits, parseBookCurrency } from '../../domain/crypto/assets';
import { amountInJson, formatMoney } from '../../domain/money';
import type { BalanceRow } from '../../service/balances/read';
import type { CliContext } from '../context';
import { fields } from '../output';

/** Amount of a balance for people. */
export function formatBalance(amount: number | bigint, currency: string): string {
  const asset = parseBookCurrency(currency);
  return asset === undefined ? formatMoney(amount, currency) : formatUnits(BigInt(amount), asset);
}

/** Presents a balance; an asset counts in its smallest unit, as a text. */
export function presentBalance<Row extends BalanceRow>(row: Row) {
  const { currency, available, reserved, ...rest } = row;
  const asset = parseBookCurrency(currency);
  if (asset !== undefined) {
    return { ...rest, ...asset, available: String(available), reserved: String(reserved) };
  }
  return { ...row, available: amountInJson(available), reserved: amountInJson(reserved) };
}

export function printBalanceChange(
  context: CliContext,
  row: BalanceRow & { operation_id: string },
  [label, amount]: [string, number | bigint],
): void {
  const text = fields([
    ['Balance account', row.balance_account],
    [label, formatBalance(amount, row.currency)],
    ['Available', formatBalance(row.available, row.currency)],
    ['Reserved', formatBalance(row.reserved, row.currency)],
    ['Operation', row.operation_id],
  ]);
  context.print({ json: presentBalance(row), text });
}

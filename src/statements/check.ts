import {
  addDays,
  type Statement,
  type StatementFault,
  VALUE_DAYS_MAX,
} from '../domain/banks/statement';
import { formatMoney } from '../domain/money/money';

export interface StatementFlaw {
  code: StatementFault | 'sum_mismatch';
  message: string;
  /** Minor units that are missing from the sum. */
  amount?: bigint;
}

/** Finds by a statement alone why nothing of it may be believed. */
export function findFlaw(statement: Statement): StatementFlaw | undefined {
  const { statement_id, currency, balances, lines, fault } = statement;
  if (fault !== undefined) return fault;
  for (const [index, { day, value_date }] of lines.entries()) {
    if (value_date === null || value_date <= addDays(day, VALUE_DAYS_MAX)) continue;
    const message =
      `Line ${index + 1} of statement ${statement_id} has the value date ${value_date}, more than ` +
      `${VALUE_DAYS_MAX} days after ${day}.`;
    return { code: 'file_invalid', message };
  }
  const amount = balances === null ? 0n : findMissing(balances, lines);
  if (amount === 0n) return undefined;
  const message =
    `The lines of statement ${statement_id} do not lead from its opening to its closing balance: ` +
    `${formatMoney(amount, currency)} is missing.`;
  return { code: 'sum_mismatch', message, amount };
}

/** Computes what the lines lack to lead from one balance to the other, in minor units. */
export function findMissing(
  { opening, closing }: NonNullable<Statement['balances']>,
  lines: Statement['lines'],
): bigint {
  return lines.reduce(
    (left, { amount }) => left - BigInt(amount),
    BigInt(closing) - BigInt(opening),
  );
}

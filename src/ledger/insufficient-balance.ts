import type { RuleViolation } from '../domain/errors';
import {
  type AvailableBalance,
  type Debit,
  insufficientBalance,
} from '../domain/money/insufficient-balance';
import type { EntryLine, NewEntry } from './entries';
import { toBigInt, toStoredInteger } from './integers';
import { mustNotBeNegative, mustNotBePositive, RECEIVABLE } from './ledger-accounts';

/** Error of an entry by which a balance would pass its limit. The transaction aborts. */
export class InsufficientBalance extends Error {
  override readonly name = 'InsufficientBalance';
}

/** Explains to the merchant why a debit was refused, by the balances as they are now. */
export async function explainShortage(
  ledger: { balances(account_id: string, livemode: boolean): Promise<AvailableBalance[]> },
  { account_id, livemode }: Pick<NewEntry, 'account_id' | 'livemode'>,
  debit: Debit,
): Promise<RuleViolation> {
  return insufficientBalance(await ledger.balances(account_id, livemode), debit);
}

export type Applied = Pick<NewEntry, 'lines' | 'owed_max'>;

/** Minor units. */
export function readOwed(balances: ReadonlyMap<string, unknown>): number {
  return -Number(balances.get(RECEIVABLE) ?? 0);
}

/** A book without debts has no such balance. */
export function buildDebtBound(owed_max: number | undefined): [string, object][] {
  return owed_max === undefined ? [] : [[RECEIVABLE, { $not: { $lt: -owed_max } }]];
}

export function buildBounds(lines: readonly EntryLine[], currency: string) {
  return lines.flatMap(({ account, amount }): [string, object][] => {
    const bound = toStoredInteger(-amount, currency);
    if (amount < 0 && mustNotBeNegative(account)) return [[account, { $gte: bound }]];
    if (amount > 0 && mustNotBePositive(account)) return [[account, { $lte: bound }]];
    return [];
  });
}

/** Counts pending entries, too. */
export function isCovered(
  lines: readonly EntryLine[],
  balances: ReadonlyMap<string, unknown>,
): boolean {
  return lines.every(({ account, amount }) => {
    const after = (toBigInt(balances.get(account)) ?? 0n) + BigInt(amount);
    if (after < 0n) return !mustNotBeNegative(account);
    return after === 0n || !mustNotBePositive(account);
  });
}

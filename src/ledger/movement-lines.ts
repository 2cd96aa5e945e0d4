import type { Direction, Outcome } from '../domain/movement/movement';
import type { EntryLine } from './entries';
import { ADJUSTMENTS, available, clearing, LATE, RECEIVABLE, SENT } from './ledger-accounts';
import { dropZeroLines, transfer } from './lines';

/** Minor units, or an asset's smallest as a bigint. */
type Amount = number | bigint;

export interface Bearer {
  as: Outcome;
  connector: string;
  balance: string;
  /** Part of the merchant's that the balance does not hold. */
  owed: number;
}

/** Holds what came, or was sent, until somebody decides. */
export function holdMovement(connector: string, direction: Direction, amount: Amount): EntryLine[] {
  return direction === 'in'
    ? transfer(clearing(connector), LATE, amount)
    : transfer(SENT, clearing(connector), amount);
}

export function resolveMovement(direction: Direction, amount: Amount, bearer: Bearer): EntryLine[] {
  if (direction === 'in') return transfer(LATE, getAccount(bearer), amount);
  const { as, balance, owed } = bearer;
  if (as !== 'merchant') return transfer(getAccount(bearer), SENT, amount);
  const held = typeof amount === 'bigint' ? amount - BigInt(owed) : amount - owed;
  return dropZeroLines([
    { account: available(balance), amount: -held },
    { account: RECEIVABLE, amount: -owed },
    { account: SENT, amount },
  ]);
}

/** Picks `clearing` for what goes to the bank, or never was: it leaves as it came. */
function getAccount({ as, connector, balance }: Bearer): string {
  if (as === 'merchant') return available(balance);
  return as === 'loss' ? ADJUSTMENTS : clearing(connector);
}

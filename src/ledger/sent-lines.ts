import type { EntryLine } from './entries';
import { ADJUSTMENTS, available, clearing, RECEIVABLE, SENT } from './ledger-accounts';
import { dropZeroLines, transfer } from './lines';

/** Bearer of money that leaves suspense; minor units, or an asset's as a bigint. */
export type SentBearer =
  | { to: 'bank'; connector: string }
  | { to: 'loss' }
  | { to: 'merchant'; balance: string; owed: number };

export function holdSent(connector: string, amount: number | bigint): EntryLine[] {
  return transfer(SENT, clearing(connector), amount);
}

/** The merchant owes what the balance does not hold. */
export function resolveSent(amount: number | bigint, bearer: SentBearer): EntryLine[] {
  if (bearer.to === 'bank') return transfer(clearing(bearer.connector), SENT, amount);
  if (bearer.to === 'loss') return transfer(ADJUSTMENTS, SENT, amount);
  const { balance, owed } = bearer;
  const held = typeof amount === 'bigint' ? amount - BigInt(owed) : amount - owed;
  return dropZeroLines([
    { account: available(balance), amount: -held },
    { account: RECEIVABLE, amount: -owed },
    { account: SENT, amount },
  ]);
}

/** Exists in every account. @see docs/decisions.md#payouts */
export const MAIN_BALANCE = 'main';

/** Names are part of a field path in the ledger. */
const NAME = /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/;

export function isBalanceAccountName(name: string): boolean {
  return NAME.test(name);
}

/** The balance that always exists. @see docs/decisions.md#payouts */
export const MAIN_BALANCE = 'main';

/** Form of the names of balance accounts and connectors, which are part of a field's path. */
const NAME = /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/;

export function isBalanceAccountName(name: string): boolean {
  return NAME.test(name);
}

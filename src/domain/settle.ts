/** Type of the workflow that starts the daily settlements. */
export const SETTLE_WORKFLOW = 'cryptoSettlements';

/** Result of a day's settlements. */
export interface SettleResult {
  /** Wallets that were looked at. */
  wallets: number;
  /** Settlements that were started, also by an earlier attempt of this run. */
  started: number;
}

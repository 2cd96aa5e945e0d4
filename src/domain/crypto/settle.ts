/** Type of the workflow that starts the daily settlements. */
export const SETTLE_WORKFLOW = 'cryptoSettlements';

export interface SettleResult {
  wallets: number;
  /** Includes those that an earlier attempt of this run started. */
  started: number;
}

/** Starts the daily settlements. */
export const SETTLE_WORKFLOW = 'cryptoSettlements';

export interface SettleResult {
  wallets: number;
  started: number;
}

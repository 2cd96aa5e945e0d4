/** A payout is accepted within this time or not at all. @see docs/decisions.md#payouts */
export const ACCEPT_WITHIN_MS = 5_000;

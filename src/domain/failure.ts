/** Why a payment, refund or payout failed. @see docs/api.md#states */
export interface Failure {
  code: string;
  message: string;
}

/** Sides that may bear what an acquirer keeps of a payment. @see docs/ledger.md#fees-of-acquirers */
export const FEE_BEARERS = ['service', 'merchant'] as const;
export type FeeBearer = (typeof FEE_BEARERS)[number];

export interface AcquirerFee {
  /** Minor units of the money that the acquirer reports, which has it. */
  amount: number;
  /** As the account had it when this was recorded. */
  bearer: FeeBearer;
}

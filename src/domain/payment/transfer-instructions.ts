/** Shown by the hosted page. @see docs/connectors.md#pay-in-by-transfer */
export interface TransferInstructions {
  iban: string;
  account_holder: string;
  bic: string | null;
  /** ISO 11649; the customer has to name it. */
  reference: string;
  /** Minor units. */
  amount: number;
}

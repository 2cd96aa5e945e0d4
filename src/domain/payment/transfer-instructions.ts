/** Transfer by which a customer pays, as the hosted page shows it. @see docs/connectors.md#pay-in-by-transfer */
export interface TransferInstructions {
  /** Without spaces. */
  iban: string;
  account_holder: string;
  bic: string | null;
  /** Creditor reference of ISO 11649, which the customer has to name. */
  reference: string;
  /** Minor units: the amount of the payment. */
  amount: number;
}

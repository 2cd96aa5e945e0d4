import type { CryptoPaymentStatus } from './crypto-payment';
import type { CryptoSettlementStatus } from './crypto-settlement';

/** Input of the `cryptoPayment` workflow: ids, money and routing. Temporal holds nothing personal. */
export interface CryptoPaymentInput {
  crypto_payment_id: string;
  account_id: string;
  livemode: boolean;
  /** Minor units. */
  amount: number;
  /** ISO 4217. */
  currency: string;
  asset: string;
  network: string;
  /** Name of the pair. @see src/domain/crypto.ts */
  method: string;
  connector: string;
  expires_in_seconds: number;
  request_id: string;
}

/** Input that starts the workflow again; it loads its state first. */
export interface CryptoPaymentResume {
  crypto_payment_id: string;
  resume: true;
  request_id: string;
}

export type CryptoPaymentStart = CryptoPaymentInput | CryptoPaymentResume;

/** Answer of the updates and of the query `state`. */
export interface CryptoPaymentState {
  crypto_payment_id: string;
  status: CryptoPaymentStatus;
  version: number;
}

/** Result of the workflow; nothing is stored of one that is `refused`. */
export type CryptoPaymentResult =
  | CryptoPaymentState
  | { crypto_payment_id: string; status: 'refused'; code: string; message: string };

/** Input of the `cryptoSettlement` workflow. */
export interface CryptoSettlementInput {
  crypto_settlement_id: string;
  account_id: string;
  livemode: boolean;
  /** Smallest units; null for all that the balance holds. */
  amount: string | null;
  /** Book of the pair. @see src/domain/crypto.ts */
  currency: string;
  asset: string;
  network: string;
  method: string;
  connector: string;
  /** Asked for by the daily schedule, so that no idempotency key stands behind it. */
  scheduled?: true;
  request_id: string;
}

/** Input that starts the workflow again; it loads its state first. */
export interface CryptoSettlementResume {
  crypto_settlement_id: string;
  resume: true;
  request_id: string;
}

export type CryptoSettlementStart = CryptoSettlementInput | CryptoSettlementResume;

/** Answer of the updates and of the query `state`. */
export interface CryptoSettlementState {
  crypto_settlement_id: string;
  status: CryptoSettlementStatus;
  version: number;
}

/** Result of the workflow; nothing is stored of one that is `refused`, and nothing moved. */
export type CryptoSettlementResult =
  | CryptoSettlementState
  | { crypto_settlement_id: string; status: 'refused'; code: string; message: string };

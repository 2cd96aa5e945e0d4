import type { CryptoPaymentStatus } from './payment';
import type { CryptoSettlementStatus } from './settlement';

/** Input of the `cryptoPayment` workflow. Never personal, because Temporal stores it. */
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
  /** Name of the pair, from `cryptoMethod`. */
  method: string;
  connector: string;
  expires_in_seconds: number;
  request_id: string;
}

/** Input that resumes an ended workflow, which first loads its state. */
export interface CryptoPaymentResume {
  crypto_payment_id: string;
  resume: true;
  request_id: string;
}

export type CryptoPaymentStart = CryptoPaymentInput | CryptoPaymentResume;

/** Response of the updates and of the query `state`. */
export interface CryptoPaymentState {
  crypto_payment_id: string;
  status: CryptoPaymentStatus;
  version: number;
}

/** Result of the workflow; a `refused` payment is not stored. */
export type CryptoPaymentResult =
  | CryptoPaymentState
  | { crypto_payment_id: string; status: 'refused'; code: string; message: string };

/** Input of the `cryptoSettlement` workflow. */
export interface CryptoSettlementInput {
  crypto_settlement_id: string;
  account_id: string;
  livemode: boolean;
  /** Smallest units; null for the whole balance. */
  amount: string | null;
  /** Book currency, from `bookCurrency`. */
  currency: string;
  asset: string;
  network: string;
  method: string;
  connector: string;
  /** Started by the daily schedule, so there is no idempotency key. */
  scheduled?: true;
  request_id: string;
}

/** Input that resumes an ended workflow, which first loads its state. */
export interface CryptoSettlementResume {
  crypto_settlement_id: string;
  resume: true;
  request_id: string;
}

export type CryptoSettlementStart = CryptoSettlementInput | CryptoSettlementResume;

/** Response of the updates and of the query `state`. */
export interface CryptoSettlementState {
  crypto_settlement_id: string;
  status: CryptoSettlementStatus;
  version: number;
}

/** Result of the workflow; a `refused` settlement is not stored, and no money moved. */
export type CryptoSettlementResult =
  | CryptoSettlementState
  | { crypto_settlement_id: string; status: 'refused'; code: string; message: string };

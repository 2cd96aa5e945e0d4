import type { Refused, Resume, State } from '../lifecycle';
import type { WorkflowInput } from '../workflow-input';
import type { CryptoPaymentStatus } from './payment';
import type { CryptoSettlementStatus } from './settlement';

export interface CryptoPaymentInput extends WorkflowInput {
  crypto_payment_id: string;
  /** Minor units. */
  amount: number;
  asset: string;
  network: string;
  expires_in_seconds: number;
  /** By how much it may be short and still be received. Absent: by nothing. */
  tolerance_percent?: number;
}

export type CryptoPaymentResume = Resume<'crypto_payment_id'>;
export type CryptoPaymentStart = CryptoPaymentInput | CryptoPaymentResume;
export type CryptoPaymentState = State<'crypto_payment_id', CryptoPaymentStatus>;
export type CryptoPaymentResult = CryptoPaymentState | Refused<'crypto_payment_id'>;

export interface CryptoSettlementInput extends WorkflowInput {
  crypto_settlement_id: string;
  /** Smallest units; null for the whole balance. */
  amount: string | null;
  asset: string;
  network: string;
  /** The daily schedule has no idempotency key. */
  scheduled?: true;
}

type CryptoSettlementResume = Resume<'crypto_settlement_id'>;
export type CryptoSettlementStart = CryptoSettlementInput | CryptoSettlementResume;
export type CryptoSettlementState = State<'crypto_settlement_id', CryptoSettlementStatus>;
export type CryptoSettlementResult = CryptoSettlementState | Refused<'crypto_settlement_id'>;

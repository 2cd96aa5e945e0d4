import type { AccountTime } from '../account/clock';
import type { Refused, Resume, State } from '../lifecycle';
import type { CryptoPaymentStatus } from './payment';
import type { CryptoSettlementStatus } from './settlement';

/** Never personal: Temporal stores it. */
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
  method: string;
  connector: string;
  expires_in_seconds: number;
  /** By how much it may be short and still be received. Absent: by nothing. */
  tolerance_percent?: number;
  request_id: string;
  /** Absent: never moved. */
  clock?: AccountTime;
}

export type CryptoPaymentResume = Resume<'crypto_payment_id'>;
export type CryptoPaymentStart = CryptoPaymentInput | CryptoPaymentResume;
export type CryptoPaymentState = State<'crypto_payment_id', CryptoPaymentStatus>;
export type CryptoPaymentResult = CryptoPaymentState | Refused<'crypto_payment_id'>;

export interface CryptoSettlementInput {
  crypto_settlement_id: string;
  account_id: string;
  livemode: boolean;
  /** Smallest units; null for the whole balance. */
  amount: string | null;
  currency: string;
  asset: string;
  network: string;
  method: string;
  connector: string;
  /** The daily schedule has no idempotency key. */
  scheduled?: true;
  request_id: string;
  /** Absent: never moved. */
  clock?: AccountTime;
}

type CryptoSettlementResume = Resume<'crypto_settlement_id'>;
export type CryptoSettlementStart = CryptoSettlementInput | CryptoSettlementResume;
export type CryptoSettlementState = State<'crypto_settlement_id', CryptoSettlementStatus>;
export type CryptoSettlementResult = CryptoSettlementState | Refused<'crypto_settlement_id'>;

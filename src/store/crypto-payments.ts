import type { Db } from 'mongodb';
import { indexBuilder } from '../base/mongo-indexes';
import type { Deposit } from '../domain/crypto/deposit';
import {
  CRYPTO_PAYMENT_IN_FLIGHT,
  type CryptoPaymentAttention,
  type CryptoPaymentStatus,
} from '../domain/crypto/payment';
import { type ResourceDocument, resourceIndexes, resourceStore } from './resource';

/** Crypto payment: the fields of docs/api.md#crypto under their wire names, and ours. */
export interface CryptoPaymentDocument
  extends ResourceDocument<CryptoPaymentStatus, CryptoPaymentAttention> {
  amount: number;
  asset: string;
  network: string;
  /** Smallest units. */
  amount_due: string;
  /** Smallest units of the confirmed deposits. */
  amount_received: string;
  /** Price of one whole unit of the asset when the payment was created. */
  rate: string;
  address: string;
  payment_uri: string;
  /** Page that simulates the payer; sandbox only. */
  play_url: string | null;
  required_confirmations: number;
  deposits: Deposit[];
  /** Whether an operator accepted the deposits as they are. */
  accepted: boolean;
  reported: ReportedStatus[];
  reference: string | null;
  metadata: string;
  expires_at: string;
  received_at: string | null;
  /** SHA-256 of the page's token, which is derived and never stored. */
  token_hash: string;
}

export interface ReportedStatus {
  status: CryptoPaymentStatus;
  version: number;
}

export function createCryptoPaymentStore(db: Db) {
  const rows = db.collection<CryptoPaymentDocument>('crypto_payments');
  return {
    ...resourceStore<CryptoPaymentDocument, 'status' | 'method' | 'reference'>(
      rows,
      CRYPTO_PAYMENT_IN_FLIGHT,
    ),
    ensureIndexes: indexBuilder(rows, [
      ...resourceIndexes(CRYPTO_PAYMENT_IN_FLIGHT, 'status', 'method', 'reference'),
      { key: { token_hash: 1 }, name: 'token', unique: true },
    ]),
    byToken: (token_hash: string) => rows.findOne({ token_hash }),
  };
}

import type { Db } from 'mongodb';
import { indexBuilder } from '../base/mongo-indexes';
import type { Deposit } from '../domain/crypto/deposit';
import {
  CRYPTO_PAYMENT_IN_FLIGHT,
  type CryptoPaymentAttention,
  type CryptoPaymentStatus,
} from '../domain/crypto/payment';
import { resourceIndexes } from './list';
import { type ResourceDocument, resourceStore } from './resource';

/** @see docs/api.md#crypto */
export interface CryptoPaymentDocument
  extends ResourceDocument<CryptoPaymentStatus, CryptoPaymentAttention> {
  amount: number;
  asset: string;
  network: string;
  /** Smallest units. */
  amount_due: string;
  /** Setting of the account when the payment was created; absent: 0. */
  tolerance_percent?: number;
  /** Smallest units of the confirmed deposits. */
  amount_received: string;
  /** Price of one whole unit of the asset at creation. */
  rate: string;
  address: string;
  payment_uri: string;
  /** Simulates the payer; sandbox only. */
  play_url: string | null;
  required_confirmations: number;
  deposits: Deposit[];
  /** An operator accepted the deposits as they are. */
  accepted: boolean;
  reported: ReportedStatus[];
  reference: string | null;
  metadata: string;
  expires_at: string;
  /** Present when the connector closed the window early. */
  closed_early_at?: string;
  received_at: string | null;
  /** SHA-256 of the page's token, which is derived and never stored. */
  token_hash: string;
}

export interface ReportedStatus {
  status: CryptoPaymentStatus;
  transition: number;
}

export const ADDRESS_INDEX = 'address';

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
      // No deposit may count for two payments, as after a restore of a connector's database.
      { key: { network: 1, address: 1 }, name: ADDRESS_INDEX, unique: true },
    ]),
    takenAddresses: (network: string, addresses: readonly string[]): Promise<string[]> =>
      rows.distinct('address', { network, address: { $in: [...addresses] } }),
    byToken: (token_hash: string) => rows.findOne({ token_hash }),
  };
}

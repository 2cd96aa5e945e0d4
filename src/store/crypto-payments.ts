import type { Collection, Db } from 'mongodb';
import { type MissingIndexes, makeIndexes } from '../base/mongo-indexes';
import type { Deposit } from '../domain/crypto/deposit';
import {
  CRYPTO_PAYMENT_IN_FLIGHT,
  type CryptoPaymentAttention,
  type CryptoPaymentStatus,
} from '../domain/crypto/payment';
import {
  inFlightIndex,
  type ListFilter,
  listIndexes,
  NEEDS_ATTENTION,
  type ResourceDocument,
  resourceStore,
  STUCK_INDEX,
  UPDATED,
} from './resource';

/** A crypto payment: the fields of the wire under their names there (docs/api.md#crypto), and ours. */
export interface CryptoPaymentDocument
  extends ResourceDocument<CryptoPaymentStatus, CryptoPaymentAttention> {
  /** Minor units of `currency`. */
  amount: number;
  asset: string;
  network: string;
  /** Smallest units. */
  amount_due: string;
  /** Smallest units of the deposits that count. */
  amount_received: string;
  /** Price of one whole coin when the window opened. */
  rate: string;
  address: string;
  payment_uri: string;
  /** Page on which a person plays the payer; sandboxes only. */
  play_url: string | null;
  required_confirmations: number;
  deposits: Deposit[];
  /** Whether an operator took the deposits as they are. */
  accepted: boolean;
  /** States that were told to the merchant, with the version that reached each. */
  reported: ReportedStatus[];
  reference: string | null;
  /** The JSON text as the merchant wrote it. */
  metadata: string;
  expires_at: string;
  received_at: string | null;
  /** SHA-256 of the page's token; the token itself is derived, never stored. */
  token_hash: string;
}

/** State of which an event has reported. */
export interface ReportedStatus {
  status: CryptoPaymentStatus;
  version: number;
}

export interface CryptoPaymentFilter extends ListFilter {
  status?: string | undefined;
  method?: string | undefined;
  reference?: string | undefined;
}

export function createCryptoPaymentStore(db: Db) {
  const rows: Collection<CryptoPaymentDocument> = db.collection('crypto_payments');
  return {
    ...resourceStore<CryptoPaymentDocument, CryptoPaymentFilter>(rows, CRYPTO_PAYMENT_IN_FLIGHT),
    ensureIndexes: (missing?: MissingIndexes) =>
      makeIndexes(
        rows,
        [
          ...listIndexes('status', 'method', 'reference'),
          NEEDS_ATTENTION,
          inFlightIndex(CRYPTO_PAYMENT_IN_FLIGHT),
          { key: { token_hash: 1 }, name: 'token', unique: true },
          UPDATED,
          STUCK_INDEX,
        ],
        missing,
      ),
    byToken: (token_hash: string) => rows.findOne({ token_hash }),
  };
}

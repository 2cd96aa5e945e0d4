import type { Collection, Db } from 'mongodb';
import {
  CRYPTO_PAYMENT_IN_FLIGHT,
  type CryptoPaymentAttention,
  type CryptoPaymentStatus,
} from '../domain/crypto-payment';
import type { Deposit } from '../domain/deposit';
import { type IndexWork, makeIndexes } from '../mongo-indexes';
import {
  IN_NEED,
  inFlightIndex,
  type ListFilter,
  listIndexes,
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
  told: Told[];
  reference: string | null;
  /** The JSON text as the merchant wrote it. */
  metadata: string;
  expires_at: string;
  received_at: string | null;
  /** SHA-256 of the page's token; the token itself is derived, never stored. */
  token_hash: string;
  /** Key that derives the token; absent for the first one. */
  token_kid?: string;
}

/** State of which an event has told. */
export interface Told {
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
    ensureIndexes: (work?: IndexWork) =>
      makeIndexes(
        rows,
        [
          ...listIndexes('status', 'method', 'reference'),
          IN_NEED,
          inFlightIndex(CRYPTO_PAYMENT_IN_FLIGHT),
          { key: { token_hash: 1 }, name: 'token', unique: true },
          UPDATED,
          STUCK_INDEX,
        ],
        work,
      ),
    /**
     * Counts pages that may still be opened, by the key of their links.
     * @param kid undefined for the first key
     */
    linkedBy: (kid: string | undefined, now: string): Promise<number> =>
      rows.countDocuments({
        status: { $in: [...CRYPTO_PAYMENT_IN_FLIGHT] },
        expires_at: { $gt: now },
        token_kid: kid ?? { $exists: false },
      }),
    byToken: (token_hash: string) => rows.findOne({ token_hash }),
  };
}

import type { Collection, Db } from 'mongodb';
import { type MissingIndexes, makeIndexes } from '../base/mongo-indexes';
import {
  CRYPTO_SETTLEMENT_IN_FLIGHT,
  type CryptoSettlementAttention,
  type CryptoSettlementStatus,
} from '../domain/crypto/settlement';
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

/** A settlement: the fields of the wire under their names there (docs/api.md#settlements), and ours. */
export interface CryptoSettlementDocument
  extends ResourceDocument<CryptoSettlementStatus, CryptoSettlementAttention> {
  /** Smallest units that the wallet receives. */
  amount: string;
  /** Smallest units, drawn beside the amount. */
  fee: string;
  asset: string;
  network: string;
  wallet_address: string;
  transaction_id: string | null;
  completed_at: string | null;
  /** ISO 8601; operators are told of a settlement that is later. */
  due_at: string;
}

export interface CryptoSettlementFilter extends ListFilter {
  status?: string | undefined;
  method?: string | undefined;
  transaction_id?: string | undefined;
}

export function createCryptoSettlementStore(db: Db) {
  const rows: Collection<CryptoSettlementDocument> = db.collection('crypto_settlements');
  return {
    ...resourceStore<CryptoSettlementDocument, CryptoSettlementFilter>(
      rows,
      CRYPTO_SETTLEMENT_IN_FLIGHT,
    ),
    ensureIndexes: (missing?: MissingIndexes) =>
      makeIndexes(
        rows,
        [
          ...listIndexes('status', 'method', 'transaction_id'),
          inFlightIndex(CRYPTO_SETTLEMENT_IN_FLIGHT),
          NEEDS_ATTENTION,
          UPDATED,
          STUCK_INDEX,
        ],
        missing,
      ),
  };
}

import type { Db } from 'mongodb';
import { indexBuilder } from '../base/mongo-indexes';
import {
  CRYPTO_SETTLEMENT_IN_FLIGHT,
  type CryptoSettlementAttention,
  type CryptoSettlementStatus,
} from '../domain/crypto/settlement';
import type { SentHeld } from '../domain/sent-held';
import { type ResourceDocument, resourceStore } from './resource';
import { resourceIndexes } from './resource-indexes';
import { sentHeldWrites } from './sent-held';

/** Settlement: the fields of docs/api.md#settlements under their wire names, and ours. */
export interface CryptoSettlementDocument
  extends ResourceDocument<CryptoSettlementStatus, CryptoSettlementAttention> {
  /** Smallest units, without the fee. */
  amount: string;
  /** Smallest units, debited in addition to the amount. */
  fee: string;
  /** Smallest units of the network's own asset that the transaction cost us, once it is known. */
  network_fee?: string;
  asset: string;
  network: string;
  wallet_address: string;
  transaction_id: string | null;
  completed_at: string | null;
  due_at: string;
  /** Money that the bank sent otherwise than it was instructed, and that is in suspense, or was. */
  sent_held?: SentHeld[];
}

export function createCryptoSettlementStore(db: Db) {
  const rows = db.collection<CryptoSettlementDocument>('crypto_settlements');
  return {
    ...resourceStore<CryptoSettlementDocument, 'status' | 'method' | 'transaction_id'>(
      rows,
      CRYPTO_SETTLEMENT_IN_FLIGHT,
    ),
    ...sentHeldWrites(rows),
    ensureIndexes: indexBuilder(
      rows,
      resourceIndexes(CRYPTO_SETTLEMENT_IN_FLIGHT, 'status', 'method', 'transaction_id'),
    ),
  };
}

import type { ClientSession, Db } from 'mongodb';
import { indexBuilder } from '../base/mongo-indexes';
import {
  CRYPTO_SETTLEMENT_IN_FLIGHT,
  type CryptoSettlementAttention,
  type CryptoSettlementStatus,
} from '../domain/crypto/settlement';
import { resourceIndexes } from './list';
import { type ResourceDocument, resourceStore } from './resource';

/** @see docs/api.md#settlements */
export interface CryptoSettlementDocument
  extends ResourceDocument<CryptoSettlementStatus, CryptoSettlementAttention> {
  /** Smallest units, without the fee. */
  amount: string;
  /** Smallest units, in addition to the amount. */
  fee: string;
  /** Smallest units of the network's own asset, once known. */
  network_fee?: string;
  asset: string;
  network: string;
  wallet_address: string;
  transaction_id: string | null;
  completed_at: string | null;
  due_at: string;
}

export function createCryptoSettlementStore(db: Db) {
  const rows = db.collection<CryptoSettlementDocument>('crypto_settlements');
  return {
    ...resourceStore<CryptoSettlementDocument, 'status' | 'method' | 'transaction_id'>(
      rows,
      CRYPTO_SETTLEMENT_IN_FLIGHT,
    ),
    setNetworkFee: (_id: string, network_fee: string, session: ClientSession) =>
      rows.updateOne({ _id }, { $set: { network_fee } }, { session }),
    ensureIndexes: indexBuilder(
      rows,
      resourceIndexes(CRYPTO_SETTLEMENT_IN_FLIGHT, 'status', 'method', 'transaction_id'),
    ),
  };
}

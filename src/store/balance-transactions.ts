import type { Db } from 'mongodb';
import { indexBuilder } from '../base/mongo-indexes';
import type { BalanceChange, EntryDocument } from '../ledger/documents';
import { type ListFilter, listIndexes, listNewest } from './resource';

/** Journal entry that changes what a balance has available. */
export type BalanceTransactionDocument = EntryDocument & BalanceChange;

export interface BalanceTransactionFilter extends ListFilter {
  balance_account?: string | undefined;
  /** ISO 4217, or the book of an asset. @see src/domain/crypto/assets.ts */
  currency?: string | undefined;
  type?: string | undefined;
}

/** Lists journal entries for their merchant; the ledger posts them. */
export function createBalanceTransactionStore(db: Db) {
  const rows = db.collection<BalanceTransactionDocument>('ledger_postings');
  // 64-bit integers would lose digits as numbers.
  const exactRows = { find: (filter: object) => rows.find(filter, { useBigInt64: true }) };
  return {
    list: (filter: BalanceTransactionFilter) => listNewest(exactRows, filter),
    /** Whether a balance account ever had funds. */
    hasBalanceAccount: async (account_id: string, livemode: boolean, balance_account: string) => {
      const row = { account_id, livemode, balance_account };
      return (await rows.findOne(row, { projection: { _id: 1 } })) !== null;
    },
    // The other entries are in no list.
    ensureIndexes: indexBuilder(
      rows,
      listIndexes('balance_account', 'currency', 'type').map((index) => ({
        ...index,
        partialFilterExpression: { account_id: { $exists: true } },
      })),
    ),
  };
}

import type { Db } from 'mongodb';
import { indexBuilder } from '../base/mongo-indexes';
import type { BalanceChange, EntryDocument } from '../ledger/entries';
import { EXPORT_MS_MAX, type ListFilter, listIndexes, listNewest } from './list';

export type BalanceTransactionDocument = EntryDocument & BalanceChange;

export interface BalanceTransactionFilter extends ListFilter {
  balance_account?: string | undefined;
  /** ISO 4217, or the book of an asset. @see src/domain/crypto/assets.ts */
  currency?: string | undefined;
  type?: string | undefined;
}

type RowOwner = Pick<BalanceTransactionDocument, 'account_id' | 'livemode'>;

interface BalanceSum {
  balance_account: string;
  currency: string;
  /** Stored integer: minor units, or an asset's smallest. */
  available: unknown;
}

const EXPORT_BATCH = 500;
const SUM_MS_MAX = 10_000;

const BALANCE = { balance_account: '$balance_account', currency: '$currency' };
const NET = {
  $sum: {
    $map: {
      input: {
        $filter: {
          input: '$lines',
          cond: {
            $or: [
              {
                $eq: [
                  '$$this.account',
                  { $concat: ['balances.', '$balance_account', '.available'] },
                ],
              },
              // Pending until its day.
              {
                $eq: [
                  {
                    $indexOfCP: ['$$this.account', { $concat: ['due.', '$balance_account', '.'] }],
                  },
                  0,
                ],
              },
            ],
          },
        },
      },
      in: '$$this.amount',
    },
  },
};

export function createBalanceTransactionStore(db: Db) {
  const rows = db.collection<BalanceTransactionDocument>('journal_entries');
  // Numbers would lose digits of 64-bit integers.
  const exactRows = { find: (filter: object) => rows.find(filter, { useBigInt64: true }) };
  return {
    list: (filter: BalanceTransactionFilter) => listNewest(exactRows, filter),
    sumBefore: async ({ account_id, livemode }: RowOwner, position: string) => {
      const sums = await rows
        .aggregate<{ _id: Omit<BalanceSum, 'available'>; available: unknown }>(
          [
            { $match: { account_id, livemode, position: { $lt: position } } },
            { $group: { _id: BALANCE, available: { $sum: NET } } },
            { $sort: { _id: 1 } },
          ],
          { useBigInt64: true, maxTimeMS: SUM_MS_MAX },
        )
        .toArray();
      return sums.map(({ _id, available }): BalanceSum => ({ ..._id, available }));
    },
    /** Reads oldest first; the caller closes the cursor. */
    export: (
      { account_id, livemode }: RowOwner,
      { since, until }: { since: string; until: string },
    ) =>
      rows
        .find(
          { account_id, livemode, position: { $gte: since, $lt: until } },
          { useBigInt64: true },
        )
        .sort({ position: 1 })
        .batchSize(EXPORT_BATCH)
        .maxTimeMS(EXPORT_MS_MAX),
    hasBalanceAccount: async (account_id: string, livemode: boolean, balance_account: string) => {
      const row = { account_id, livemode, balance_account };
      return (await rows.findOne(row, { projection: { _id: 1 } })) !== null;
    },
    // Other entries are in no list.
    ensureIndexes: indexBuilder(
      rows,
      listIndexes('balance_account', 'currency', 'type').map((index) => ({
        ...index,
        partialFilterExpression: { account_id: { $exists: true } },
      })),
    ),
  };
}

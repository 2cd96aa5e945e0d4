import type { ClientSession, Collection, Db } from 'mongodb';
import type { Address, Hash } from 'viem';
import type { Asset } from './assets';
import type { BlockRef } from './chain-store';
import type { PendingReport } from './report';

export interface BlockDeposit {
  crypto_payment_id: string;
  asset: Asset;
  transaction_id: Hash;
  /** Smallest units, all transfers of the transaction together. */
  amount: bigint;
  sources: Address[];
  /**
   * Whether the payment is in another asset. Such a deposit is stored and logged, never reported.
   */
  is_stray: boolean;
  required_confirmations: number;
}

export interface Deposit extends Omit<BlockDeposit, 'amount'> {
  /** Payment, asset and transaction, so that it stays the same in another block. */
  _id: string;
  amount: string;
  /** Block that has it; null if the chain has left that branch. */
  block: BlockRef | null;
  /** Last report that the service has, if it is still true. */
  told: ReportedDeposit | null;
  /** Report in progress, stored first so that a repeat is identical. */
  telling: PendingReport | null;
  reports: number;
  /** Whether more reports may follow. */
  is_open: boolean;
  /** Time of the first block that had it, by the chain's clock. */
  seen_at: Date;
}

export interface ReportedDeposit {
  block_hash: string;
  confirmations: number;
  amount: string;
}

export type Deposits = ReturnType<typeof createDeposits>;

export function createDeposits(db: Db) {
  const rows: Collection<Deposit> = db.collection<Deposit>('deposits');
  return {
    ensureIndexes: () =>
      rows.createIndexes([
        { key: { is_open: 1, _id: 1 }, name: 'open' },
        { key: { 'block.number': 1 }, name: 'block' },
        { key: { crypto_payment_id: 1, transaction_id: 1 }, name: 'payment' },
      ]),
    find: (crypto_payment_id: string, transaction_id: string) =>
      rows.find({ crypto_payment_id, transaction_id: { $eq: toHash(transaction_id) } }).toArray(),
    store: async (
      deposits: readonly BlockDeposit[],
      block: BlockRef,
      seen_at: Date,
      session: ClientSession,
    ): Promise<void> => {
      for (const { amount, ...facts } of deposits) {
        const _id = `${facts.crypto_payment_id}:${facts.asset}:${facts.transaction_id}`;
        const change = { ...facts, amount: String(amount), block, is_open: !facts.is_stray };
        const initial = { told: null, telling: null, reports: 0, seen_at };
        const update = { $set: change, $setOnInsert: initial };
        await rows.updateOne({ _id }, update, { upsert: true, session });
      }
    },
    revertAbove: (number: number, session: ClientSession) =>
      rows.updateMany(
        { 'block.number': { $gt: number } },
        [{ $set: { block: null, is_open: { $not: ['$is_stray'] } } }],
        { session },
      ),
    open: (after: string, limit: number) =>
      rows
        .find({ is_open: true, _id: { $gt: after } })
        .sort({ _id: 1 })
        .limit(limit)
        .toArray(),
    /** Stores a report before it is sent; false if another process has. */
    plan: async ({ _id, reports }: Deposit, telling: PendingReport): Promise<boolean> => {
      const filter = { _id, reports, telling: null };
      const { modifiedCount } = await rows.updateOne(filter, { $set: { telling } });
      return modifiedCount === 1;
    },
    markReported: (_id: string, { callback }: PendingReport, told: ReportedDeposit | null) =>
      rows.updateOne(
        { _id, 'telling.callback.callback_id': callback.callback_id },
        { $set: { told, telling: null }, $inc: { reports: 1 } },
      ),
    /** Closes a fully reported deposit, unless its block has changed since. */
    close: ({ _id, block }: Deposit) =>
      rows.updateOne({ _id, block }, { $set: { is_open: false } }),
  };
}

function toHash(transaction_id: string): Hash {
  return `0x${transaction_id.replace(/^0x/, '').toLowerCase()}`;
}

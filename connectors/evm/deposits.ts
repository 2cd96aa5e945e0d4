import type { ClientSession, Collection, Db } from 'mongodb';
import type { Address, Hash } from 'viem';
import type { Asset } from './assets';
import type { BlockRef } from './chain-store';
import type { PendingReport } from './report';

/** Money that one transaction brings to the address of one payment. */
export interface BlockDeposit {
  crypto_payment_id: string;
  asset: Asset;
  transaction_id: Hash;
  /** Smallest units, all transfers of the transaction together. */
  amount: bigint;
  /** Accounts that it came from. */
  sources: Address[];
  /** Whether the payment was asked for in another asset: kept, and told to nobody but the log. */
  is_stray: boolean;
  /** Blocks after which it counts, as its payment was told. */
  required_confirmations: number;
}

export interface Deposit extends Omit<BlockDeposit, 'amount'> {
  /** Payment, asset and transaction: it stays when another block takes the transaction in. */
  _id: string;
  amount: string;
  /** Block that holds it; null when the chain has left that branch. */
  block: BlockRef | null;
  /** Report that the product has; null: none that still holds. */
  told: ReportedDeposit | null;
  /** Report under way, written before it is sent so that a repeat says the same. */
  telling: PendingReport | null;
  /** Number of reports so far. */
  reports: number;
  /** Whether there is more to tell. */
  is_open: boolean;
  /** Time of the first block that held it, by the chain's own clock. */
  seen_at: Date;
}

/** Report of a deposit, as it was. */
export interface ReportedDeposit {
  block_hash: string;
  confirmations: number;
  /** Smallest units. */
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
    /** Writes down what a block brings; another block may have brought it before. */
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
    /** Takes back what blocks above a number brought. */
    revertAbove: (number: number, session: ClientSession) =>
      rows.updateMany(
        { 'block.number': { $gt: number } },
        [{ $set: { block: null, is_open: { $not: ['$is_stray'] } } }],
        { session },
      ),
    /** Deposits of which there is more to tell. */
    open: (after: string, limit: number) =>
      rows
        .find({ is_open: true, _id: { $gt: after } })
        .sort({ _id: 1 })
        .limit(limit)
        .toArray(),
    /** Writes a report down before it is sent; false where another process has. */
    plan: async ({ _id, reports }: Deposit, telling: PendingReport): Promise<boolean> => {
      const filter = { _id, reports, telling: null };
      const { modifiedCount } = await rows.updateOne(filter, { $set: { telling } });
      return modifiedCount === 1;
    },
    /** Notes, once, that the product has the report. */
    markReported: (_id: string, { callback }: PendingReport, told: ReportedDeposit | null) =>
      rows.updateOne(
        { _id, 'telling.callback.callback_id': callback.callback_id },
        { $set: { told, telling: null }, $inc: { reports: 1 } },
      ),
    /** Ends the watch over a deposit of which all is told, unless its block has changed since. */
    close: ({ _id, block }: Deposit) =>
      rows.updateOne({ _id, block }, { $set: { is_open: false } }),
  };
}

/** Reads a transaction's name as the chain writes it. */
function toHash(transaction_id: string): Hash {
  return `0x${transaction_id.replace(/^0x/, '').toLowerCase()}`;
}

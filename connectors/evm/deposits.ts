import type { ClientSession, Collection, Db } from 'mongodb';
import type { Address, Hash } from 'viem';
import type { Asset } from './assets';
import type { BlockRef, DatedBlock } from './chain-store';
import { createReportStore, type ReportedRow } from './report';

export interface BlockDeposit {
  crypto_payment_id: string;
  asset: Asset;
  transaction_id: Hash;
  /** Smallest units of all transfers of the transaction. */
  amount: bigint;
  sources: Address[];
  /** Reported as `wrong_asset`. */
  is_wrong_asset: boolean;
  /** Stored, never reported. */
  is_dust: boolean;
  required_confirmations: number;
}

export interface Deposit extends Omit<BlockDeposit, 'amount'>, ReportedRow<ReportedDeposit | null> {
  /** Payment, asset and transaction, so that it stays the same in another block. */
  _id: string;
  amount: string;
  /** Null if the chain has left that branch, or no block has had it yet. */
  block: BlockRef | null;
  /** Until a block has it. */
  unmined?: Unmined;
  /** Number of its blocks that were reported as dropped. */
  reorgs: number;
  /** Time since which the second node differs. */
  disagreed_at: Date | null;
  is_open: boolean;
  /** First block that had it, by the chain's clock; before one has, our time. */
  seen_at: Date;
  /** Newest block that had it; likewise. */
  mined_at: Date;
}

/** A transaction that the node would put into its next block: nothing of it counts. */
export interface Unmined {
  /** Time from which the node lacks it; null while it has it. */
  missing_since: Date | null;
  /** Time at which it ends. */
  until: Date;
  is_withdrawn: boolean;
}

export interface ReportedDeposit {
  /** Null if it was in no block. */
  block_hash: string | null;
  confirmations: number;
  amount: string;
}

export function depositId({
  crypto_payment_id,
  asset,
  transaction_id,
}: Pick<BlockDeposit, 'crypto_payment_id' | 'asset' | 'transaction_id'>): string {
  return `${crypto_payment_id}:${asset}:${transaction_id}`;
}

const UNREPORTED = { reported: null, pending_report: null, last: null, reports: 0, reorgs: 0 };

export type Deposits = ReturnType<typeof createDeposits>;

export function createDeposits(db: Db) {
  const rows: Collection<Deposit> = db.collection<Deposit>('deposits');
  return {
    ...createReportStore<ReportedDeposit | null>(db, 'deposits'),
    ensureIndexes: () =>
      rows.createIndexes([
        { key: { is_open: 1, _id: 1 }, name: 'open' },
        { key: { 'block.number': 1 }, name: 'block' },
        { key: { 'last.at': 1 }, name: 'reported' },
        { key: { is_dust: 1 }, name: 'dust', partialFilterExpression: { is_dust: true } },
        { key: { crypto_payment_id: 1, transaction_id: 1 }, name: 'payment' },
      ]),
    find: (crypto_payment_id: string, transaction_id: string) => {
      const hash: Hash = `0x${transaction_id.replace(/^0x/, '').toLowerCase()}`;
      return rows.find({ crypto_payment_id, transaction_id: { $eq: hash } }).toArray();
    },
    store: async (
      deposits: readonly BlockDeposit[],
      { mined_at, ...block }: DatedBlock,
      session: ClientSession,
    ): Promise<void> => {
      for (const { amount, ...facts } of deposits) {
        const _id = depositId(facts);
        const placed = { block, mined_at, disagreed_at: null, is_open: !facts.is_dust };
        const update = {
          $set: { ...facts, amount: String(amount), ...placed },
          $setOnInsert: { ...UNREPORTED, seen_at: mined_at },
        };
        // The block's time counts from here, so that a restored database repeats its reports.
        const isMined = { $set: { seen_at: mined_at }, $unset: { unmined: true } } as const;
        await rows.updateOne({ _id, unmined: { $exists: true } }, isMined, { session });
        await rows.updateOne({ _id }, update, { upsert: true, session });
      }
    },
    /** Stores what no block has, unless it is known. */
    see: async ({ amount, ...facts }: BlockDeposit, at: Date, until: Date): Promise<void> => {
      const _id = depositId(facts);
      const unmined = { missing_since: null, until, is_withdrawn: false };
      const seen = { unmined, seen_at: at, mined_at: at, is_open: true };
      const known = { ...facts, amount: String(amount), block: null, disagreed_at: null };
      const $setOnInsert = { ...known, ...UNREPORTED, ...seen };
      const { upsertedCount } = await rows.updateOne({ _id }, { $setOnInsert }, { upsert: true });
      if (upsertedCount > 0) return;
      await rows.updateOne({ _id, is_open: false, 'unmined.is_withdrawn': true }, { $set: seen });
    },
    listUnmined: () =>
      rows.find({ is_open: true, 'unmined.is_withdrawn': false }).sort({ _id: 1 }).toArray(),
    setUnmined: ({ _id, unmined }: Deposit, change: Partial<Unmined>) =>
      unmined && rows.updateOne({ _id, unmined }, { $set: { unmined: { ...unmined, ...change } } }),
    revertAbove: (number: number, session: ClientSession) =>
      rows.updateMany(
        { 'block.number': { $gt: number } },
        [{ $set: { block: null, is_open: { $not: ['$is_dust'] } } }],
        { session },
      ),
    sums: async (
      crypto_payment_id: string,
      number: number,
      dust: 'with dust' | 'without dust',
    ): Promise<Record<Asset, bigint>> => {
      const reported = dust === 'with dust' ? {} : { is_dust: false };
      const known = { crypto_payment_id, 'block.number': { $lte: number }, ...reported };
      const sums = { ETH: 0n, USDC: 0n };
      for (const { asset, amount } of await rows.find(known).toArray()) {
        sums[asset] += BigInt(amount);
      }
      return sums;
    },
    dust: (limit: number) =>
      rows.find({ is_dust: true }).sort({ mined_at: -1 }).limit(limit).toArray(),
    countDust: () => rows.countDocuments({ is_dust: true }),
    oldestUnreported: async () => {
      const unreported = {
        is_open: true,
        reported: null,
        $or: [{ block: { $ne: null } }, { 'unmined.is_withdrawn': false }],
        is_wrong_asset: false,
      };
      const cursor = rows.find(unreported).sort({ mined_at: 1 });
      return (await cursor.limit(1).toArray())[0];
    },
    open: (after: string, limit: number) =>
      rows
        .find({ is_open: true, _id: { $gt: after } })
        .sort({ _id: 1 })
        .limit(limit)
        .toArray(),
    markDisagreed: ({ _id, block }: Deposit, disagreed_at: Date) =>
      rows.updateOne({ _id, block, disagreed_at: null }, { $set: { disagreed_at } }),
    /** Closes a fully reported deposit, unless its block has changed since. */
    close: ({ _id, block }: Deposit) =>
      rows.updateOne({ _id, block }, { $set: { is_open: false } }),
  };
}

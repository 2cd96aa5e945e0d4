import type { ClientSession, Collection, Db } from 'mongodb';
import type { Address, Hash, Hex } from 'viem';
import type { Asset } from './assets';
import type { BlockRef, DatedBlock } from './chain-store';
import { createReportStore, type ReportedRow } from './report';

/** All attempts share one nonce, so the chain accepts one at most. */
export interface Attempt {
  hash: Hash;
  bytes: Hex;
  /** Wei per unit of gas. */
  fee_max: string;
  tip: string;
  signed_at: Date;
}

/** `taken`: by another transaction. */
export type Outcome = 'paid' | 'reverted' | 'taken';

export interface MinedTransaction {
  hash: Hash;
  block: BlockRef;
  mined_at: Date;
  fee: string;
  outcome: Outcome;
}

export type End = 'completed' | 'failed';

interface ReportedSettlement {
  sent: string | null;
  end: End | null;
}

export interface Settlement extends ReportedRow<ReportedSettlement> {
  asset: Asset;
  /** Smallest units. */
  amount: string;
  wallet: Address;
  from: Address;
  nonce: number;
  gas: string;
  /** Newest last. */
  attempts: Attempt[];
  /** Bytes that the node accepted last. */
  broadcast: { hash: Hash; at: Date } | null;
  mined: MinedTransaction | null;
  is_open: boolean;
  accepted_at: Date;
}

/** Final refusal, from which a repeat is answered. */
export interface Refusal {
  _id: string;
  code: string;
  message: string;
}

export interface Outgoing {
  from: Address;
  nonce: number;
  hash: Hash;
  succeeded: boolean;
  fee: bigint;
}

export type Settlements = ReturnType<typeof createSettlements>;

export function createSettlements(db: Db) {
  const rows: Collection<Settlement> = db.collection<Settlement>('settlements');
  const refusals: Collection<Refusal> = db.collection<Refusal>('refusals');
  return {
    ...createReportStore<ReportedSettlement>(db, 'settlements'),
    ensureIndexes: () =>
      rows.createIndexes([
        { key: { from: 1, nonce: 1 }, name: 'nonce', unique: true },
        { key: { is_open: 1, nonce: 1 }, name: 'open' },
        { key: { 'mined.block.number': 1 }, name: 'mined' },
        { key: { 'last.at': 1 }, name: 'reported' },
      ]),
    get: (_id: string, session?: ClientSession) => rows.findOne({ _id }, { session }),
    /** Whether the payer may have sent anything. */
    hasSent: async (): Promise<boolean> => (await rows.findOne({})) !== null,
    refusal: (_id: string, session?: ClientSession) => refusals.findOne({ _id }, { session }),
    refuse: (refusal: Refusal, session: ClientSession) =>
      refusals.updateOne(
        { _id: refusal._id },
        { $setOnInsert: refusal },
        { upsert: true, session },
      ),
    add: (settlement: Settlement, session: ClientSession) =>
      rows.insertOne(settlement, { session }),
    /** In nonce order. */
    waiting: (from: Address) =>
      rows.find({ from, is_open: true, mined: null }).sort({ nonce: 1 }).toArray(),
    countBetween: (from: Address, first: number, next: number) =>
      rows.countDocuments({ from, nonce: { $gte: first, $lt: next } }),
    /**
     * @throws Error while settlements of another account are in progress, which nobody would follow
     */
    assertOwn: async (from: Address): Promise<void> => {
      const other = await rows.findOne({ from: { $ne: from }, is_open: true });
      if (other === null) return;
      throw new Error(
        `Settlements of ${other.from} are in progress: start with its keystore until they have ended.`,
      );
    },
    open: () => rows.find({ is_open: true }).sort({ nonce: 1 }).toArray(),
    markBroadcast: (_id: string, broadcast: { hash: Hash; at: Date }) =>
      rows.updateOne({ _id }, { $set: { broadcast } }),
    /** @returns false if another process has, or a block holds the settlement */
    addAttempt: async ({ _id, attempts }: Settlement, attempt: Attempt): Promise<boolean> => {
      const { modifiedCount } = await rows.updateOne(
        { _id, mined: null, attempts: { $size: attempts.length } },
        { $push: { attempts: attempt } },
      );
      return modifiedCount === 1;
    },
    mine: async (
      outgoing: readonly Outgoing[],
      { mined_at, ...block }: DatedBlock,
      session: ClientSession,
    ) => {
      for (const { from, nonce, hash, succeeded, fee } of outgoing) {
        const ownOutcome: Outcome = succeeded ? 'paid' : 'reverted';
        const isOurs = { $in: [hash, '$attempts.hash'] };
        const outcome = { $cond: [isOurs, ownOutcome, 'taken'] };
        await rows.updateOne(
          { from, nonce },
          [
            {
              $set: { mined: { hash, block, mined_at, fee: String(fee), outcome }, is_open: true },
            },
          ],
          { session },
        );
      }
    },
    revertAbove: (number: number, session: ClientSession) =>
      rows.updateMany(
        { 'mined.block.number': { $gt: number } },
        { $set: { mined: null, broadcast: null, is_open: true } },
        { session },
      ),
    markAnswered: (_id: string, hash: Hash) =>
      rows.updateOne({ _id }, { $set: { 'reported.sent': hash } }),
    /** Closes a settlement whose end is reported, unless its block has changed since. */
    close: ({ _id, mined }: Settlement) =>
      rows.updateOne({ _id, mined }, { $set: { is_open: false } }),
  };
}

export function getTransactionHash({ mined, broadcast }: Settlement): Hash | undefined {
  if (mined !== null && mined.outcome !== 'taken') return mined.hash;
  return broadcast?.hash;
}

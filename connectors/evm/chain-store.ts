import type { ClientSession, Collection, Db } from 'mongodb';
import type { Hash } from 'viem';

export interface BlockRef {
  number: number;
  hash: Hash;
}

export interface DatedBlock extends BlockRef {
  mined_at: Date;
}

interface Cursor extends BlockRef {
  _id: 'cursor';
  /** Absent after the cursor was set by hand, until the next block. */
  mined_at?: Date;
}

interface BoundChain {
  _id: 'chain';
  /** EIP-155. */
  chain_id: number;
}

interface StoredBlock {
  _id: number;
  hash: Hash;
}

/** Longest reorganization that is followed, in blocks. */
const BLOCKS_MAX = 1_024;

export type ChainBook = ReturnType<typeof createChainBook>;

export function createChainBook(db: Db) {
  const cursors: Collection<Cursor> = db.collection<Cursor>('cursor');
  const chains: Collection<BoundChain> = db.collection<BoundChain>('chain');
  const blocks: Collection<StoredBlock> = db.collection<StoredBlock>('blocks');
  /** Advances only from `from`, so that two processes never both do. */
  const advanceCursor = async (
    from: BlockRef,
    to: DatedBlock,
    session: ClientSession,
  ): Promise<boolean> => {
    const { number, hash } = from;
    const filter = { _id: 'cursor', number, hash } as const;
    const { modifiedCount } = await cursors.updateOne(filter, { $set: { ...to } }, { session });
    return modifiedCount === 1;
  };
  return {
    /** @throws Error if it is bound to another chain */
    bind: async (chain_id: number): Promise<void> => {
      await chains.updateOne({ _id: 'chain' }, { $setOnInsert: { chain_id } }, UPSERT);
      const chain = await chains.findOne({ _id: 'chain' });
      if (chain?.chain_id === chain_id) return;
      throw new Error(
        `The database is of chain ${chain?.chain_id}, and chain_id is ${chain_id}: each chain ` +
          'has one of its own, named by `connector`.',
      );
    },
    /** Last block whose facts are stored; null before the first start. */
    cursor: () => cursors.findOne({ _id: 'cursor' }),
    begin: async (at: DatedBlock): Promise<void> => {
      await blocks.updateOne({ _id: at.number }, { $setOnInsert: { hash: at.hash } }, UPSERT);
      await cursors.updateOne({ _id: 'cursor' }, { $setOnInsert: { ...at } }, UPSERT);
    },
    blocksBelow: (number: number) =>
      blocks
        .find({ _id: { $lt: number } })
        .sort({ _id: -1 })
        .limit(BLOCKS_MAX),
    hashAt: async (number: number) => (await blocks.findOne({ _id: number }))?.hash,
    /** @returns false if another process was faster */
    add: async (from: BlockRef, block: DatedBlock, session: ClientSession): Promise<boolean> => {
      if (!(await advanceCursor(from, block, session))) return false;
      const update = { $set: { hash: block.hash } };
      // Another process that started at the same time may have left this block behind.
      await blocks.updateOne({ _id: block.number }, update, { ...UPSERT, session });
      await blocks.deleteMany({ _id: { $lte: block.number - BLOCKS_MAX } }, { session });
      return true;
    },
    /** @returns false if another process was faster */
    leave: async (from: BlockRef, to: DatedBlock, session: ClientSession): Promise<boolean> => {
      if (!(await advanceCursor(from, to, session))) return false;
      await blocks.deleteMany({ _id: { $gt: to.number } }, { session });
      return true;
    },
  };
}

const UPSERT = { upsert: true } as const;

import type { ClientSession, Collection, Db } from 'mongodb';
import type { Hash } from 'viem';

/** Place on the chain: a block and the branch that it is on. */
export interface Place {
  number: number;
  hash: Hash;
}

interface Cursor extends Place {
  _id: 'cursor';
}

/** Chain that the whole database is of. */
interface Bound {
  _id: 'chain';
  /** EIP-155. */
  chain_id: number;
}

interface KeptBlock {
  /** Number of the block. */
  _id: number;
  hash: Hash;
}

/** Blocks that are remembered, so that a reorganisation is undone down to where branches part. */
const BLOCKS_KEPT = 1_024;

export type ChainBook = ReturnType<typeof createChainBook>;

/** Memory of the branch that is followed. */
export function createChainBook(db: Db) {
  const cursors: Collection<Cursor> = db.collection<Cursor>('cursor');
  const chains: Collection<Bound> = db.collection<Bound>('chain');
  const blocks: Collection<KeptBlock> = db.collection<KeptBlock>('blocks');
  /** Moves the cursor on from `from` alone: two processes never both do. */
  const move = async (from: Place, to: Place, session: ClientSession): Promise<boolean> => {
    const { number, hash } = from;
    const filter = { _id: 'cursor', number, hash } as const;
    const { modifiedCount } = await cursors.updateOne(filter, { $set: { ...to } }, { session });
    return modifiedCount === 1;
  };
  return {
    /** Binds the database to a chain, once. @throws Error in words, where it is bound to another */
    bind: async (chain_id: number): Promise<void> => {
      await chains.updateOne({ _id: 'chain' }, { $setOnInsert: { chain_id } }, UPSERT);
      const bound = await chains.findOne({ _id: 'chain' });
      if (bound?.chain_id === chain_id) return;
      throw new Error(
        `The database is of chain ${bound?.chain_id}, and EVM_CHAIN_ID is ${chain_id}: each chain ` +
          'has one of its own, by EVM_CONNECTOR.',
      );
    },
    /** Last block whose facts are kept; null before the first start. */
    cursor: () => cursors.findOne({ _id: 'cursor' }),
    /** Sets the cursor of a first start, once. */
    begin: async (at: Place): Promise<void> => {
      await blocks.updateOne({ _id: at.number }, { $setOnInsert: { hash: at.hash } }, UPSERT);
      await cursors.updateOne({ _id: 'cursor' }, { $setOnInsert: { ...at } }, UPSERT);
    },
    /** Blocks of the followed branch below a number, the newest first. */
    keptBelow: (number: number) =>
      blocks
        .find({ _id: { $lt: number } })
        .sort({ _id: -1 })
        .limit(BLOCKS_KEPT),
    hashAt: async (number: number) => (await blocks.findOne({ _id: number }))?.hash,
    /** Takes the next block in; false where another process has moved on. */
    add: async (from: Place, block: Place, session: ClientSession): Promise<boolean> => {
      if (!(await move(from, block, session))) return false;
      const kept = { $set: { hash: block.hash } };
      // Another process that began at the same time may have left this block behind.
      await blocks.updateOne({ _id: block.number }, kept, { ...UPSERT, session });
      await blocks.deleteMany({ _id: { $lte: block.number - BLOCKS_KEPT } }, { session });
      return true;
    },
    /** Forgets the blocks above `to`; false where another process has moved on. */
    leave: async (from: Place, to: Place, session: ClientSession): Promise<boolean> => {
      if (!(await move(from, to, session))) return false;
      await blocks.deleteMany({ _id: { $gt: to.number } }, { session });
      return true;
    },
  };
}

const UPSERT = { upsert: true } as const;

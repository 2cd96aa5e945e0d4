import type { ClientSession, Collection, Db } from 'mongodb';
import type { Address } from 'viem';
import type { EvmNode } from './node';
import type { Settlements } from './settlements';

interface NonceRow {
  _id: Address;
  next: number;
  /** Lower nonces belong to others. */
  first: number;
  /** Counts refusals, whose transactions conflict with signatures. */
  refusals?: number;
}

export type Nonces = ReturnType<typeof createNonces>;

interface NonceDeps {
  db: Db;
  node: Pick<EvmNode, 'getNonce'>;
  settlements: Pick<Settlements, 'countBetween'>;
  payer: Address;
}

/** Nonces of the paying account, which no other program may use. */
export function createNonces({ db, node, settlements, payer: _id }: NonceDeps) {
  const rows: Collection<NonceRow> = db.collection<NonceRow>('nonces');
  return {
    begin: async (): Promise<void> => {
      if ((await rows.findOne({ _id })) !== null) return;
      const next = await node.getNonce(_id, 'pending');
      await rows.updateOne({ _id }, { $setOnInsert: { next, first: next } }, { upsert: true });
    },
    /**
     * The node must know no transaction that this book lacks, and each unseen nonce must have a
     * settlement, so that none waits forever.
     * @throws Error if they differ: the book is too old or of another chain, or another program
     *   pays too
     */
    check: async (): Promise<void> => {
      const nodeNonce = await node.getNonce(_id, 'pending');
      const { next, first } = (await rows.findOne({ _id })) ?? { next: 0, first: 0 };
      const from = Math.max(nodeNonce, first);
      if (from <= next && (await settlements.countBetween(_id, from, next)) === next - from) return;
      throw new Error(
        `The paying account has sent ${nodeNonce} transactions, and the book knows ${next}: ` +
          'compare them before anything is paid (docs/evm.md).',
      );
    },
    /** Makes a transaction conflict with those that take a nonce. */
    touch: (session: ClientSession) =>
      rows.updateOne({ _id }, { $inc: { refusals: 1 } }, { session }),
    /** An aborted transaction returns the nonce. */
    take: async (session: ClientSession): Promise<number> => {
      const row = await rows.findOneAndUpdate({ _id }, { $inc: { next: 1 } }, { session });
      if (row === null) throw new Error('The nonces have not begun.');
      return row.next;
    },
  };
}

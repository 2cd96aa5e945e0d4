import type { ClientSession, Collection, Db } from 'mongodb';
import type { Address } from 'viem';
import type { EvmNode } from './node';
import type { Settlements } from './settlements';

/** Next nonce of an account that pays. */
interface NonceRow {
  _id: Address;
  next: number;
  /** Nonce that the line began with: those below it are none of this book's. */
  first: number;
}

export type Nonces = ReturnType<typeof createNonces>;

interface NonceDeps {
  db: Db;
  node: Pick<EvmNode, 'getNonce'>;
  settlements: Pick<Settlements, 'countBetween'>;
  payer: Address;
}

/** The one line of nonces of the paying account, which nobody else may use. */
export function createNonces({ db, node, settlements, payer: _id }: NonceDeps) {
  const rows: Collection<NonceRow> = db.collection<NonceRow>('nonces');
  return {
    /** Starts the line where the chain stands, once. */
    begin: async (): Promise<void> => {
      if ((await rows.findOne({ _id })) !== null) return;
      const next = await node.getNonce(_id, 'pending');
      await rows.updateOne({ _id }, { $setOnInsert: { next, first: next } }, { upsert: true });
    },
    /**
     * Checks that book and chain agree: the node knows of no transaction that this book does not, and
     * each nonce that it has not seen yet is a settlement's, so that none is waited for in vain.
     * @throws Error where they do not: the book is older than the chain or of another one, or another
     *   program pays too
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
    /** Takes the next nonce; it is given back when the transaction is not committed. */
    take: async (session: ClientSession): Promise<number> => {
      const row = await rows.findOneAndUpdate({ _id }, { $inc: { next: 1 } }, { session });
      if (row === null) throw new Error('The line of nonces has not begun.');
      return row.next;
    },
  };
}

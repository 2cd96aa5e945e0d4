import type { ClientSession, Collection, Db } from 'mongodb';
import type { Address } from 'viem';
import type { EvmNode } from './node';

/** Next nonce of an account that pays. */
interface Line {
  _id: Address;
  next: number;
}

export type NonceLine = ReturnType<typeof createNonceLine>;

interface NonceDeps {
  db: Db;
  node: Pick<EvmNode, 'nonceOf'>;
  payer: Address;
}

/** The one line of nonces of the paying account, which nobody else may use. */
export function createNonceLine({ db, node, payer: _id }: NonceDeps) {
  const lines: Collection<Line> = db.collection<Line>('nonces');
  return {
    /** Starts the line where the chain stands, once. */
    begin: async (): Promise<void> => {
      if ((await lines.findOne({ _id })) !== null) return;
      const next = await node.nonceOf(_id, 'pending');
      await lines.updateOne({ _id }, { $setOnInsert: { next } }, { upsert: true });
    },
    /**
     * Checks that the chain knows of no transaction that this book does not.
     * @throws Error where it does: the book is older than the chain, or another program pays too
     */
    check: async (): Promise<void> => {
      const used = await node.nonceOf(_id, 'latest');
      const line = await lines.findOne({ _id });
      if (line !== null && used <= line.next) return;
      throw new Error(
        `The paying account has sent ${used} transactions, and the book knows ${line?.next ?? 0}: ` +
          'compare them before anything is paid (docs/evm.md).',
      );
    },
    /** Takes the next nonce; it is given back when the transaction is not committed. */
    take: async (session: ClientSession): Promise<number> => {
      const line = await lines.findOneAndUpdate({ _id }, { $inc: { next: 1 } }, { session });
      if (line === null) throw new Error('The line of nonces has not begun.');
      return line.next;
    },
  };
}

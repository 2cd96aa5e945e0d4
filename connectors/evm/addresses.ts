import type { Collection, Db, MongoClient } from 'mongodb';
import type { Address } from 'viem';
import { inTransaction, isDuplicateKey } from '../../src/base/mongo';
import type { ExtendedKey } from './extended-key';

/** Address of one payment alone. */
export interface PaymentAddress {
  _id: string;
  address: Address;
  asset: string;
  required_confirmations: number;
  /** Fingerprint of the extended key; `index` is below it. */
  key: string;
  index: number;
  given_at: Date;
}

type Terms = Pick<PaymentAddress, 'asset' | 'required_confirmations'>;

interface IndexCounter {
  _id: string;
  next: number;
}

export type Addresses = ReturnType<typeof createAddresses>;

interface AddressDeps {
  mongo: MongoClient;
  db: Db;
  key: ExtendedKey;
  now: () => Date;
}

export function createAddresses({ mongo, db, key, now }: AddressDeps) {
  const rows: Collection<PaymentAddress> = db.collection<PaymentAddress>('addresses');
  const counters: Collection<IndexCounter> = db.collection<IndexCounter>('address_lines');
  const deriveNext = (_id: string, terms: Terms) =>
    inTransaction(mongo, async (session) => {
      const counter = await counters.findOneAndUpdate(
        { _id: key.fingerprint },
        { $inc: { next: 1 } },
        { upsert: true, returnDocument: 'after', session },
      );
      if (counter === null) throw new Error('The next address could not be taken.');
      const index = counter.next - 1;
      const derivation = { key: key.fingerprint, index, given_at: now() };
      const row = { _id, address: key.addressAt(index), ...terms, ...derivation };
      await rows.insertOne(row, { session });
      return row;
    });
  return {
    ensureIndexes: () =>
      rows.createIndexes([{ key: { address: 1 }, name: 'address', unique: true }]),
    get: (_id: string) => rows.findOne({ _id }),
    /** Assigns the payment's address; a repeat returns the existing one with its first terms. */
    give: async (_id: string, terms: Terms): Promise<PaymentAddress> => {
      const existing = await rows.findOne({ _id });
      if (existing !== null) return existing;
      try {
        return await deriveNext(_id, terms);
      } catch (error) {
        const other = isDuplicateKey(error) ? await rows.findOne({ _id }) : null;
        if (other === null) throw error;
        return other;
      }
    },
    among: (addresses: readonly Address[]): Promise<PaymentAddress[]> =>
      addresses.length === 0
        ? Promise.resolve([])
        : rows.find({ address: { $in: [...addresses] } }).toArray(),
  };
}

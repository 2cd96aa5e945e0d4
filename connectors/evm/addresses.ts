import type { Collection, Db, MongoClient } from 'mongodb';
import type { Address } from 'viem';
import { inTransaction, isDuplicateKey } from '../../src/mongo';
import type { ExtendedKey } from './extended-key';
import type { Passing } from './steps';

/** Address that was given to one payment, and to no other. */
export interface GivenAddress {
  /** The payment's id. */
  _id: string;
  /** With its checksum. */
  address: Address;
  asset: string;
  /** Blocks that the product was told to count; absent from rows of earlier versions. */
  required_confirmations?: number;
  /** Fingerprint of the extended key, and the index below it. */
  key: string;
  index: number;
  given_at: Date;
}

/** Terms on which an address is given. */
type Terms = Required<Pick<GivenAddress, 'asset' | 'required_confirmations'>>;

/** Next index of an extended key. */
interface Line {
  _id: string;
  next: number;
}

export type Addresses = ReturnType<typeof createAddresses>;

interface AddressDeps {
  mongo: MongoClient;
  db: Db;
  key: ExtendedKey;
  pass: Passing;
  now: () => Date;
}

export function createAddresses({ mongo, db, key, pass, now }: AddressDeps) {
  const given: Collection<GivenAddress> = db.collection<GivenAddress>('addresses');
  const lines: Collection<Line> = db.collection<Line>('address_lines');
  const take = (_id: string, terms: Terms) =>
    inTransaction(mongo, async (session) => {
      const line = await lines.findOneAndUpdate(
        { _id: key.fingerprint },
        { $inc: { next: 1 } },
        { upsert: true, returnDocument: 'after', session },
      );
      if (line === null) throw new Error('The line of addresses could not be moved on.');
      const index = line.next - 1;
      const place = { key: key.fingerprint, index, given_at: now() };
      const row = { _id, address: key.addressAt(index), ...terms, ...place };
      pass('address derived');
      await given.insertOne(row, { session });
      return row;
    });
  return {
    ensureIndexes: () =>
      given.createIndexes([{ key: { address: 1 }, name: 'address', unique: true }]),
    get: (_id: string) => given.findOne({ _id }),
    /** Gives a payment its address; a repeat gives the one that it has, on the terms that it has. */
    give: async (_id: string, terms: Terms): Promise<GivenAddress> => {
      const known = await given.findOne({ _id });
      if (known !== null) return known;
      try {
        return await take(_id, terms);
      } catch (error) {
        const other = isDuplicateKey(error) ? await given.findOne({ _id }) : null;
        if (other === null) throw error;
        return other;
      }
    },
    /** Those of `addresses` that were given to a payment. */
    among: (addresses: readonly Address[]): Promise<GivenAddress[]> =>
      addresses.length === 0
        ? Promise.resolve([])
        : given.find({ address: { $in: [...addresses] } }).toArray(),
  };
}

import type { ClientSession, Db } from 'mongodb';
import { indexBuilder } from '../base/mongo-indexes';
import type { Numbering } from '../domain/banks/statement';
import { omitUndefined } from '../domain/defined';

/** Account that a connector's bank keeps for us. */
export interface BankAccountDocument {
  /** `ba_{UUID}`: its book is `{_id}:{live|sandbox}:{currency}`. */
  _id: string;
  connector: string;
  livemode: boolean;
  /** IBAN without spaces, in upper case; or another id of the account, as the bank writes it. */
  iban: string;
  /** ISO 4217. */
  currency: string;
  /** ISO 8601, ms. */
  created_at: string;
  /** Null before the first statement; minor units. */
  closing: { amount: number; day: string; statement_id: string } | null;
  /** Absent until it is learned, or an operator says it. */
  numbering?: { as: Numbering; learned: boolean };
  /** Numberings that fit the first statements, and how many these are. */
  learning?: { statements: number; fitting: Numbering[] };
  /** Days for which a line may match no entry; by default `OPEN_DAYS`. */
  open_days?: number;
  /** Minor units by which a line may differ from the one entry that it names; 0 by default. */
  tolerance?: number;
  /** Minor units of a day that its bank does not explain, and that an operator lets be a line. */
  accepted?: { day: string; amount: number };
  /** Statement whose lines are being stored. */
  importing?: { _id: string; statement_id: string };
}

export type BankAccountChange = Partial<
  Pick<BankAccountDocument, 'numbering' | 'learning' | 'open_days' | 'tolerance' | 'accepted'>
>;

type BankAccountKey = Pick<BankAccountDocument, 'connector' | 'livemode' | 'iban' | 'currency'>;

const ACCOUNTS_MAX = 1_000;

export function createBankAccountStore(db: Db) {
  const accounts = db.collection<BankAccountDocument>('bank_accounts');
  return {
    ensureIndexes: indexBuilder(accounts, [
      { key: { connector: 1, livemode: 1, iban: 1, currency: 1 }, name: 'account', unique: true },
    ]),
    /** @throws MongoServerError duplicate key when it exists */
    insert: (account: BankAccountDocument, session: ClientSession) =>
      accounts.insertOne(account, { session }),
    get: (id: string, session?: ClientSession) => accounts.findOne({ _id: id }, { session }),
    /** @returns false when another statement has begun, or ended, since */
    beginImport: async (
      _id: string,
      closing: BankAccountDocument['closing'],
      importing: NonNullable<BankAccountDocument['importing']>,
      session: ClientSession,
    ): Promise<boolean> => {
      const filter = { _id, closing, importing: { $exists: false } };
      const update = { $set: { importing } };
      return (await accounts.updateOne(filter, update, { session })).matchedCount === 1;
    },
    /** @param closing new end; undefined: the statement is not the last one */
    endImport: (
      _id: string,
      statement: string,
      closing: BankAccountDocument['closing'] | undefined,
      session: ClientSession,
    ) =>
      accounts.updateOne(
        { _id, 'importing._id': statement },
        { $set: omitUndefined({ closing }), $unset: { importing: '' } },
        { session },
      ),
    change: async (
      _id: string,
      change: BankAccountChange,
      session: ClientSession,
    ): Promise<void> => {
      await accounts.updateOne({ _id }, { $set: change }, { session });
    },
    /** Lists the oldest first. */
    list: (filter: Partial<BankAccountKey> = {}, session?: ClientSession) =>
      accounts
        .find(filter, { session })
        .sort({ created_at: 1, _id: 1 })
        .limit(ACCOUNTS_MAX)
        .toArray(),
  };
}

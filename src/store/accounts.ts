import type { ClientSession, Collection, Db } from 'mongodb';
import { type MissingIndexes, makeIndexes } from '../base/mongo-indexes';
import { type Env, toEnv } from '../domain/environment';
import type { FeeName, PayoutFees } from '../domain/payout/fees';
import { isRailId, type RailId } from '../domain/payout/rails';
import type { Encrypted } from '../encryption/encrypter';
import { createCache } from './cache';

/** A merchant. */
export interface AccountDocument {
  _id: string;
  name: string;
  /** Crypto endpoints and events. */
  crypto: boolean;
  enabled_methods: string[];
  /** Rails that the account has not; absent: none, so it has them all. */
  disabled_rails?: RailId[];
  /** Minor units of the payout's own currency; 0 where a rail has none. */
  payout_fees?: PayoutFees;
  /** Data keys under which payers are sealed; each is made when its first payer is. */
  payer_keys?: Partial<Record<Env, PayerKey>>;
  /** Months for which payers are kept; absent: the usual time. */
  payer_data_months?: number;
  /** Place in the list of payments up to which payers are blanked. */
  payers_blanked?: Partial<Record<Env, string>>;
  /** Minor units that it may pay out in a day, by currency; absent: any. */
  payout_limits?: Record<string, number>;
  /** Since when it may only read, and why; absent: it may write. */
  frozen?: { at: string; reason: string };
  /** Login of the account's first owner; unique over all accounts. */
  dashboard: { email: string };
  created_at: string;
}

/** Data key, sealed for `payerKeyOwner`. */
export interface PayerKey {
  sealed: Encrypted;
  /** Key of the ring that sealed it. */
  kid: string;
}

/** Owner that the data key of payers is sealed for. */
export function payerKeyOwner(owner: { account_id: string; livemode: boolean }): string {
  return `payers/${owner.account_id}/${toEnv(owner.livemode)}`;
}

export type AccountStore = ReturnType<typeof createAccountStore>;

export function createAccountStore(db: Db, cacheMs = 0) {
  const cache = createCache<AccountDocument>(cacheMs);
  const accounts: Collection<AccountDocument> = db.collection<AccountDocument>('accounts');
  return {
    ensureIndexes: (missing?: MissingIndexes) =>
      makeIndexes(
        accounts,
        [
          { key: { 'dashboard.email': 1 }, name: 'dashboard_email', unique: true },
          { key: { created_at: -1, _id: 1 }, name: 'created' },
        ],
        missing,
      ),
    insert: (account: AccountDocument, session?: ClientSession) =>
      accounts.insertOne(account, { session }),
    get: (id: string, session?: ClientSession) => accounts.findOne({ _id: id }, { session }),
    /** Gives an account of up to 2 seconds ago: not for limits of money. @see src/store/cache.ts */
    getCached: (id: string) => cache.get(id, () => accounts.findOne({ _id: id })),
    /** Reads an account for `getCached`, too. */
    refresh: (id: string) => cache.refresh(id, () => accounts.findOne({ _id: id })),
    /** Newest first. */
    list: (limit: number) =>
      accounts.find().sort({ created_at: -1, _id: 1 }).limit(limit).toArray(),
    /** Keeps the environment's data key, unless it has one; gives the account as it is then. */
    storePayerKey: async (id: string, env: Env, key: PayerKey): Promise<AccountDocument | null> => {
      const field = `payer_keys.${env}`;
      await accounts.updateOne(
        { _id: id, [field]: { $exists: false } },
        { $set: { [field]: key } },
      );
      return await accounts.findOne({ _id: id });
    },
    /** Accounts by their ids, after one of them; '' for the first page. */
    page: (after: string, limit: number) =>
      accounts
        .find({ _id: { $gt: after } })
        .sort({ _id: 1 })
        .limit(limit)
        .toArray(),
    /** Replaces a sealed data key while it is there unchanged. */
    reencryptPayerKey: (id: string, env: Env, before: Encrypted, key: PayerKey) =>
      accounts.updateOne(
        { _id: id, [`payer_keys.${env}.sealed`]: before },
        { $set: { [`payer_keys.${env}`]: key } },
      ),
    setPayerDataMonths: (id: string, payer_data_months: number, session?: ClientSession) =>
      accounts.updateOne({ _id: id }, { $set: { payer_data_months } }, { session }),
    setPayersRedacted: (id: string, env: Env, position: string) =>
      accounts.updateOne({ _id: id }, { $max: { [`payers_blanked.${env}`]: position } }),
    setCrypto: (id: string, crypto: boolean, session?: ClientSession) =>
      accounts.findOneAndUpdate(
        { _id: id },
        { $set: { crypto } },
        { returnDocument: 'after', session },
      ),
    enableMethod: (id: string, method: string, session?: ClientSession) =>
      accounts.findOneAndUpdate(
        { _id: id },
        { $addToSet: { enabled_methods: method } },
        { returnDocument: 'after', session },
      ),
    disableMethod: (id: string, method: string, session?: ClientSession) =>
      accounts.findOneAndUpdate(
        { _id: id },
        { $pull: { enabled_methods: method } },
        { returnDocument: 'after', session },
      ),
    enableRail: (id: string, rail: RailId, session?: ClientSession) =>
      accounts.findOneAndUpdate(
        { _id: id },
        { $pull: { disabled_rails: rail } },
        { returnDocument: 'after', session },
      ),
    disableRail: (id: string, rail: RailId, session?: ClientSession) =>
      accounts.findOneAndUpdate(
        { _id: id },
        { $addToSet: { disabled_rails: rail } },
        { returnDocument: 'after', session },
      ),
    /** @param limit minor units; null removes it */
    setPayoutLimit: (id: string, currency: string, limit: number | null, session?: ClientSession) =>
      accounts.findOneAndUpdate(
        { _id: id },
        limit === null
          ? { $unset: { [`payout_limits.${currency}`]: '' } }
          : { $set: { [`payout_limits.${currency}`]: limit } },
        { returnDocument: 'after', session },
      ),
    /** Freezes it, unless it is frozen already. */
    freeze: (id: string, frozen: { at: string; reason: string }, session: ClientSession) =>
      accounts.updateOne(
        { _id: id, frozen: { $exists: false } },
        { $set: { frozen } },
        { session },
      ),
    unfreeze: (id: string, session: ClientSession) =>
      accounts.updateOne(
        { _id: id, frozen: { $exists: true } },
        { $unset: { frozen: '' } },
        { session },
      ),
    /** @param fee minor units of the payout's currency; null removes it, 0 that of a whole rail */
    setPayoutFee: (id: string, name: FeeName, fee: number | null, session?: ClientSession) =>
      accounts.findOneAndUpdate(
        { _id: id },
        fee === null || (fee === 0 && isRailId(name))
          ? { $unset: { [`payout_fees.${name}`]: '' } }
          : { $set: { [`payout_fees.${name}`]: fee } },
        { returnDocument: 'after', session },
      ),
  };
}

import { Binary, type ClientSession, type Db, type UpdateFilter } from 'mongodb';

import { indexBuilder } from '../base/mongo-indexes';
import { type Env, toEnv } from '../domain/environment';
import type { FeeBearer } from '../domain/merchants/acquirer-fee';
import type { Brand } from '../domain/merchants/brand';
import type { ClockTarget, StoredClock } from '../domain/merchants/clock';
import type { FeeName, PayoutFees } from '../domain/payout/payout';
import { isRailId, type RailId } from '../domain/payout/rails';
import type { Encrypted } from '../encryption/encrypter';
import { createCache } from './cache';
import { readPage } from './list';

export interface AccountDocument {
  _id: string;
  name: string;
  crypto: boolean;
  enabled_methods: string[];
  disabled_rails?: RailId[];
  /** Minor units of the payout's currency; 0 where a rail has none. */
  payout_fees?: PayoutFees;
  /** The first is created for the first payer. */
  payer_keys?: Partial<Record<Env, PayerKeys>>;
  /** Absent: the default time. */
  payer_data_months?: number;
  /** Position in the list of payments. */
  payers_redacted_to?: Partial<Record<Env, string>>;
  /** Minor units per day, by currency; absent: no limit. */
  payout_limits?: Record<string, number>;
  /** Debt in minor units with which it still pays out, by currency; absent: none. */
  owed_limits?: Record<string, number>;
  /** Minor units above which a live refund in the dashboard has a step-up; absent: none has. */
  refund_step_up?: Record<string, number>;
  /** Payouts whose payee was not verified wait for an operator when their file was withdrawn. */
  hold_unverified?: boolean;
  /** Percent by which a crypto payment may be short and still be received; absent: 0. */
  crypto_tolerance?: number;
  /** Bears what acquirers keep; absent: the service. */
  acquirer_fee?: FeeBearer;
  /** Absent before it was first moved. */
  clock?: StoredClock;
  brand?: Partial<Record<Env, Brand>>;
  /** Set while the account may only read. */
  frozen?: { at: string; reason: string };
  dashboard: { email: string };
  created_at: string;
}

export interface PayerKey {
  id: string;
  ciphertext: Encrypted;
  /** Key of the key ring that encrypted it. */
  kid: string;
}

export interface PayerKeys extends PayerKey {
  /** Stored until they hold no payer. */
  earlier?: (PayerKey & { replaced_at: string })[];
}

export function payerKeyOwner(owner: { account_id: string; livemode: boolean }): string {
  return `payers/${owner.account_id}/${toEnv(owner.livemode)}`;
}

export type AccountStore = ReturnType<typeof createAccountStore>;

export function createAccountStore(db: Db, cacheMs = 0) {
  const cache = createCache<AccountDocument>(cacheMs);
  const accounts = db.collection<AccountDocument>('accounts');
  const change = (id: string, update: UpdateFilter<AccountDocument>, session?: ClientSession) =>
    accounts.findOneAndUpdate({ _id: id }, update, { returnDocument: 'after', session });
  const setOrRemove = (id: string, field: string, value: number | null, session?: ClientSession) =>
    change(
      id,
      value === null ? { $unset: { [field]: '' } } : { $set: { [field]: value } },
      session,
    );
  return {
    ensureIndexes: indexBuilder(accounts, [
      { key: { 'dashboard.email': 1 }, name: 'dashboard_email', unique: true },
      { key: { created_at: -1, _id: 1 }, name: 'created' },
    ]),
    insert: (account: AccountDocument, session?: ClientSession) =>
      accounts.insertOne(account, { session }),
    get: (id: string, session?: ClientSession) => accounts.findOne({ _id: id }, { session }),
    /** May be 2 seconds old: not for limits of money. @see src/store/cache.ts */
    getCached: (id: string) => cache.get(id, () => accounts.findOne({ _id: id })),
    refresh: (id: string) => cache.refresh(id, () => accounts.findOne({ _id: id })),
    list: (limit: number) =>
      accounts.find().sort({ created_at: -1, _id: 1 }).limit(limit).toArray(),
    /** Keeps a stored key. @returns the account after the write */
    storePayerKey: async (id: string, env: Env, key: PayerKey): Promise<AccountDocument | null> => {
      const field = `payer_keys.${env}`;
      await accounts.updateOne(
        { _id: id, [field]: { $exists: false } },
        { $set: { [field]: key } },
      );
      return await accounts.findOne({ _id: id });
    },
    page: (after: string, limit: number) => readPage<AccountDocument>(accounts, after, limit),
    /** Does nothing when the current key was replaced before. */
    replacePayerKey: (
      id: string,
      env: Env,
      before: Encrypted,
      next: PayerKey,
      replaced_at: string,
    ) => {
      const field = `payer_keys.${env}`;
      const [key, ciphertext, kid] = [`$${field}.id`, `$${field}.ciphertext`, `$${field}.kid`];
      const replaced = { id: key, ciphertext, kid, replaced_at };
      const earlier = { $concatArrays: [{ $ifNull: [`$${field}.earlier`, []] }, [replaced]] };
      return accounts.updateOne({ _id: id, [`${field}.ciphertext`]: before }, [
        { $set: { [field]: { ...next, earlier } } },
      ]);
    },
    reencryptPayerKey: async (
      id: string,
      env: Env,
      before: Encrypted,
      key: Omit<PayerKey, 'id'>,
    ) => {
      const write = (path: string, fields: string) =>
        accounts.updateOne(
          { _id: id, [`${path}.ciphertext`]: before },
          { $set: { [`${fields}.ciphertext`]: key.ciphertext, [`${fields}.kid`]: key.kid } },
        );
      const [current, earlier] = [`payer_keys.${env}`, `payer_keys.${env}.earlier`];
      const { modifiedCount } = await write(earlier, `${earlier}.$`);
      return modifiedCount > 0 ? { modifiedCount } : await write(current, current);
    },
    removeEarlierPayerKeys: (id: string, env: Env, current: Encrypted) =>
      accounts.updateOne(
        { _id: id, [`payer_keys.${env}.ciphertext`]: current },
        { $unset: { [`payer_keys.${env}.earlier`]: '' } },
      ),
    setPayerDataMonths: (id: string, payer_data_months: number, session?: ClientSession) =>
      accounts.updateOne({ _id: id }, { $set: { payer_data_months } }, { session }),
    setPayersRedacted: (id: string, env: Env, position: string) =>
      accounts.updateOne({ _id: id }, { $max: { [`payers_redacted_to.${env}`]: position } }),
    setCrypto: (id: string, crypto: boolean, session?: ClientSession) =>
      change(id, { $set: { crypto } }, session),
    /** Lists which of them hold payouts to who was not verified. */
    listHolding: async (ids: readonly string[]): Promise<string[]> =>
      (await accounts.find({ _id: { $in: [...ids] }, hold_unverified: true }).toArray()).map(
        ({ _id }) => _id,
      ),
    setCryptoTolerance: (id: string, crypto_tolerance: number, session?: ClientSession) =>
      change(id, { $set: { crypto_tolerance } }, session),
    setAcquirerFee: (id: string, acquirer_fee: FeeBearer, session?: ClientSession) =>
      change(id, { $set: { acquirer_fee } }, session),
    setHoldUnverified: (id: string, hold_unverified: boolean, session?: ClientSession) =>
      change(id, { $set: { hold_unverified } }, session),
    /** Methods are off until they are listed, rails on. */
    enable: (id: string, method: string, isOn: boolean, session?: ClientSession) => {
      const list = isRailId(method) ? { disabled_rails: method } : { enabled_methods: method };
      const isListed = isRailId(method) !== isOn;
      return change(id, isListed ? { $addToSet: list } : { $pull: list }, session);
    },
    /** @param limit minor units; null removes it */
    setLimit: (
      id: string,
      name: `${'payout_limits' | 'owed_limits' | 'refund_step_up'}.${string}`,
      limit: number | null,
      session?: ClientSession,
    ) => setOrRemove(id, name, limit, session),
    /** A repeat changes nothing. */
    beginAdvance: async (
      id: string,
      target: ClockTarget,
    ): Promise<Pick<StoredClock, 'offset_ms'>> => {
      const offset_ms = { $ifNull: ['$clock.offset_ms', 0] };
      const account = await accounts.findOneAndUpdate(
        { _id: id },
        [{ $set: { clock: { offset_ms, target } } }],
        { returnDocument: 'after' },
      );
      return { offset_ms: account?.clock?.offset_ms ?? 0 };
    },
    /** Reads by how many ms each sandbox clock was advanced. */
    readOffsets: async (): Promise<Map<string, number>> => {
      const rows = accounts.find({ 'clock.offset_ms': { $gt: 0 } }, { projection: { clock: 1 } });
      return new Map((await rows.toArray()).map(({ _id, clock }) => [_id, clock?.offset_ms ?? 0]));
    },
    /** The clock never goes back. */
    storeOffset: async (id: string, offset_ms: number): Promise<void> => {
      await accounts.updateOne({ _id: id }, { $max: { 'clock.offset_ms': offset_ms } });
      await cache.refresh(id, () => accounts.findOne({ _id: id }));
    },
    /** A repeat changes nothing. */
    endAdvance: async (id: string, behind: string[]): Promise<void> => {
      await accounts.updateOne(
        { _id: id, 'clock.target': { $exists: true } },
        { $set: { 'clock.behind': behind }, $unset: { 'clock.target': '' } },
      );
    },
    setBrand: (id: string, env: Env, brand: Brand, session: ClientSession) =>
      change(id, { $set: { [`brand.${env}`]: brand } }, session),
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
    /** @param fee minor units; null removes it, and so does 0 for a whole rail */
    setPayoutFee: (id: string, name: FeeName, fee: number | null, session?: ClientSession) =>
      setOrRemove(id, `payout_fees.${name}`, fee === 0 && isRailId(name) ? null : fee, session),
  };
}

interface LogoDocument {
  /** Account, environment and hash. */
  _id: string;
  account_id: string;
  env: Env;
  hash: string;
  image: Binary;
  replaced_at?: Date;
}

interface LogoOwner {
  account_id: string;
  livemode: boolean;
}

/** Open or cached pages may still load a replaced logo. */
const REPLACED_SECONDS = 86_400;

export function createLogoStore(db: Db) {
  const logos = db.collection<LogoDocument>('brand_logos');
  return {
    ensureIndexes: indexBuilder(logos, [
      { key: { hash: 1 }, name: 'hash' },
      { key: { replaced_at: 1 }, name: 'replaced', expireAfterSeconds: REPLACED_SECONDS },
    ]),
    read: async (hash: string): Promise<Buffer | null> => {
      const logo = await logos.findOne({ hash }, { projection: { image: 1 } });
      return logo === null ? null : Buffer.from(logo.image.buffer);
    },
    store: (
      { account_id, livemode }: LogoOwner,
      { hash, image }: { hash: string; image: Uint8Array },
      session: ClientSession,
    ) => {
      const env = toEnv(livemode);
      return logos.updateOne(
        { _id: `${account_id}/${env}/${hash}` },
        {
          $set: { account_id, env, hash, image: new Binary(image) },
          $unset: { replaced_at: '' },
        },
        { upsert: true, session },
      );
    },
    replace: (
      { account_id, livemode }: LogoOwner,
      hash: string,
      replaced_at: Date,
      session: ClientSession,
    ) =>
      logos.updateOne(
        { _id: `${account_id}/${toEnv(livemode)}/${hash}` },
        { $set: { replaced_at } },
        { session },
      ),
  };
}

import type { Collection, Db, MongoClient } from 'mongodb';
import type { Address } from 'viem';
import type { Logger } from '../../src/base/log';
import { abandon, inTransaction, isDuplicateKey } from '../../src/base/mongo';
import type { Assets } from './assets';
import type { ExtendedKey } from './keys';
import type { EvmNode } from './node';

export interface PaymentAddress {
  _id: string;
  address: Address;
  asset: string;
  required_confirmations: number;
  /** Smallest units. */
  amount_due: string;
  /** Fingerprint of the extended key; `index` is below it. */
  key: string;
  index: number;
  assigned_at: Date;
  /** At first, the end of the window. Null after the last comparison. */
  check_at: Date | null;
  checks: number;
}

type Terms = Pick<PaymentAddress, 'asset' | 'required_confirmations' | 'amount_due' | 'check_at'>;

interface IndexCounter {
  _id: string;
  next: number;
}

export type Addresses = ReturnType<typeof createAddresses>;

interface AddressDeps {
  mongo: MongoClient;
  db: Db;
  key: ExtendedKey;
  node: Pick<EvmNode, 'getNonce' | 'getBalance' | 'getTokenBalance'>;
  assets: Assets;
  findTaken: (addresses: readonly Address[]) => Promise<string[]>;
  now: () => Date;
  log: Pick<Logger, 'warn'>;
}

/** Look-ahead at the service, and on the chain (BIP-44). */
const AHEAD = 100;
const AHEAD_ON_CHAIN = 20;

export function createAddresses(deps: AddressDeps) {
  const { mongo, db, key, node, findTaken, now, log } = deps;
  const { usdc } = deps.assets;
  const rows: Collection<PaymentAddress> = db.collection<PaymentAddress>('addresses');
  const counters: Collection<IndexCounter> = db.collection<IndexCounter>('address_counters');
  const deriveNext = (_id: string, terms: Terms) =>
    inTransaction(mongo, async (session) => {
      const counter = await counters.findOneAndUpdate(
        { _id: key.fingerprint },
        { $inc: { next: 1 } },
        { upsert: true, returnDocument: 'after', session },
      );
      if (counter === null) throw new Error('The next address could not be taken.');
      const index = counter.next - 1;
      const address = key.addressAt(index);
      if ((await findTaken([address])).length > 0) return await abandon(session);
      const derivation = { key: key.fingerprint, index, assigned_at: now(), checks: 0 };
      const row = { _id, address, ...terms, ...derivation };
      await rows.insertOne(row, { session });
      return row;
    });
  /** Skips used indexes, which a restored database does not know. */
  const passUsed = async (): Promise<boolean> => {
    const next = (await counters.findOne({ _id: key.fingerprint }))?.next ?? 0;
    const ahead = Array.from({ length: AHEAD }, (_, i) => key.addressAt(next + i));
    const used = new Set<string>(await findTaken(ahead));
    for (const address of ahead.slice(0, AHEAD_ON_CHAIN)) {
      const [sent, wei, tokens] = await Promise.all([
        node.getNonce(address, 'latest'),
        node.getBalance(address),
        usdc === undefined ? 0n : node.getTokenBalance(usdc, address),
      ]);
      if (sent > 0 || wei > 0n || tokens > 0n) used.add(address);
    }
    const last = ahead.findLastIndex((address) => used.has(address));
    if (last < 0) return false;
    const change = { $max: { next: next + last + 1 } };
    await counters.updateOne({ _id: key.fingerprint }, change, { upsert: true });
    log.warn({}, `addresses from ${next} to ${next + last} are in use, and are passed`);
    return true;
  };
  const begin = async (): Promise<void> => {
    while (await passUsed());
  };
  return {
    ensureIndexes: () =>
      rows.createIndexes([
        { key: { address: 1 }, name: 'address', unique: true },
        { key: { check_at: 1 }, name: 'check' },
      ]),
    /**
     * Continues after the highest index that the service knows or the chain shows used.
     * @throws NodeFailure
     */
    begin,
    get: (_id: string) => rows.findOne({ _id }),
    /** A repeat returns the existing address with its first terms. */
    give: async (_id: string, terms: Terms): Promise<PaymentAddress> => {
      const existing = await rows.findOne({ _id });
      if (existing !== null) return existing;
      try {
        const row = await deriveNext(_id, terms);
        if (row !== null) return row;
        // The database is older than the service.
        await begin();
        const next = await deriveNext(_id, terms);
        if (next === null) throw new Error('The next address belongs to another payment.');
        return next;
      } catch (error) {
        const other = isDuplicateKey(error) ? await rows.findOne({ _id }) : null;
        if (other === null) throw error;
        return other;
      }
    },
    isAnyAwaited: async (at: Date): Promise<boolean> =>
      (await rows.findOne({ check_at: { $gt: at }, checks: 0 })) !== null,
    dueForCheck: (at: Date, limit: number) =>
      rows
        .find({ check_at: { $lte: at } })
        .sort({ check_at: 1 })
        .limit(limit)
        .toArray(),
    checkAgain: ({ _id, check_at, checks }: PaymentAddress, afterMs: number) => {
      const isLast = check_at === null || checks > 0;
      const next = isLast ? null : new Date(check_at.getTime() + afterMs);
      const change = { $set: { check_at: next }, $inc: { checks: 1 } };
      return rows.updateOne({ _id, checks }, change);
    },
    among: (addresses: readonly Address[]): Promise<PaymentAddress[]> =>
      addresses.length === 0
        ? Promise.resolve([])
        : rows.find({ address: { $in: [...addresses] } }).toArray(),
  };
}

import type { ClientSession, Db } from 'mongodb';
import { indexBuilder } from '../base/mongo-indexes';
import type { Network } from '../domain/crypto/assets';
import { readPage } from './list';

export interface WalletDocument {
  /** `{account_id}:{live|sandbox}:{network}` */
  _id: string;
  account_id: string;
  livemode: boolean;
  network: Network;
  address: string;
  /** ISO 8601; nothing is settled before it. */
  counts_from: string;
  previous: string | null;
  set_at: string;
}

function walletId(account_id: string, livemode: boolean, network: string): string {
  return `${account_id}:${livemode ? 'live' : 'sandbox'}:${network}`;
}

/** Returns the address in effect, if any: a replaced one is void, since its key may be lost. */
export function addressAt(wallet: WalletDocument | null, now: string): string | null {
  return wallet !== null && now >= wallet.counts_from ? wallet.address : null;
}

export function describeNoWallet(wallet: WalletDocument | null, network: string): string {
  if (wallet === null) return `No wallet on ${network} is registered.`;
  return `Settlements on ${network} pause until the new wallet takes effect at ${wallet.counts_from}.`;
}

export function createWalletStore(db: Db) {
  const wallets = db.collection<WalletDocument>('wallets');
  return {
    ensureIndexes: indexBuilder(wallets, [
      { key: { account_id: 1, livemode: 1 }, name: 'account' },
    ]),
    get: (account_id: string, livemode: boolean, network: string, session?: ClientSession) =>
      wallets.findOne({ _id: walletId(account_id, livemode, network) }, { session }),
    listForAccount: (account_id: string, livemode: boolean) =>
      wallets.find({ account_id, livemode }).sort({ network: 1 }).toArray(),
    /**
     * Registers an address from `counts_from` on; the same address again changes nothing.
     * @throws MongoServerError duplicate key when another call registers the first one at the same
     * time
     */
    set: async (
      wallet: Pick<WalletDocument, 'account_id' | 'livemode' | 'network' | 'address'>,
      { now, counts_from }: { now: string; counts_from: string },
      session?: ClientSession,
    ): Promise<WalletDocument> => {
      const { account_id, livemode, network, address } = wallet;
      const counting = { $cond: [{ $lte: ['$counts_from', now] }, '$address', '$previous'] };
      const isSame = { $eq: ['$address', address] };
      const unlessSame = (field: string, value: unknown) => ({
        $cond: [isSame, `$${field}`, value],
      });
      const stored = await wallets.findOneAndUpdate(
        { _id: walletId(account_id, livemode, network) },
        [
          {
            $set: {
              ...{ account_id, livemode, network },
              previous: unlessSame('previous', { $ifNull: [counting, null] }),
              counts_from: unlessSame('counts_from', counts_from),
              set_at: unlessSame('set_at', now),
              address,
            },
          },
        ],
        { upsert: true, returnDocument: 'after', session },
      );
      if (stored === null) throw new Error('An upsert gave no wallet.');
      return stored;
    },
    page: (after: string, limit: number) => readPage<WalletDocument>(wallets, after, limit),
  };
}

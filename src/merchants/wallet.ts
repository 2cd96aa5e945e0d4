import type { MongoClient } from 'mongodb';
import { ActFailure } from '../domain/act-failure';
import type { Network } from '../domain/crypto';
import { addressFault } from '../keys/wallet-address';
import { inTransaction, isDuplicateKey } from '../mongo';
import type { Stores } from '../store';
import type { Audit } from '../store/audit';
import { addressAt, type WalletDocument } from '../store/wallets';

/** Time after which a new wallet counts on live, so that a stolen login moves nothing at once. */
const LIVE_DELAY_MS = 24 * 60 * 60_000;
const RACES_MAX = 3;

export interface WalletDeps {
  mongo: MongoClient;
  stores: Pick<Stores, 'wallets'>;
  audit: Audit;
  now: () => Date;
}

/** Wish for the wallet of an account that exists. */
export interface NewWallet {
  account_id: string;
  livemode: boolean;
  network: Network;
  address: string;
}

/** Wallet as people see it. */
export interface ShownWallet {
  network: string;
  address: string;
  /** ISO 8601; before it `previous` counts. */
  counts_from: string;
  /** Address that settlements go to now; null where none counts. */
  counting: string | null;
  previous: string | null;
}

/**
 * Registers the wallet of an account on one network; the same again changes nothing.
 * @throws ActFailure `address_invalid` where its checksum is wrong
 */
export async function setWallet(deps: WalletDeps, wish: NewWallet): Promise<ShownWallet> {
  const fault = addressFault(wish.network, wish.address, wish.livemode);
  if (fault !== undefined) throw new ActFailure('address_invalid', fault);
  const at = deps.now();
  for (let race = 1; ; race += 1) {
    try {
      return shown(await setAudited(deps, wish, at), at);
    } catch (error) {
      if (race === RACES_MAX || !isDuplicateKey(error)) throw error;
    }
  }
}

/** Wallets of an account in one environment. */
export async function walletsOf(
  { stores, now }: Pick<WalletDeps, 'stores' | 'now'>,
  account_id: string,
  livemode: boolean,
): Promise<ShownWallet[]> {
  const found = await stores.wallets.ofAccount(account_id, livemode);
  return found.map((wallet) => shown(wallet, now()));
}

async function setAudited(
  { mongo, stores, audit }: WalletDeps,
  wish: NewWallet,
  at: Date,
): Promise<WalletDocument> {
  const { account_id, livemode, network, address } = wish;
  const counts_from = new Date(at.getTime() + (livemode ? LIVE_DELAY_MS : 0)).toISOString();
  return await inTransaction(mongo, async (session) => {
    const before = await stores.wallets.get(account_id, livemode, network, session);
    if (before?.address === address) return before;
    const times = { now: at.toISOString(), counts_from };
    const after = await stores.wallets.set(wish, times, session);
    const line = { act: 'wallet.set', account_id, livemode, target: network } as const;
    const facts = { address, counts_from, counting: addressAt(after, times.now) };
    await audit({ ...line, before: before && { address: before.address }, after: facts }, session);
    return after;
  });
}

function shown(wallet: WalletDocument, now: Date): ShownWallet {
  const { network, address, counts_from, previous } = wallet;
  const counting = addressAt(wallet, now.toISOString());
  return { network, address, counts_from, counting, previous };
}

import type { ClientSession } from 'mongodb';
import { inTransaction, isDuplicateKey } from '../../base/mongo';

import { ServiceError } from '../../domain/errors';
import { addressFault } from '../../encryption/wallet-address';
import { addressAt, type WalletDocument } from '../../store/wallets';
import type { WriteDeps } from '../access';
import { notifyOwners } from '../merchants/mail/outbox';

/** A stolen login must not move money at once. */
const LIVE_DELAY_MS = 24 * 60 * 60_000;
const RACES_MAX = 3;

export type NewWallet = Pick<WalletDocument, 'account_id' | 'livemode' | 'network' | 'address'>;

/** @throws ServiceError `address_invalid` when the checksum is wrong */
export function assertAddress({ network, address, livemode }: Omit<NewWallet, 'account_id'>): void {
  const fault = addressFault(network, address, livemode);
  if (fault !== undefined) throw new ServiceError('address_invalid', fault);
}

/** A repeat changes nothing. @throws ServiceError `address_invalid` */
export async function setWallet(deps: WriteDeps, wallet: NewWallet): Promise<ShownWallet> {
  assertAddress(wallet);
  const at = deps.now();
  const { mongo, stores, audit } = deps;
  const { account_id, livemode, network, address } = wallet;
  const counts_from = new Date(at.getTime() + (livemode ? LIVE_DELAY_MS : 0)).toISOString();
  const set = async (session: ClientSession): Promise<WalletDocument> => {
    const before = await stores.wallets.get(account_id, livemode, network, session);
    if (before?.address === address) return before;
    const times = { now: at.toISOString(), counts_from };
    const after = await stores.wallets.set(wallet, times, session);
    const line = { act: 'wallet.set', account_id, livemode, target: network } as const;
    const facts = { address, counts_from, counting: addressAt(after, times.now) };
    await audit({ ...line, before: before && { address: before.address }, after: facts }, session);
    const subject = { kind: 'wallet_set', network, address, counts_from } as const;
    if (livemode) await notifyOwners(deps, account_id, subject, session);
    return after;
  };
  for (let race = 1; ; race += 1) {
    try {
      return presentWallet(await inTransaction(mongo, set), at);
    } catch (error) {
      if (race === RACES_MAX || !isDuplicateKey(error)) throw error;
    }
  }
}

export async function listWallets(
  { stores, now }: Pick<WriteDeps, 'stores' | 'now'>,
  account_id: string,
  livemode: boolean,
): Promise<ShownWallet[]> {
  const wallets = await stores.wallets.listForAccount(account_id, livemode);
  return wallets.map((wallet) => presentWallet(wallet, now()));
}

export type ShownWallet = ReturnType<typeof presentWallet>;

/** `counting` is the address in effect; until `paused_until` there is none. */
function presentWallet(wallet: WalletDocument, now: Date) {
  const { network, address, counts_from, previous } = wallet;
  const counting = addressAt(wallet, now.toISOString());
  const paused_until = counting === null ? counts_from : null;
  return { network, address, counts_from, counting, previous, paused_until };
}

import { randomBytes } from 'node:crypto';
import type { Collection, Db } from 'mongodb';
import type { AddressInstruction, RateQuestion } from '../../contract/crypto';

export interface PayerWallet {
  _id: string;
  /** 256 bits. */
  token: string;
  address: string;
  instruction: AddressInstruction;
  created_at: Date;
  nonces?: string[];
}

/** Limit per wallet: each transaction becomes signals. */
export const TRANSACTIONS_MAX = 100;

interface PriceRequest {
  _id: string;
  question: RateQuestion;
}

export type WalletStore = ReturnType<typeof createWalletStore>;

export function createWalletStore(db: Db, now: () => Date) {
  const wallets: Collection<PayerWallet> = db.collection('chain_wallets');
  const prices: Collection<PriceRequest> = db.collection('chain_prices');
  return {
    ensureIndexes: () =>
      wallets.createIndexes([
        { key: { token: 1 }, name: 'token', unique: true },
        { key: { address: 1 }, name: 'address' },
      ]),
    storePrice: (question: RateQuestion) =>
      prices.updateOne(
        { _id: question.crypto_payment_id },
        { $setOnInsert: { question } },
        { upsert: true },
      ),
    getRequestedAmount: async (_id: string): Promise<number | null> =>
      (await prices.findOne({ _id }))?.question.amount ?? null,
    byToken: (token: string) => wallets.findOne({ token }),
    /** Reserves once for each form. @returns false when the wallet has had enough */
    reserve: async (_id: string, nonce: string): Promise<boolean> => {
      const isFree = { [`nonces.${TRANSACTIONS_MAX - 1}`]: { $exists: false } };
      const filter = { _id, $or: [{ nonces: nonce }, isFree] };
      const { matchedCount } = await wallets.updateOne(filter, { $addToSet: { nonces: nonce } });
      return matchedCount === 1;
    },
    make: async (instruction: AddressInstruction, address: string): Promise<PayerWallet> => {
      const { crypto_payment_id: _id } = instruction;
      const first = {
        token: randomBytes(32).toString('base64url'),
        address,
        instruction,
        created_at: now(),
      };
      await wallets.updateOne({ _id }, { $setOnInsert: first }, { upsert: true });
      const wallet = await wallets.findOne({ _id });
      if (wallet === null) throw new Error('The wallet is not there.');
      return wallet;
    },
  };
}

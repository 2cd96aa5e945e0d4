import type { MongoClient } from 'mongodb';
import type { PrivateKeyAccount } from 'viem/accounts';
import type { Logger } from '../../src/base/log';
import type { Outdated } from '../contract/activities';
import type { CryptoConnectorActivities, SettlementInstruction } from '../contract/crypto';
import { createAddresses } from './addresses';
import type { Assets } from './assets';
import { rebroadcast } from './broadcasting';
import { createChainBook } from './chain-store';
import { reportDeposits } from './deposit-reports';
import { createDeposits } from './deposits';
import type { ExtendedKey } from './extended-key';
import { beginFollowing, follow } from './follower';
import { assertChain, assertToken, type EvmNode } from './node';
import { createNonces } from './nonces';
import { lookUpSettlement, sendSettlement } from './paying';
import type { RatesReader } from './rates';
import { giveAddress, quoteRate, screenSource } from './receiving';
import type { Deliver } from './report';
import type { Screening } from './screening';
import { reportSettlements } from './settlement-reports';
import { createSettlements } from './settlements';

export interface EvmSettings {
  /** EIP-155 chain ID that the node must have. */
  chainId: number;
  assets: Assets;
  /** Blocks after which a deposit or settlement counts, including its own. */
  confirmations: number;
  startBlock?: number | undefined;
  traces: boolean;
  /** Wei per unit of gas. */
  feeCap: bigint;
  raiseAfterMs: number;
}

export interface EvmDeps extends EvmSettings {
  mongo: MongoClient;
  database: string;
  node: EvmNode;
  key: ExtendedKey;
  account: PrivateKeyAccount;
  rates: RatesReader;
  screening: Screening;
  deliver: Deliver;
  /** @see connectors/contract/guard.ts */
  findOutdated: (instruction: SettlementInstruction) => Promise<Outdated | undefined>;
  now: () => Date;
  log: Logger;
}

export interface Evm {
  activities: CryptoConnectorActivities;
  /** Checks node and configuration, and sets the cursor of a first start. Safe to repeat. */
  begin: () => Promise<void>;
  /** Follows, reports and broadcasts what is due. Returns whether more may be due at once. */
  round: () => Promise<boolean>;
}

/**
 * Connector to an Ethereum chain. All its state is in its database, so it may be killed at any
 * point.
 */
export function createEvm(deps: EvmDeps): Evm {
  const { mongo, node, account, assets } = deps;
  const db = mongo.db(deps.database);
  const book = createChainBook(db);
  const addresses = createAddresses({ ...deps, db });
  const deposits = createDeposits(db);
  const settlements = createSettlements(db);
  const nonces = createNonces({ db, node, settlements, payer: account.address });
  const all = { ...deps, book, addresses, deposits, settlements, nonces, payer: account.address };
  return {
    activities: {
      quoteRate: (input) => quoteRate(all, input),
      giveAddress: (input) => giveAddress(all, input),
      screenSource: (input) => screenSource(all, input),
      sendSettlement: (input) => sendSettlement(all, input),
      lookUpSettlement: ({ crypto_settlement_id }) => lookUpSettlement(all, crypto_settlement_id),
    },
    begin: async () => {
      await assertChain(node, deps.chainId);
      await assertToken(node, assets);
      await book.bind(deps.chainId);
      const stores = [addresses, deposits, settlements];
      await Promise.all(stores.map((store) => store.ensureIndexes()));
      await beginFollowing({ node, book }, deps.startBlock);
      await settlements.assertOwn(account.address);
      await nonces.begin();
      await nonces.check();
    },
    round: async () => {
      await assertChain(node, deps.chainId);
      const isBehind = await follow(all);
      const at = await book.cursor();
      if (at !== null) {
        await reportDeposits(all, at.number);
        await reportSettlements(all, at.number);
      }
      if (!isBehind) await rebroadcast(all);
      return isBehind;
    },
  };
}

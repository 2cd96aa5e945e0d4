import type { MongoClient } from 'mongodb';
import type { PrivateKeyAccount } from 'viem/accounts';
import type { Logger } from '../../src/base/log';
import type { Outdated } from '../contract/activities';
import type { CryptoConnectorActivities, SettlementInstruction } from '../contract/crypto';
import { createAddresses } from './addresses';
import type { Assets } from './assets';
import { rebroadcast } from './broadcasting';
import { assertChain, assertToken } from './chain-check';
import { createChainBook } from './chain-store';
import { reportDeposits } from './deposit-reports';
import { createDeposits } from './deposits';
import type { ExtendedKey } from './extended-key';
import { beginFollowing, follow } from './follower';
import type { EvmNode } from './node';
import { createNonces } from './nonces';
import { lookUpSettlement, sendSettlement } from './paying';
import type { RatesReader } from './rates';
import { giveAddress, quoteRate, screenSource } from './receiving';
import type { Deliver } from './report';
import type { Screening } from './screening';
import { reportSettlements } from './settlement-reports';
import { createSettlements } from './settlements';
import type { StepHook } from './steps';

/** Chain, keys and rules of one installation. */
export interface EvmSettings {
  /** Chain of EIP-155 that the node must be on. */
  chainId: number;
  assets: Assets;
  /** Blocks after which a deposit or settlement counts, its own included. */
  confirmations: number;
  /** Block to follow from, on the first start. */
  startBlock?: number | undefined;
  /** Whether the node traces calls, so that ether from contracts is seen too. */
  traces: boolean;
  /** Most wei a unit of gas. */
  feeCap: bigint;
  /** Time after which a settlement that no block has taken pays more. */
  raiseAfterMs: number;
}

export interface EvmDeps extends EvmSettings {
  mongo: MongoClient;
  /** Name of the connector's own database. */
  database: string;
  node: EvmNode;
  /** Public key from which addresses are derived. */
  key: ExtendedKey;
  /** Account that pays settlements. */
  account: PrivateKeyAccount;
  rates: RatesReader;
  screening: Screening;
  deliver: Deliver;
  /** Compares an instruction with the product's document. @see connectors/contract/guard.ts */
  findOutdated: (instruction: SettlementInstruction) => Promise<Outdated | undefined>;
  /** Called at each step between which the process may die. */
  pass: StepHook;
  now: () => Date;
  log: Logger;
}

export interface Evm {
  activities: CryptoConnectorActivities;
  /** Checks node and configuration, and sets the cursor of a first start. Safe to repeat. */
  begin: () => Promise<void>;
  /** Follows, tells and broadcasts what is due; answers whether there may be more at once. */
  round: () => Promise<boolean>;
}

/** Connector to an Ethereum chain: all that it knows lies in its database, so it may die anywhere. */
export function createEvm(deps: EvmDeps): Evm {
  const { mongo, node, account, assets } = deps;
  const db = mongo.db(deps.database);
  const book = createChainBook(db);
  const addresses = createAddresses({ ...deps, db });
  const deposits = createDeposits(db);
  const settlements = createSettlements(db);
  const nonces = createNonces({ db, node, settlements, payer: account.address });
  const all = { ...deps, book, addresses, deposits, settlements, nonces, payer: account.address };
  const followerDeps = { ...all, onWrongAsset: logWrongAsset(deps.log) };
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
      const isBehind = await follow(followerDeps);
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

/** Tells operators of money in an asset that a payment was not asked for. */
function logWrongAsset(log: Logger): Parameters<typeof follow>[0]['onWrongAsset'] {
  return ({ crypto_payment_id, asset, transaction_id }) => {
    const about = { crypto_payment_id, transaction_id, code: asset };
    log.error(about, 'money in another asset came to the address of a payment');
  };
}

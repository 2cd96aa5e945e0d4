import type { MongoClient } from 'mongodb';
import type { Address } from 'viem';
import type { PrivateKeyAccount } from 'viem/accounts';
import type { Logger } from '../../src/base/log';
import type { Outdated } from '../contract/activities';
import type { CryptoConnectorActivities, SettlementInstruction } from '../contract/crypto';
import { createAddresses } from './addresses';
import type { Asset, Assets } from './assets';
import { checkBalances } from './balance-checks';
import { rebroadcast } from './broadcasting';
import { createChainBook } from './chain-store';
import { reportDeposits } from './deposit-reports';
import { createDeposits } from './deposits';
import type { ExtendedKey } from './extended-key';
import { createFindings } from './findings';
import { beginFollowing, follow } from './follower';
import type { EvmMeter } from './metrics';
import { assertChain, assertToken, type EvmNode } from './node';
import { createNonces } from './nonces';
import { cancelSettlement, lookUpSettlement, sendSettlement } from './paying';
import { createRateBounds } from './rate-bounds';
import type { RatesReader } from './rates';
import { giveAddress, quoteRate, readChainTime, screenSource } from './receiving';
import type { Deliver } from './report';
import type { Screening } from './screening';
import { reportSettlements } from './settlement-reports';
import { createSettlements } from './settlements';

export interface EvmSettings {
  /** EIP-155 chain ID that the node must have. */
  chainId: number;
  assets: Assets;
  /** Includes the block of the deposit or settlement. */
  confirmations: number;
  startBlock?: number | undefined;
  traces: boolean;
  /** Smallest units; larger deposits need the second node. */
  checkAbove: Record<Asset, bigint>;
  /** Smallest units: smaller deposits are dust. */
  least: Record<Asset, bigint>;
  /** Percent in an hour. */
  rateChangeMax: number;
  /** Percent by which two sources of rates may differ, and USDC from one dollar. */
  rateDifferenceMax: number;
  /** Wei per unit of gas. */
  feeCap: bigint;
  raiseAfterMs: number;
}

export interface EvmDeps extends EvmSettings {
  mongo: MongoClient;
  database: string;
  node: EvmNode;
  secondNode: EvmNode | undefined;
  key: ExtendedKey;
  account: PrivateKeyAccount;
  rates: RatesReader;
  secondRates: RatesReader | undefined;
  screening: Screening;
  deliver: Deliver;
  findTaken: (addresses: readonly Address[]) => Promise<string[]>;
  /** @see connectors/contract/guard.ts */
  findOutdated: (instruction: SettlementInstruction) => Promise<Outdated | undefined>;
  /** False while a restore has stopped the connector; by default true. */
  maySend?: () => Promise<boolean>;
  meter: EvmMeter;
  now: () => Date;
  log: Logger;
}

export interface Evm {
  activities: CryptoConnectorActivities;
  /** Checks node and configuration, and sets the cursor of a first start. Safe to repeat. */
  begin: () => Promise<void>;
  /** @returns whether more may be due at once */
  round: () => Promise<boolean>;
}

/** Stores all state in its database, so it may be killed at any point. */
export function createEvm(deps: EvmDeps): Evm {
  const { mongo, node, account, assets } = deps;
  const db = mongo.db(deps.database);
  const book = createChainBook(db);
  const addresses = createAddresses({ ...deps, db });
  const deposits = createDeposits(db);
  const settlements = createSettlements(db);
  const nonces = createNonces({ db, node, settlements, payer: account.address });
  const findings = createFindings({ ...deps, db });
  const findImplausible = createRateBounds({
    db,
    changeMax: deps.rateChangeMax,
    differenceMax: deps.rateDifferenceMax,
    readSecond: deps.secondRates,
    now: deps.now,
  });
  const stores = { book, addresses, deposits, settlements, nonces, findings };
  const all = { ...deps, ...stores, findImplausible, payer: account.address };
  return {
    activities: {
      quoteRate: (input) => quoteRate(all, input),
      giveAddress: (input) => giveAddress(all, input),
      readChainTime: () => readChainTime(all),
      screenSource: (input) => screenSource(all, input),
      sendSettlement: (input) => sendSettlement(all, input),
      cancelSettlement: ({ crypto_settlement_id }) => cancelSettlement(all, crypto_settlement_id),
      lookUpSettlement: ({ crypto_settlement_id }) => lookUpSettlement(all, crypto_settlement_id),
    },
    begin: async () => {
      await assertChain(node, deps.chainId);
      await assertToken(node, assets);
      await book.bind(deps.chainId);
      const indexed = [addresses, deposits, settlements];
      await Promise.all(indexed.map((store) => store.ensureIndexes()));
      await beginFollowing({ node, book }, deps.startBlock);
      await addresses.begin();
      await settlements.assertOwn(account.address);
      await nonces.begin();
      await nonces.check();
    },
    round: async () => {
      await assertChain(node, deps.chainId);
      const isBehind = await follow(all);
      const at = await book.cursor();
      if (at !== null) {
        const unchecked = await reportDeposits(all, at.number);
        await reportSettlements(all, at.number);
        deps.meter.followed({
          at: at.mined_at,
          unchecked,
          findings: await findings.count(),
          dust: await deposits.countDust(),
        });
      }
      if (!isBehind) {
        if ((await deps.maySend?.()) ?? true) await rebroadcast(all);
        await checkBalances(all);
      }
      return isBehind;
    },
  };
}

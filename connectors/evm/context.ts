import type { MongoClient } from 'mongodb';
import type { Address } from 'viem';
import type { PrivateKeyAccount } from 'viem/accounts';
import type { Logger } from '../../src/base/log';
import type { Outdated } from '../contract/activities';
import type { SettlementInstruction } from '../contract/crypto';
import type { Addresses } from './addresses';
import type { ChainBook } from './chain-store';
import type { ChainSettings } from './config';
import type { Deposits } from './deposits';
import type { EvmMeter, Findings } from './findings';
import type { ExtendedKey } from './keys';
import type { EvmNode } from './node';
import type { Nonces } from './nonces';
import type { RateBounds, RatesReader } from './rates';
import type { Deliver } from './report';
import type { Settlements } from './settlements';

export interface EvmDeps extends ChainSettings {
  mongo: MongoClient;
  database: string;
  node: EvmNode;
  secondNode: EvmNode | undefined;
  key: ExtendedKey;
  account: PrivateKeyAccount;
  rates: RatesReader;
  secondRates: RatesReader | undefined;
  /** File with the addresses of payers to hold. */
  screeningFile: string;
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

/** Parts of a running connector, with its stores. */
export interface EvmContext extends EvmDeps {
  book: ChainBook;
  addresses: Addresses;
  deposits: Deposits;
  settlements: Settlements;
  nonces: Nonces;
  findings: Findings;
  findImplausible: RateBounds;
  payer: Address;
}

import type { Db, MongoClient } from 'mongodb';
import type { Logger } from '../../../src/base/log';
import type { Outdated } from '../../contract/activities';
import type { CallbackReceipt } from '../../contract/callbacks';
import type { SettlementInstruction } from '../../contract/crypto';
import type { TimeReader } from '../clock';
import { createChainActivities } from './activities';
import { type ChainReport, startFollower } from './follower';
import { createSettlementBook } from './settle';
import { createTransactionStore, type Subject } from './transactions';
import { createWalletStore } from './wallets';

type ChainStores = ReturnType<typeof createChainStores>;

export function createChainStores(db: Db, now: () => Date, readTime: TimeReader) {
  const wallets = createWalletStore(db, now);
  const transactions = createTransactionStore(db, now, readTime);
  const settlements = createSettlementBook(db, now);
  return {
    wallets,
    transactions,
    settlements,
    ensureIndexes: () => Promise.all([wallets.ensureIndexes(), transactions.ensureIndexes()]),
  };
}

export interface ChainDeps {
  mongo: MongoClient;
  stores: ChainStores;
  connector: string;
  autoplay: boolean;
  isAwaited: (subject: Subject) => Promise<boolean>;
  findOutdated: (instruction: SettlementInstruction) => Promise<Outdated | undefined>;
  deliver: (report: ChainReport) => Promise<CallbackReceipt>;
  now: () => Date;
  readTime: TimeReader;
  log: Logger;
}

export type Chain = ReturnType<typeof startChain>;

export function startChain({ stores, ...deps }: ChainDeps) {
  const { wallets, transactions } = stores;
  const follower = startFollower({ ...deps, transactions });
  return {
    routes: { wallets, transactions, autoplay: deps.autoplay, sent: follower.wake },
    activitiesAt: (baseUrl: string) => createChainActivities({ ...deps, ...stores, baseUrl }),
    wake: follower.wake,
    stop: follower.stop,
  };
}

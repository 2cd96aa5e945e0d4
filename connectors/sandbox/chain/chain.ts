import type { Db, MongoClient } from 'mongodb';
import type { Logger } from '../../../src/base/log';
import type { CryptoCallback } from '../../../src/domain/crypto/callback';
import { omitUndefined } from '../../../src/domain/defined';
import type { Outdated } from '../../contract/activities';
import type { CallbackReceipt } from '../../contract/callbacks';
import type { SettlementInstruction } from '../../contract/crypto';
import { startLoop } from '../../kit/loop';
import type { TimeReader } from '../clock';
import { createChainActivities } from './activities';
import { blockHash, heightAt, type Step } from './plan';
import { createSettlementBook } from './settle';
import {
  type ChainTransaction,
  createTransactionStore,
  type Subject,
  type TransactionStore,
} from './transactions';
import { createWalletStore } from './wallets';

const BATCH = 50;

const POLL_MS = 300;
/** Stays quick after a failure. */
const TROUBLE_MS = 1_000;

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

/**
 * May be killed at any point: a step stays due until its report was received, and a repeat counts
 * once.
 */
export function startChain({ stores, ...deps }: ChainDeps) {
  const { wallets, transactions } = stores;
  const follower = startLoop({
    round: async () => {
      const due = await transactions.lease(BATCH);
      await Promise.all(due.map((each) => reportNext({ ...deps, transactions }, each)));
      return due.length === BATCH;
    },
    failureText: 'the chain could not be read',
    log: deps.log,
    pollMs: POLL_MS,
    troubleMsMax: TROUBLE_MS,
  });
  return {
    routes: { wallets, transactions, autoplay: deps.autoplay, sent: follower.wake },
    activitiesAt: (baseUrl: string) => createChainActivities({ ...deps, ...stores, baseUrl }),
    wake: follower.wake,
    stop: follower.stop,
  };
}

export interface ChainReport extends Subject {
  connector: string;
  name: Step['name'];
  callback: CryptoCallback;
}

type FollowerDeps = Pick<ChainDeps, 'connector' | 'isAwaited' | 'deliver' | 'readTime' | 'log'> & {
  transactions: TransactionStore;
};

async function reportNext(deps: FollowerDeps, transaction: ChainTransaction): Promise<void> {
  const { connector, transactions, log } = deps;
  const { resource, resource_id, steps, done } = transaction;
  const step = steps[done];
  const about = { [`${resource}_id`]: resource_id, transaction_id: transaction._id };
  if (step === undefined) return;
  try {
    if (step.autoplay === true && !(await deps.isAwaited(transaction))) {
      await transactions.drop(transaction, 'a simulation was faster');
      return;
    }
    const callback = buildCallback(transaction, step, await deps.readTime(transaction));
    const report = { connector, resource, resource_id, name: step.name, callback };
    const receipt = await deps.deliver(report);
    // A parked report waits for an operator, and later ones wait behind it.
    await transactions.proceed(transaction);
    log.info({ ...about, status: receipt }, `report ${step.name}`);
  } catch (err) {
    const message = err instanceof Error ? err.message : String(err);
    await transactions.retry(transaction, message.slice(0, 300));
    log.warn({ ...about, attempt: transaction.attempts, err }, 'report not delivered, tried again');
  }
}

function buildCallback(
  { _id, network, resource, amount, seen_at, done }: ChainTransaction,
  { name, confirmations, branch, code, reason }: Step,
  now: Date,
): CryptoCallback {
  const seen = seen_at ?? now;
  const inBlock = confirmations !== undefined && confirmations > 0 && branch !== undefined;
  const height = heightAt(seen) + 1;
  return omitUndefined({
    callback_id: `chain:${_id}:${done}`,
    // A deposit is in time or late by when it was first seen.
    occurred_at: (resource === 'crypto_payment' ? seen : now).toISOString(),
    transaction_id: _id,
    amount: name === 'deposit' ? amount : undefined,
    confirmations,
    block_number: inBlock ? height : undefined,
    block_hash: inBlock ? blockHash(network, height, branch) : undefined,
    code,
    reason,
  });
}

import type { Logger } from '../../../src/base/log';
import type { CryptoCallback } from '../../../src/domain/crypto/callback';
import { omitUndefined } from '../../../src/domain/defined';
import type { CallbackReceipt } from '../../contract/callbacks';
import type { TimeReader } from '../clock';
import { blockHash, heightAt } from './blocks';
import { startLoop } from './loop';
import type { Step } from './plan';
import type { ChainTransaction, Subject, TransactionStore } from './transactions';

const BATCH = 50;

export interface ChainReport extends Subject {
  connector: string;
  name: Step['name'];
  callback: CryptoCallback;
}

export interface FollowerDeps {
  connector: string;
  transactions: TransactionStore;
  isAwaited: (subject: Subject) => Promise<boolean>;
  deliver: (report: ChainReport) => Promise<CallbackReceipt>;
  readTime: TimeReader;
  log: Logger;
}

/**
 * May be killed at any point: a step stays due until its report was received, and a repeat counts
 * once.
 */
export function startFollower(deps: FollowerDeps) {
  return startLoop({
    round: async () => {
      const due = await deps.transactions.lease(BATCH);
      await Promise.all(due.map((transaction) => reportNext(deps, transaction)));
      return due.length === BATCH;
    },
    failureText: 'the chain could not be read',
    log: deps.log,
  });
}

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

import { once } from 'node:events';
import type { Server } from 'node:http';
import type { Client } from '@temporalio/client';
import { type NativeConnection, Worker } from '@temporalio/worker';
import type { MongoClient } from 'mongodb';
import { closeServer, createHttpServer } from '../../src/api/server';
import type { Logger } from '../../src/base/log';
import type { RecipientDetails } from '../../src/domain/payout/recipient';
import { SANDBOX_CONNECTOR } from '../../src/routing';
import { createMovementStore } from '../../src/service/banks/sandbox-bank/movements';
import type { Stores } from '../../src/store';
import { runWorker } from '../../src/temporal/native';
import type { ConnectorActivities } from '../contract/activities';
import {
  type CallbackMeter,
  type ConnectorKey,
  createCallbackMemory,
  deliverCallback,
  type InboxStores,
  type ResourceCallback,
} from '../contract/callbacks';
import type { ClockConnectorActivities } from '../contract/clock';
import type { CryptoConnectorActivities, SettlementInstruction } from '../contract/crypto';
import { createInstructionGuard, type GuardMeter, type InstructionGuard } from '../contract/guard';
import { DELIVERY_MS, SHUTDOWN_GRACE } from '../kit/process';
import type { RestoreGuard } from '../kit/restore-guard';
import { createBankActivities } from './activities';
import { createBankApp } from './app';
import { createBook } from './book';
import { createChainStores, startChain } from './chain/chain';
import type { Subject } from './chain/transactions';
import { advanceBankClock, createTimeReader } from './clock';
import { createOutbox } from './outbox';
import { startReportTaker } from './reports';
import { isAwaited, startSender } from './sender';
import { createSessionStore } from './sessions';

export interface SandboxBankDeps {
  mongo: MongoClient;
  database: string;
  stores: InboxStores & Pick<Stores, 'accounts' | 'sandboxReports'>;
  decryptRecipient: (payout_id: string) => Promise<RecipientDetails>;
  readReference: (payout_id: string) => Promise<string | null>;
  temporal: Client;
  connection: NativeConnection;
  connector?: string;
  taskQueue: string;
  lifecycleQueue: string;
  host: string;
  /** 0: any free port. */
  port: number;
  publicUrl?: string;
  autoplay: boolean;
  slowSessionMs?: number;
  meter?: CallbackMeter;
  guardMeter?: GuardMeter;
  /** Without it a restore is not noticed. */
  restoreGuard?: Pick<RestoreGuard, 'confirm' | 'protect'>;
  /** Without it callbacks are unsigned. */
  key?: ConnectorKey | undefined;
  now: () => Date;
  log: Logger;
}

type BankActivities = ConnectorActivities & CryptoConnectorActivities & ClockConnectorActivities;

const SLOW_SESSION_MS = 8_000;
const PAGES_GRACE_MS = 2_000;

/** @returns `finished` resolves when the worker has ended, and rejects when it broke */
export async function createSandboxBank(deps: SandboxBankDeps) {
  const { now, log, stores, connector = SANDBOX_CONNECTOR } = deps;
  const db = deps.mongo.db(deps.database);
  const readTime = createTimeReader(stores, now);
  const books = {
    sessions: createSessionStore(db, now),
    refunds: createBook(db, 'refunds', now),
    payouts: createBook(db, 'payouts', now),
    outbox: createOutbox(db, now),
    movements: createMovementStore(db, now),
  };
  const chainStores = createChainStores(db, now, readTime);
  const indexed = [books.sessions, books.outbox, books.movements, chainStores];
  await Promise.all(indexed.map((store) => store.ensureIndexes()));

  const memory = createCallbackMemory(stores.callbacks, log);
  const inbox = { ...deps, memory };
  const deliver = (callback: ResourceCallback) =>
    deps.temporal.withDeadline(Date.now() + DELIVERY_MS, () => deliverCallback(inbox, callback));
  const { mongo } = deps;
  const sender = startSender({ ...books, mongo, connector, product: stores, deliver, log });
  const reports = startReportTaker({
    ...books,
    mongo,
    connector,
    reports: stores.sandboxReports,
    log,
  });
  const bare = createInstructionGuard({ ...stores, connector, log, meter: deps.guardMeter });
  const guard: Pick<InstructionGuard, 'findOutdated'> = {
    findOutdated: async (...instruction) => {
      await deps.restoreGuard?.confirm();
      return await bare.findOutdated(...instruction);
    },
  };
  const record = createRecordChecks(stores, guard);
  const chain = startChain({
    ...{ ...deps, ...record, connector, readTime, deliver },
    stores: chainStores,
  });
  const app = createBankApp({
    ...{ ...deps, ...books, readTime, decided: sender.wake },
    chain: chain.routes,
  });
  const server = createHttpServer(app.callback());
  server.listen(deps.port, deps.host);
  const stopRest = async () => {
    const loops = [sender.stop(), reports.stop(), chain.stop()];
    await Promise.all([...loops, closeServer(server, PAGES_GRACE_MS)]);
    await memory.close();
  };
  try {
    await once(server, 'listening');
    const baseUrl = (deps.publicUrl ?? `http://localhost:${getPort(server)}`).replace(/\/+$/, '');
    const bankActivities = createBankActivities({
      ...deps,
      ...books,
      baseUrl,
      slowSessionMs: deps.slowSessionMs ?? SLOW_SESSION_MS,
      onOwnPayment: (payment_id) => memory.rememberConnector('payment', payment_id, connector),
      findOutdated: guard.findOutdated,
      takeReports: reports.take,
    });
    const clock = {
      product: stores,
      waiting: [books.outbox, chainStores.transactions],
      now,
      wake: () => {
        sender.wake();
        chain.wake();
      },
    };
    const all: BankActivities = {
      ...bankActivities,
      ...chain.activitiesAt(baseUrl),
      advanceBankClock: (advance) => advanceBankClock(clock, advance),
    };
    const activities = deps.restoreGuard?.protect(all) ?? all;
    const worker = await createWorker(deps, activities);
    const finished = runWorker(worker);
    const end = async () => {
      if (worker.getState() === 'RUNNING') worker.shutdown();
      await finished.finally(stopRest);
    };
    let ending: Promise<void> | undefined;
    const stop = () => {
      ending ??= end();
      return ending;
    };
    return { url: baseUrl, activities, finished, stop };
  } catch (error) {
    await stopRest();
    throw error;
  }
}

function createRecordChecks(
  stores: SandboxBankDeps['stores'],
  guard: Pick<InstructionGuard, 'findOutdated'>,
) {
  return {
    isAwaited: ({ resource, resource_id }: Subject) => isAwaited(stores, resource, resource_id),
    findOutdated: (instruction: SettlementInstruction) =>
      guard.findOutdated('crypto_settlement', instruction),
  };
}

function createWorker(
  { connection, temporal, taskQueue }: SandboxBankDeps,
  activities: BankActivities,
): Promise<Worker> {
  return Worker.create({
    connection,
    namespace: temporal.options.namespace,
    taskQueue,
    activities,
    // Slow sessions wait here and must not block the others.
    maxConcurrentActivityTaskExecutions: 200,
    shutdownGraceTime: SHUTDOWN_GRACE,
  });
}

function getPort(server: Server): number {
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('not listening on a port');
  return address.port;
}

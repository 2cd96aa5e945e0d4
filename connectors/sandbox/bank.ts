import { once } from 'node:events';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Client } from '@temporalio/client';
import { type NativeConnection, Worker } from '@temporalio/worker';
import type { MongoClient } from 'mongodb';
import { createHttpServer } from '../../src/api/server';
import type { Logger } from '../../src/base/log';
import type { RecipientDetails } from '../../src/domain/payout/recipient';
import { SANDBOX_CONNECTOR } from '../../src/routing';
import type { Stores } from '../../src/store';
import type { ConnectorActivities } from '../contract/activities';
import {
  type CallbackMeter,
  type ConnectorKey,
  createCallbackMemory,
  deliverCallback,
  type InboxStores,
  type ResourceCallback,
} from '../contract/callbacks';
import type { CryptoConnectorActivities, SettlementInstruction } from '../contract/crypto';
import { createInstructionGuard } from '../contract/guard';
import { createBankActivities } from './activities';
import { createBankApp } from './app';
import { createBook } from './book';
import { createChainStores, startChain } from './chain/chain';
import type { Subject } from './chain/transactions';
import { createOutbox } from './outbox';
import { isAwaited, startSender } from './sender';
import { createSessionStore } from './sessions';

export interface SandboxBankDeps {
  mongo: MongoClient;
  database: string;
  stores: InboxStores & Pick<Stores, 'accounts'>;
  decryptRecipient: (payout_id: string) => Promise<RecipientDetails>;
  readReference: (payout_id: string) => Promise<string | null>;
  temporal: Client;
  connection: NativeConnection;
  connector?: string;
  taskQueue: string;
  /** Task queue on which ended lifecycles are started again. */
  lifecycleQueue: string;
  host: string;
  /** 0: any free port. */
  port: number;
  /** Public URL of its pages; by default `http://localhost:{port}`. */
  publicUrl?: string;
  autoplay: boolean;
  slowSessionMs?: number;
  meter?: CallbackMeter;
  /** Key that signs callbacks; without it they are unsigned. */
  key?: ConnectorKey | undefined;
  now: () => Date;
  log: Logger;
}

type BankActivities = ConnectorActivities & CryptoConnectorActivities;

export interface SandboxBank {
  url: string;
  activities: BankActivities;
  /** Resolves when the worker has ended; rejects when it broke. */
  finished: Promise<void>;
  stop: () => Promise<void>;
}

const SLOW_SESSION_MS = 8_000;
const SHUTDOWN_GRACE = '10s';
/** Time for a delivery: shorter than a row's lease and than the client's own retries. */
const DELIVERY_MS = 4_000;

/** Starts a bank for tests: a connector with pages on which a developer plays the customer. */
export async function createSandboxBank(deps: SandboxBankDeps): Promise<SandboxBank> {
  const { mongo, now, log, autoplay } = deps;
  const db = mongo.db(deps.database);
  const sessions = createSessionStore(db, now);
  const refunds = createBook(db, 'refunds', now);
  const payouts = createBook(db, 'payouts', now);
  const outbox = createOutbox(db, now);
  const chainStores = createChainStores(db, now);
  await Promise.all([
    sessions.ensureIndexes(),
    outbox.ensureIndexes(),
    chainStores.ensureIndexes(),
  ]);

  const connector = deps.connector ?? SANDBOX_CONNECTOR;
  const memory = createCallbackMemory(deps.stores.callbacks, log);
  const inbox = { ...deps, memory };
  const deliver = (callback: ResourceCallback) =>
    deps.temporal.withDeadline(Date.now() + DELIVERY_MS, () => deliverCallback(inbox, callback));
  const sender = startSender({
    connector,
    outbox,
    sessions,
    refunds,
    payouts,
    log,
    product: deps.stores,
    deliver,
  });
  const record = createRecordChecks(deps.stores);
  const chain = startChain({ ...deps, ...record, connector, stores: chainStores, deliver });
  const { routes } = chain;
  const app = createBankApp({ ...deps, sessions, outbox, decided: sender.wake, chain: routes });
  const server = createHttpServer(app.callback());
  server.listen(deps.port, deps.host);
  const stopPages = () => closeServer(server);
  try {
    await once(server, 'listening');
    const baseUrl = (deps.publicUrl ?? `http://localhost:${getPort(server)}`).replace(/\/+$/, '');
    const slowSessionMs = deps.slowSessionMs ?? SLOW_SESSION_MS;
    const bankActivities = createBankActivities({
      mongo,
      sessions,
      refunds,
      payouts,
      outbox,
      autoplay,
      baseUrl,
      slowSessionMs,
      onOwnPayment: (payment_id) => memory.rememberConnector('payment', payment_id, connector),
      decryptRecipient: deps.decryptRecipient,
      readReference: deps.readReference,
      findOutdated: createInstructionGuard(deps.stores),
    });
    const activities = { ...bankActivities, ...chain.activitiesAt(baseUrl) };
    const worker = await createWorker(deps, activities);
    const finished = worker.run();
    const end = async () => {
      if (worker.getState() === 'RUNNING') worker.shutdown();
      await finished.finally(() => Promise.all([sender.stop(), chain.stop(), stopPages()]));
      await memory.close();
    };
    let ending: Promise<void> | undefined;
    const stop = () => {
      ending ??= end();
      return ending;
    };
    return { url: baseUrl, activities, finished, stop };
  } catch (error) {
    await Promise.all([sender.stop(), chain.stop(), stopPages()]);
    await memory.close();
    throw error;
  }
}

function createRecordChecks(stores: SandboxBankDeps['stores']) {
  const guard = createInstructionGuard(stores);
  return {
    isAwaited: ({ resource, resource_id }: Subject) => isAwaited(stores, resource, resource_id),
    findOutdated: ({ crypto_settlement_id: id, version }: SettlementInstruction) =>
      guard({ resource: 'crypto_settlement', id, version }),
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
  const address: AddressInfo | string | null = server.address();
  if (address === null || typeof address === 'string') throw new Error('not listening on a port');
  return address.port;
}

async function closeServer(server: Server): Promise<void> {
  if (!server.listening) return;
  const closed = once(server, 'close');
  server.close();
  server.closeIdleConnections();
  const force = setTimeout(() => server.closeAllConnections(), 2_000);
  await closed;
  clearTimeout(force);
}

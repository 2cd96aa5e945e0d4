import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import type { RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Db } from 'mongodb';
import { closeServer, createHttpServer } from '../../src/api/server';
import { CRYPTO_METHODS } from '../../src/domain/crypto/assets';
import { omitUndefined } from '../../src/domain/defined';
import { createMovementStore, sandboxBankDatabase } from '../../src/service/banks/sandbox';
import type { ConnectorActivities } from '../contract/activities';
import type { ClockConnectorActivities } from '../contract/clock';
import type { CryptoConnectorActivities } from '../contract/crypto';
import { type ConnectorParts, startConnector } from '../kit/connector';
import type { ConnectorProcess } from '../kit/process';
import { openRestoreGuard } from '../kit/restore-guard';
import { createBankApi } from './api';
import { createBankApp } from './app';
import { createAnswerBook, createBook, createSentBook } from './book';
import { createChainStores, startChain } from './chain/chain';
import { advanceBankClock, createTimeReader } from './clock';
import type { SandboxBankConfig } from './config';
import { buildSettings, defineSandboxBank, simulateTransit } from './definition';
import { createOutbox } from './outbox';
import { isAwaited } from './reports';
import { createSessionStore } from './sessions';

type BankProcess = Omit<ConnectorProcess, 'serveMetrics' | 'close'>;

type BankConfig = Pick<
  SandboxBankConfig,
  | 'MONGODB_DB'
  | 'KEYS_DIR'
  | 'HOST'
  | 'CONNECTOR_STATE_DIR'
  | 'SANDBOX_BANK_PORT'
  | 'SANDBOX_BANK_URL'
  | 'SANDBOX_AUTOPLAY'
>;

/** Replaced by tests. */
interface BankChanges extends Pick<ConnectorParts, 'restoreGuard' | 'recipients'> {
  slowSessionMs?: number;
}

type BankActivities = ConnectorActivities & CryptoConnectorActivities & ClockConnectorActivities;

const SLOW_SESSION_MS = 8_000;
const GRACE_MS = 2_000;

/**
 * Starts a bank of its own: pages for customers, and an API over HTTP. Its connector is one on the
 * kit; chain and clock, for which the kit has no functions, are activities next to the bank's.
 * @returns `finished` resolves when the worker has ended, and rejects when it broke
 */
export async function createSandboxBank(
  own: BankProcess,
  config: BankConfig,
  { slowSessionMs = SLOW_SESSION_MS, ...changes }: BankChanges = {},
) {
  const { connector } = own;
  const db = own.mongo.db(sandboxBankDatabase(config.MONGODB_DB));
  const guardPlace = { environment: 'sandbox', dir: config.CONNECTOR_STATE_DIR, db } as const;
  const restoreGuard =
    changes.restoreGuard ??
    (await openRestoreGuard(own, { ...guardPlace, book: createSentBook(db) }));
  const bank = await openBank(own, db, { ...config, slowSessionMs, restoreGuard });
  try {
    const { baseUrl, settings } = await bank.serve();
    const kit = await startConnector(
      defineSandboxBank(settings),
      {
        ...config,
        settings,
        environment: 'sandbox',
        isLive: false,
        name: connector,
        CONNECTOR_PORT: undefined,
      },
      own,
      {
        ...changes,
        db,
        restoreGuard,
        alsoServes: CRYPTO_METHODS,
        addActivities: (activities) => bank.addActivities(activities, baseUrl),
      },
    );
    bank.connected(kit.poll);
    let ending: Promise<unknown> | undefined;
    const stop = async () => {
      ending ??= kit.stop().finally(bank.stop);
      await ending;
    };
    return { url: baseUrl, activities: kit.activities, finished: kit.finished, stop };
  } catch (error) {
    await bank.stop();
    throw error;
  }
}

interface OpenedConfig extends BankConfig {
  slowSessionMs: number;
  restoreGuard: NonNullable<BankChanges['restoreGuard']>;
}

/** Opens the books and the chain; `serve` opens pages and API. */
async function openBank(own: BankProcess, db: Db, config: OpenedConfig) {
  const { stores, connector, now } = own;
  const { restoreGuard, SANDBOX_BANK_URL: publicUrl } = config;
  const autoplay = config.SANDBOX_AUTOPLAY === 'on';
  const readTime = createTimeReader(stores, now);
  const books = {
    sessions: createSessionStore(db, now),
    refunds: createBook(db, 'refunds', now),
    payouts: createBook(db, 'payouts', now),
    outbox: createOutbox(db, now),
    movements: createMovementStore(db, now),
    answers: createAnswerBook(db, now),
  };
  const indexed = [books.sessions, books.outbox, books.movements];
  await Promise.all(indexed.map((store) => store.ensureIndexes()));
  const chainStores = createChainStores(db, now, readTime);
  await chainStores.ensureIndexes();
  const parts = { ...own, ...books, autoplay, readTime, product: stores };
  const chain = startChain({
    ...parts,
    stores: chainStores,
    isAwaited: ({ resource, resource_id }) => isAwaited(stores, resource, resource_id),
    findOutdated: async (instruction) => {
      await restoreGuard.confirm();
      return await own.guard.findOutdated('crypto_settlement', instruction);
    },
  });
  let poll = () => {};
  const clock = {
    product: stores,
    waiting: [books.outbox, chainStores.transactions],
    now,
    wake: () => {
      poll();
      chain.wake();
    },
  };
  const closers = [chain.stop];
  const listen = async (listener: RequestListener, host: string, port: number) => {
    const server = createHttpServer(listener);
    server.listen(port, host);
    await once(server, 'listening');
    closers.push(() => closeServer(server, GRACE_MS));
    return (server.address() as AddressInfo).port;
  };
  return {
    serve: async () => {
      const pages = createBankApp({
        ...parts,
        chain: chain.routes,
        decided: () => poll(),
        ...omitUndefined({ publicUrl }),
      });
      const port = await listen(pages.callback(), config.HOST, config.SANDBOX_BANK_PORT);
      const baseUrl = (publicUrl ?? `http://localhost:${port}`).replace(/\/+$/, '');
      const secret = randomBytes(32).toString('hex');
      const { slowSessionMs } = config;
      const api = createBankApi({ ...parts, baseUrl, slowSessionMs, secret });
      // Only the connector of this process reaches it.
      const apiPort = await listen(api.callback(), '127.0.0.1', 0);
      return { baseUrl, settings: buildSettings(`http://127.0.0.1:${apiPort}`, secret) };
    },
    addActivities: (activities: Partial<ConnectorActivities>, baseUrl: string): BankActivities => ({
      // The definition has the functions of all groups.
      ...simulateTransit(activities as ConnectorActivities, {
        ...books,
        onOwnPayment: (id) => own.memory.rememberConnector('payment', id, connector),
      }),
      ...restoreGuard.protect<CryptoConnectorActivities & ClockConnectorActivities>({
        ...chain.activitiesAt(baseUrl),
        advanceBankClock: (advance) => advanceBankClock(clock, advance),
      }),
    }),
    /** Reads reports at once where customer or clock have made them due. */
    connected: (pollReports: () => void): void => {
      poll = pollReports;
    },
    stop: () => Promise.all(closers.map((close) => close())),
  };
}

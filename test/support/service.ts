import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import type { RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { NativeConnection, Worker } from '@temporalio/worker';
import type { Document } from 'mongodb';
import pino from 'pino';
import {
  createRecipientDecrypter,
  createReferenceReader,
} from '../../connectors/contract/recipients';
import { createSandboxBank } from '../../connectors/sandbox/bank';
import { createApp } from '../../src/api/app';
import type { LimitConfig } from '../../src/api/context';
import { closeServer, createHttpServer } from '../../src/api/server';
import { createLogger } from '../../src/base/log';
import { connectMongo } from '../../src/base/mongo';
import { connectLongReader } from '../../src/base/mongo-reads';
import { traceStarts } from '../../src/base/tracing/temporal';
import type { Tracing } from '../../src/base/tracing/tracing';
import { createCallbackInbox } from '../../src/callbacks/inbox';
import { SCOPES, type Scope } from '../../src/domain/account/api-key';
import { CRYPTO_METHODS } from '../../src/domain/crypto/assets';
import { omitUndefined } from '../../src/domain/defined';
import type { Env } from '../../src/domain/environment';
import { PAYMENT_METHOD_IDS } from '../../src/domain/payment/catalog';
import { connectorQueue, taskQueues } from '../../src/domain/task-queues';
import { createEncrypter } from '../../src/encryption/encrypter';
import { ensureKeys } from '../../src/encryption/ensure-keys';
import {
  createDetailsDecrypter,
  createRecipientEncrypters,
} from '../../src/encryption/recipient-keys';
import { followKeyFile } from '../../src/encryption/service-keys';
import { type Connectors, createConnectors } from '../../src/routing';
import { createRedeliveries } from '../../src/service/events/redeliveries';
import { createRequestRecorder } from '../../src/service/requests/recorder';
import { sandboxBankDatabase } from '../../src/service/sandbox-bank/movements';
import { createStores, ensureIndexes, type Stores } from '../../src/store';
import { hashKey, makeKey } from '../../src/store/keys';
import { createTemporalClient } from '../../src/temporal/client';
import { connectTemporal } from '../../src/temporal/connect';
import { runWorker } from '../../src/temporal/native';
import { createWorkers } from '../../worker/create-worker';
import type { WorkerVersion } from '../../worker/versioning';
import { workflowBundles } from './bundle';
import { useFixture } from './fixture';
import { createClient, eventually } from './http';
import { retryUntilDone } from './insist';
import { quietTemporal } from './quiet';
import type { ScriptedChain } from './scripted-chain';
import { mongodbUri, temporalAddress } from './servers';
import { createPost } from './simulate';

/** The whole product in one process, on real servers, with names of its own for everything. */
export type Service = Awaited<ReturnType<typeof startService>>;

type AppDeps = Parameters<typeof createApp>[0];

export interface ServiceOptions {
  autoplay?: boolean;
  ratePerSecond?: number;
  limits?: Partial<LimitConfig>;
  /** Off: nobody works on the lifecycles. */
  worker?: boolean;
  /** Temporal of its own; the shared one by default. */
  temporal?: string;
  /** Chain behind a connector of its own for all coins; the sandbox bank by default. */
  chain?: ScriptedChain;
  /** As its processes run: settings are cached, and commands can be counted. */
  economical?: boolean;
  /** Traces of the API and the worker; none by default. */
  tracing?: Tracing;
  /** Takes the lines of the API's log. */
  logged?: (line: string) => void;
  /** Live connectors, as `LIVE_CONNECTORS` names them, and `TASK_QUEUE_PREFIX`; none by default. */
  live?: { connectors: string; prefix: string };
  /** Test systems of banks, as `SANDBOX_CONNECTORS` names them. */
  tests?: string;
  /** Whose lifecycles are worked on; the sandbox's by default, since each takes a second to start. */
  environments?: Env[];
}

/** Stores of resources. */
type Kind = 'payments' | 'refunds' | 'payouts' | 'crypto_payments' | 'crypto_settlements';

interface AccountOptions {
  livemode?: boolean;
  scopes?: Scope[];
  methods?: string[];
}

/** Longer than a test counts commands: under load a document is read once for many requests. */
const CACHE_MS = 60_000;

const NO_LIMITS: LimitConfig = {
  RATE_LIMIT_PER_SECOND: 5_000,
  ACCOUNT_LIMIT_PER_SECOND: 5_000,
  CREATE_LIMIT_PER_SECOND: 5_000,
  SANDBOX_CREATE_LIMIT_PER_SECOND: 5_000,
  CREATES_AT_ONCE: 5_000,
};

export async function startService(options: ServiceOptions = {}) {
  const address = options.temporal ?? temporalAddress();
  quietTemporal();
  const name = randomUUID().slice(0, 8);
  const prefix = options.live?.prefix;
  const queues = buildQueues(name, prefix);
  const economical = options.economical === true;
  const mongo = await connectMongo(mongodbUri(), name, { monitorCommands: economical });
  const database = `test_${name}`;
  const log = createLogger(name, process.env['TEST_LOG_LEVEL'] === undefined ? 'silent' : 'info');
  const db = mongo.db(database);
  const stores = createStores(db, economical ? CACHE_MS : 0);
  await retryUntilDone(() => ensureIndexes(stores));
  const connection = await NativeConnection.connect({ address });
  // As in production: the native connection is for workers only.
  const { tracing } = options;
  const starts = tracing === undefined ? [] : [traceStarts(tracing)];
  const temporal = connectTemporal({ address, namespace: 'default' }, undefined, starts);
  const folder = mkdtempSync(join(tmpdir(), 'service-keys-'));
  const { KEYS_FILE: keysFile, KEYS_DIR: keysDir } = ensureKeys(folder);
  const keys = followKeyFile(keysFile);
  const encrypter = createEncrypter(keys.seal);
  const recipientEncrypters = createRecipientEncrypters(keysDir);
  const recipientDecrypter = createDetailsDecrypter(keysDir, 'sandbox');
  const now = () => new Date();
  const lifecycleQueue = queues.lifecycle;
  const connector = `sandbox-${name}`;
  const chainConnector = `chain-${name}`;
  const connectors = options.chain
    ? routeCrypto(chainConnector, connector)
    : createConnectors(connector, options.live?.connectors, options.tests);
  const allWorkers = new Set<{ stop: () => Promise<void> }>();
  const startWorkers = async (version?: WorkerVersion) => {
    // A version is a process of its own.
    const own = version && (await NativeConnection.connect({ address }));
    const workers = await createWorkers({
      connection: own ?? connection,
      version,
      tracing,
      namespace: 'default',
      databases: new Map(
        (options.environments ?? ['sandbox']).map((env) => [env, { mongo, stores }]),
      ),
      keys,
      log,
      queues,
      allowPrivateWebhooks: true,
      openLongReader: () => connectLongReader(mongodbUri(), name),
      connectors,
      workflowBundles: await workflowBundles(),
    });
    const running = workers.run();
    const end = async () => {
      workers.shutdown();
      await running;
      await own?.close();
    };
    let ending: Promise<void> | undefined;
    const started = {
      stop: () => {
        ending ??= end();
        return ending;
      },
    };
    allWorkers.add(started);
    return started;
  };
  const stopWorkers = () => Promise.all([...allWorkers].map((each) => each.stop()));
  if (options.worker !== false) await startWorkers();
  const chain = options.chain && (await startChain(connection, chainConnector, options.chain));
  const bank = await retryUntilDone(() =>
    createSandboxBank({
      mongo,
      stores,
      temporal,
      connection,
      lifecycleQueue,
      now,
      log,
      decryptRecipient: createRecipientDecrypter({
        ...{ ...stores, connector, log },
        encrypter: recipientDecrypter,
      }),
      readReference: createReferenceReader({ payouts: stores.payouts }),
      database: sandboxBankDatabase(database),
      connector,
      taskQueue: connectorQueue(connector, prefix),
      host: '127.0.0.1',
      port: 0,
      autoplay: options.autoplay ?? false,
    }),
  );
  let handle: RequestListener = (_request, response) => response.writeHead(503).end();
  const server = createHttpServer((request, response) => handle(request, response));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://localhost:${getPort(server.address())}`;
  const { logged } = options;
  const recorder = createRequestRecorder({ stores, log });
  const deps = {
    ...omitUndefined({ tracing }),
    recipientEncrypters,
    mongo,
    stores,
    keys,
    encrypter,
    now,
    log: logged === undefined ? log : createLogger(name, 'info', { write: logged }),
    config: {
      PUBLIC_URL: url,
      WEBHOOK_ALLOW_PRIVATE: 'sandbox' as const,
      ...NO_LIMITS,
      ...(options.ratePerSecond && { RATE_LIMIT_PER_SECOND: options.ratePerSecond }),
      ...options.limits,
    },
    temporal: createTemporalClient({ client: temporal, lifecycleQueue, stores, now }),
    callbacks: createCallbackInbox({ client: temporal, lifecycleQueue, stores, now }),
    redeliveries: createRedeliveries({ temporal, webhookQueue: queues.webhooks, stores, now }),
    recorder,
    connectors,
    visitCostsMax: { session: 1_000_000, account: 1_000_000 },
  };
  handle = createApp(deps).callback();
  const callable = ({ account_id, key }: { account_id: string; key: string }, livemode = false) => {
    const client = createClient(url, key);
    return {
      account_id,
      key,
      ...client,
      post: createPost(client, stores),
      /** Documents of its own. */
      count: (collection: string) => db.collection(collection).countDocuments({ account_id }),
      /** Types of the events of a resource, the oldest first. */
      events: async (resource_id: string) => {
        const rows = await stores.events.list({ account_id, livemode, resource_id, limit: 50 });
        return rows.map(({ type }) => type).reverse();
      },
    };
  };
  return {
    url,
    stores,
    mongo,
    temporal,
    bank,
    keys,
    /** Encrypt recipients as the API does. */
    recipientEncrypters,
    /** Decrypts recipients of the sandbox as its bank does. */
    recipientDecrypter,
    keysFile,
    keysDir,
    database,
    db,
    collection: <T extends Document = Document>(of: string) => db.collection<T>(of),
    connector,
    /** Connector of the coins, where there is a chain. */
    coins: chainConnector,
    queues,
    stopWorkers,
    /** Waits until a resource is stored with a status, or with an attention reason. */
    becomes: (kind: Kind, id: string, values: { status?: string; attention?: string }) =>
      eventually(`${kind} ${JSON.stringify(values)}`, async () => {
        const stored = await stores[kind].get(id);
        const wanted = { status: stored?.status, attention: stored?.attention, ...values };
        return stored?.status === wanted.status && stored?.attention === wanted.attention;
      }),
    /** Starts more workers, of a version if need be; `stop` ends them too. */
    startWorkers,
    /** Serves the API once more with other dependencies; gives all that it logs. */
    withApp: async (
      {
        config = {},
        ...changes
      }: Partial<Omit<AppDeps, 'config'>> & {
        config?: Partial<AppDeps['config']>;
      },
      run: (url: string) => Promise<void>,
    ): Promise<string> => {
      const lines: string[] = [];
      const everyLine = pino({ level: 'trace' }, { write: (line: string) => lines.push(line) });
      const own = createHttpServer(
        createApp({
          ...deps,
          log: everyLine,
          ...changes,
          config: { ...deps.config, ...config },
        }).callback(),
      );
      own.listen(0, '127.0.0.1');
      await once(own, 'listening');
      await run(`http://localhost:${getPort(own.address())}`).finally(() => closeServer(own, 100));
      return lines.join('');
    },
    /** A merchant whom the test knows, with another key. */
    withKey: async (
      { account_id }: { account_id: string },
      livemode: boolean,
      scopes?: Scope[],
    ) => {
      const key = await openKey(stores, account_id, livemode, scopes);
      return callable({ account_id, key }, livemode);
    },
    /** A merchant with a key; each has its own lists and endpoints. */
    account: async (more: AccountOptions = {}) =>
      callable(await openAccount(stores, more), more.livemode),
    stop: async () => {
      await closeServer(server, 2_000);
      await recorder.close();
      await bank.stop();
      await chain?.stop();
      await stopWorkers();
      await connection.close();
      await temporal.connection.close();
      await retryUntilDone(() => db.dropDatabase());
      await retryUntilDone(() => mongo.db(sandboxBankDatabase(database)).dropDatabase());
      await mongo.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** The product for one file's tests; a function gives options that other fixtures decide. */
export function useService(options: ServiceOptions | (() => ServiceOptions) = {}): Service {
  return useFixture(
    () => startService(typeof options === 'function' ? options() : options),
    (service) => service.stop(),
  );
}

export type Account = Awaited<ReturnType<Service['account']>>;

/** A merchant for one file's tests. */
export function useAccount(service: Service, options: AccountOptions = {}): Account {
  return useFixture(() => service.account(options));
}

function buildQueues(name: string, prefix: string | undefined) {
  if (prefix === undefined) return { lifecycle: `lifecycle-${name}`, webhooks: `webhooks-${name}` };
  const { lifecycleQueue, webhookQueue } = taskQueues(prefix);
  return { lifecycle: lifecycleQueue, webhooks: webhookQueue };
}

/** Polls a connector's queue with the activities of a scripted chain. */
async function startChain(
  connection: NativeConnection,
  connector: string,
  { activities }: ScriptedChain,
) {
  const taskQueue = connectorQueue(connector);
  const worker = await Worker.create({ connection, namespace: 'default', taskQueue, activities });
  const running = runWorker(worker);
  return {
    stop: async () => {
      worker.shutdown();
      await running;
    },
  };
}

/** Routes the coins of the sandbox to another connector than all else. */
function routeCrypto(chainConnector: string, sandbox: string): Connectors {
  const { listConnectors: serving, names, liveNames } = createConnectors(sandbox);
  const listConnectors = (method: string, livemode: boolean) =>
    !livemode && CRYPTO_METHODS.includes(method) ? [chainConnector] : serving(method, livemode);
  return {
    sandbox,
    names: [...names, chainConnector],
    liveNames,
    listConnectors,
    findConnector: (method, livemode) => listConnectors(method, livemode).at(-1),
  };
}

function getPort(address: AddressInfo | string | null): number {
  if (address === null || typeof address === 'string') throw new Error('The server has no port.');
  return address.port;
}

export async function openAccount(
  stores: Stores,
  { livemode = false, scopes = [...SCOPES], methods = [...PAYMENT_METHOD_IDS] }: AccountOptions,
) {
  const account_id = `acct_${randomUUID()}`;
  const created_at = new Date().toISOString();
  await stores.accounts.insert({
    _id: account_id,
    name: 'Test Shop',
    crypto: false,
    enabled_methods: methods,
    dashboard: { email: `${account_id}@example.com` },
    created_at,
  });
  return { account_id, key: await openKey(stores, account_id, livemode, scopes) };
}

export async function openKey(
  stores: Stores,
  account_id: string,
  livemode: boolean,
  scopes: Scope[] = [...SCOPES],
): Promise<string> {
  const key = makeKey(livemode);
  await stores.keys.insert({
    _id: `key_${randomUUID()}`,
    account_id,
    livemode,
    scopes,
    hash: hashKey(key),
    last4: key.slice(-4),
    created_at: new Date().toISOString(),
    revoked_at: null,
    last_used_at: null,
  });
  return key;
}

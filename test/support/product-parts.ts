import type { LimitConfig } from '../../src/api/context';
import type { ClockMeter } from '../../src/base/metrics';
import { connectMongo } from '../../src/base/mongo';
import { traceStarts } from '../../src/base/tracing/temporal';
import type { Tracing } from '../../src/base/tracing/tracing';
import { createCallbackInbox } from '../../src/callbacks/inbox';
import { CRYPTO_METHODS } from '../../src/domain/crypto/assets';
import { omitUndefined } from '../../src/domain/defined';
import type { Env } from '../../src/domain/environment';
import { taskQueues } from '../../src/domain/task-queues';
import { createEncrypter } from '../../src/encryption/encrypter';
import { ensureKeys } from '../../src/encryption/ensure-keys';
import {
  createDetailsDecrypter,
  createRecipientEncrypters,
} from '../../src/encryption/recipient-keys';
import { followKeyFile } from '../../src/encryption/service-keys';
import { type Connectors, createConnectors } from '../../src/routing';
import { createRedeliveries } from '../../src/service/events/redeliveries';
import { createRequestRecorder } from '../../src/service/events/requests';
import { createStores } from '../../src/store';
import { connectTemporal } from '../../src/temporal/access';
import { createTemporalClient } from '../../src/temporal/client';
import { signAsProcesses } from './audit';
import type { ScriptedChain } from './scripted-chain';
import { mongodbUri, type ProductPlace, temporalAddress } from './servers';
import { createTestLogger } from './test-log';

export interface ProductOptions {
  autoplay?: boolean;
  /** Off: no worker takes the lifecycles. */
  worker?: boolean;
  /** Temporal of its own; the shared one by default. */
  temporal?: string;
  /** Chain behind a connector of its own for all assets; the sandbox bank by default. */
  chain?: ScriptedChain;
  /** Caches settings as its processes do, and counts commands. */
  economical?: boolean;
  /** Traces of the API and the worker; none by default. */
  tracing?: Tracing;
  /** Live connectors, as `LIVE_CONNECTORS` names them, and `TASK_QUEUE_PREFIX`; none by default. */
  live?: { connectors: string; prefix: string };
  /** Test systems of banks, as `SANDBOX_CONNECTORS` names them. */
  tests?: string;
  /** Meter of the workers' clocks; none by default. */
  clock?: ClockMeter;
  /** Environments whose lifecycles are worked on; the sandbox by default, since each takes a second to start. */
  environments?: Env[];
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

export type ProductParts = Awaited<ReturnType<typeof openParts>>;

/** Stores, clients and keys of a product, wherever it runs; they start nothing. */
export async function openParts(place: ProductPlace, options: ProductOptions = {}) {
  const { name, url, folder } = place;
  const economical = options.economical === true;
  const address = options.temporal ?? temporalAddress();
  const database = `test_${name}`;
  const mongo = await connectMongo(mongodbUri(), name, { monitorCommands: economical });
  const db = mongo.db(database);
  const log = createTestLogger(name);
  const { tracing } = options;
  // As in production: the native connection is for workers only.
  const starts = tracing === undefined ? [] : [traceStarts(tracing)];
  const temporal = connectTemporal({ address, namespace: 'default' }, undefined, starts);
  const { KEYS_FILE: keysFile, KEYS_DIR: keysDir } = ensureKeys(folder);
  const keys = followKeyFile(keysFile);
  const stores = createStores(db, economical ? CACHE_MS : 0, signAsProcesses(keysDir));
  const recipientEncrypters = createRecipientEncrypters(keysDir);
  const queues = buildQueues(name, options.live?.prefix);
  const { lifecycle: lifecycleQueue, webhooks: webhookQueue } = queues;
  const connector = `sandbox-${name}`;
  const chainConnector = `chain-${name}`;
  const connectors = options.chain
    ? routeCrypto(chainConnector, connector)
    : createConnectors(connector, options.live?.connectors, options.tests);
  const now = () => new Date();
  const recorder = createRequestRecorder({ stores, log });
  const deps = {
    ...omitUndefined({ tracing }),
    recipientEncrypters,
    mongo,
    stores,
    keys,
    encrypter: createEncrypter(keys.seal),
    now,
    log,
    config: { PUBLIC_URL: url, WEBHOOK_ALLOW_PRIVATE: 'sandbox' as const, ...NO_LIMITS },
    temporal: createTemporalClient({ client: temporal, lifecycleQueue, stores, now }),
    callbacks: createCallbackInbox({ client: temporal, lifecycleQueue, stores, now, log }),
    redeliveries: createRedeliveries({ temporal, webhookQueue, stores, now }),
    recorder,
    connectors,
    visitCostsMax: { session: 1_000_000, account: 1_000_000 },
  };
  return {
    ...{ ...place, address, mongo, db, database, stores, temporal, keys, keysFile, keysDir },
    ...{ recipientEncrypters, queues, connector, chainConnector, deps },
    recipientDecrypter: createDetailsDecrypter(keysDir, 'sandbox'),
    close: async () => {
      await Promise.all([recorder.close(), deps.callbacks.close()]);
      await temporal.connection.close();
      await mongo.close();
    },
  };
}

function buildQueues(name: string, prefix: string | undefined) {
  if (prefix === undefined) return { lifecycle: `lifecycle-${name}`, webhooks: `webhooks-${name}` };
  const { lifecycleQueue, webhookQueue } = taskQueues(prefix);
  return { lifecycle: lifecycleQueue, webhooks: webhookQueue };
}

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

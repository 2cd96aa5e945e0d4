import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import type { RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { NativeConnection, Worker } from '@temporalio/worker';
import { createApp } from '../../src/api/app';
import { closeServer, createHttpServer } from '../../src/api/server';
import { connectLongReader } from '../../src/base/mongo';
import { omitUndefined } from '../../src/domain/defined';
import { connectorQueue } from '../../src/domain/task-queues';
import { sandboxBankDatabase } from '../../src/service/banks/sandbox';
import { ensureIndexes } from '../../src/store';
import { runWorker } from '../../src/temporal/native';
import { createWorkers } from '../../worker/create-worker';
import type { WorkerVersion } from '../../worker/versioning';
import { workflowBundles } from './bundle';
import { retryUntilDone } from './eventually';
import { openParts, type ProductOptions } from './product-parts';
import { quietTemporal } from './quiet';
import { openSandboxBank } from './sandbox-bank';
import type { ScriptedChain } from './scripted-chain';
import { mongodbUri } from './servers';

/** Starts the whole product in this process, on real servers, with names of its own for everything. */
export async function startProduct(options: ProductOptions = {}) {
  quietTemporal();
  let handle: RequestListener = (_request, response) => response.writeHead(503).end();
  const server = createHttpServer((request, response) => handle(request, response));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const folder = mkdtempSync(join(tmpdir(), 'service-keys-'));
  const url = `http://localhost:${getPort(server.address())}`;
  const parts = await openParts({ name: randomUUID().slice(0, 8), url, folder }, options);
  const { address, mongo, db, database, stores, queues, connector, deps } = parts;
  await retryUntilDone(() => ensureIndexes(stores));
  const connection = await NativeConnection.connect({ address });
  const allWorkers = new Set<{ stop: () => Promise<void> }>();
  const startWorkers = async (version?: WorkerVersion) => {
    // A version is a process of its own.
    const own = version && (await NativeConnection.connect({ address }));
    const environments = options.environments ?? ['sandbox'];
    const workers = await createWorkers({
      connection: own ?? connection,
      version,
      tracing: options.tracing,
      ...omitUndefined({ clock: options.clock }),
      namespace: 'default',
      databases: new Map(environments.map((env) => [env, { mongo, stores }])),
      keys: parts.keys,
      log: deps.log,
      queues,
      allowPrivateWebhooks: true,
      openLongReader: () => connectLongReader(mongodbUri(), parts.name),
      connectors: deps.connectors,
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
  const chain =
    options.chain && (await startChain(connection, parts.chainConnector, options.chain));
  const bank = await retryUntilDone(() =>
    openSandboxBank(
      {
        ...{ mongo, stores, connection, connector, log: deps.log, temporal: parts.temporal },
        lifecycleQueue: queues.lifecycle,
        taskQueuePrefix: options.live?.prefix ?? '',
      },
      { database, keysDir: parts.keysDir, autoplay: options.autoplay ?? false },
    ),
  );
  handle = createApp(deps).callback();
  return {
    parts,
    bank,
    startWorkers,
    stopWorkers,
    stop: async () => {
      await closeServer(server, 2_000);
      await bank.stop();
      await chain?.stop();
      await stopWorkers();
      await connection.close();
      await retryUntilDone(() => db.dropDatabase());
      await retryUntilDone(() => mongo.db(sandboxBankDatabase(database)).dropDatabase());
      await parts.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

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

export function getPort(address: AddressInfo | string | null): number {
  if (address === null || typeof address === 'string') throw new Error('The server has no port.');
  return address.port;
}

import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import Router from '@koa/router';
import { Client, Connection } from '@temporalio/client';
import Koa from 'koa';
import { mountHealth } from '../../src/api/health';
import { connectMongo } from '../../src/base/mongo';
import type { Env } from '../../src/domain/environment';
import { createStores } from '../../src/store';
import { createTemporalClient } from '../../src/temporal/client';
import { eventually } from '../support/http';
import { mongodbUri } from '../support/servers';
import { useService } from '../support/service';

/** Address at which nothing listens. */
const NOWHERE = '127.0.0.1:1';

// Other files would serve as its workers.
const service = useService({ worker: false });

afterEach(async () => {
  await service.stores.heartbeats.end('worker-1');
  await service.stores.heartbeats.end('worker-2');
});

async function ask(path: string, url = service.url) {
  const response = await fetch(`${url}${path}`);
  const body: unknown = await response.json();
  return { status: response.status, retryAfter: response.headers.get('Retry-After'), body };
}
const beat = (worker: string, secondsAgo = 0) =>
  service.stores.heartbeats.beat(worker, new Date(Date.now() - secondsAgo * 1_000));

/** Expects an answer, though a busy machine's servers and workers may be silent for some seconds. */
async function expectReadiness(
  expected: Awaited<ReturnType<typeof ask>>,
  begin: () => Promise<unknown> = async () => undefined,
  read = () => ask('/readyz'),
) {
  let answer: typeof expected | undefined;
  const isExpected = async () => {
    await begin();
    answer = await read();
    return JSON.stringify(answer) === JSON.stringify(expected);
  };
  await eventually('the answer of /readyz', isExpected).catch(() => undefined);
  expect(answer).toEqual(expected);
}

const READY = { status: 200, retryAfter: null, body: { status: 'ready', missing: [] } };
const missing = (...parts: string[]) => ({
  status: 503,
  retryAfter: '1',
  body: { status: 'not_ready', missing: parts },
});

test('healthz answers without a key while the process runs', async () => {
  expect(await ask('/healthz')).toEqual({
    status: 200,
    retryAfter: null,
    body: { status: 'ok' },
  });
});

test('readyz says that no worker polls, until one does', async () => {
  await expectReadiness(missing('worker'));
  await expectReadiness(READY, () => beat('worker-1'));
});

test('readyz ignores a worker that has been silent for 30 seconds', async () => {
  await expectReadiness(missing('worker'), () => beat('worker-1', 30));
  await expectReadiness(READY, () => beat('worker-2', 1));
});

test('readyz names the environment that no worker serves', async () => {
  const serve =
    (...environments: Env[]) =>
    () =>
      service.stores.heartbeats.beat('worker-1', new Date(), environments);
  await expectReadiness(missing('worker_live'), serve('sandbox'));
  await expectReadiness(missing('worker_sandbox'), serve('live'));
  const heartbeats = service.mongo
    .db(service.database)
    .collection<{ _id: string; at: Date }>('worker_heartbeats');
  // A worker of an earlier version serves both.
  const before = () =>
    heartbeats.replaceOne({ _id: 'worker-2' }, { at: new Date() }, { upsert: true });
  await expectReadiness(READY, before);
});

test('readyz ignores a worker that has ended', async () => {
  await expectReadiness(READY, () => beat('worker-1'));
  await service.stores.heartbeats.end('worker-1');
  await expectReadiness(missing('worker'));
});

test('readyz names Temporal in time when it is unavailable', async () => {
  const connection = Connection.lazy({ address: NOWHERE });
  const client = new Client({ connection });
  const router = new Router();
  mountHealth(router, {
    mongo: service.mongo,
    temporal: createTemporalClient({ ...buildClientDeps(), client }),
    heartbeats: service.stores.heartbeats,
    now: () => new Date(),
  });
  const alive = () => beat('worker-1');
  await expectReadiness(missing('temporal'), alive, () => askServer(router, '/readyz'));
  await connection.close();
});

test('readyz names MongoDB, and the workers stored there, in time when it is unavailable', async () => {
  const mongo = await connectMongo(mongodbUri(), 'health');
  const stores = createStores(mongo.db(service.database));
  await mongo.close();
  const router = new Router();
  mountHealth(router, {
    mongo,
    temporal: createTemporalClient({ ...buildClientDeps(), client: service.temporal }),
    heartbeats: stores.heartbeats,
    now: () => new Date(),
  });
  const read = () => askServer(router, '/readyz');
  await expectReadiness(missing('mongodb', 'worker'), undefined, read);
});

test('readyz names the API once its process is about to end', async () => {
  const stopping = new AbortController();
  const router = new Router();
  const { mongo, stores } = service;
  const temporal = createTemporalClient({ ...buildClientDeps(), client: service.temporal });
  const now = () => new Date();
  const { signal } = stopping;
  mountHealth(router, { mongo, temporal, heartbeats: stores.heartbeats, now, stopping: signal });
  const readWith = (query = '') => [undefined, () => askServer(router, `/readyz${query}`)] as const;
  await expectReadiness(READY, ...readWith('?only=api'));
  await expectReadiness(missing('worker'), ...readWith());
  stopping.abort();
  await expectReadiness(missing('api'), ...readWith('?only=api'));
  await expectReadiness(missing('worker', 'api'), ...readWith());
});

const buildClientDeps = () => ({
  lifecycleQueue: 'none',
  stores: service.stores,
  now: () => new Date(),
});

/** Asks a server of its own; in two seconds, and time for a busy machine. */
async function askServer(router: Router, path: string) {
  const server = createServer(new Koa().use(router.routes()).callback());
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const begun = performance.now();
  try {
    const { port } = server.address() as AddressInfo;
    return await ask(path, `http://127.0.0.1:${port}`);
  } finally {
    server.close();
    expect(performance.now() - begun).toBeLessThan(60_000);
  }
}

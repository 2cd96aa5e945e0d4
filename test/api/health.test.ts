import { once } from 'node:events';
import { createServer } from 'node:http';
import Router from '@koa/router';
import { Client, Connection } from '@temporalio/client';
import Koa from 'koa';
import { mountHealth } from '../../src/api/health';
import { connectMongo } from '../../src/base/mongo';
import type { Env } from '../../src/domain/environment';
import { createStores } from '../../src/store';
import { createTemporalClient } from '../../src/temporal/client';
import { connectTemporal } from '../../src/temporal/connect';
import { useDatabase } from '../support/database';
import { useFixture } from '../support/fixture';
import { eventually } from '../support/http';
import { getPort } from '../support/product';
import { mongodbUri, sharedProduct, temporalAddress } from '../support/servers';

/** Address at which nothing listens. */
const NOWHERE = '127.0.0.1:1';
const READY = { status: 200, retryAfter: null, body: { status: 'ready', missing: [] } };

const database = useDatabase({ indexed: false });
const temporal = useFixture(
  async () => connectTemporal({ address: temporalAddress(), namespace: 'default' }),
  ({ connection }) => connection.close(),
);

afterEach(async () => {
  await database.stores.heartbeats.end('worker-1');
  await database.stores.heartbeats.end('worker-2');
});

async function askAt(url: string) {
  const response = await fetch(url);
  const body: unknown = await response.json();
  return { status: response.status, retryAfter: response.headers.get('Retry-After'), body };
}

interface Parts {
  client?: Client;
  mongo?: Parameters<typeof mountHealth>[1]['mongo'];
  stores?: typeof database.stores;
  stopping?: AbortSignal;
}

/** Asks a server of the routes; in two seconds, and time for a busy machine. */
async function ask(
  path: string,
  { client = temporal, mongo = database.mongo, stores = database.stores, stopping }: Parts = {},
) {
  const router = new Router();
  const now = () => new Date();
  mountHealth(router, {
    ...{ mongo, heartbeats: stores.heartbeats, now, stopping },
    temporal: createTemporalClient({ client, lifecycleQueue: 'none', stores, now }),
  });
  const server = createServer(new Koa().use(router.routes()).callback());
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const begun = performance.now();
  try {
    return await askAt(`http://127.0.0.1:${getPort(server.address())}${path}`);
  } finally {
    server.close();
    expect(performance.now() - begun).toBeLessThan(60_000);
  }
}

/** Expects an answer, though a busy machine's servers and workers may be silent for some seconds. */
async function expectReadiness(
  expected: Awaited<ReturnType<typeof ask>>,
  begin: () => Promise<unknown> = async () => undefined,
  read = () => ask('/readyz'),
) {
  let answer: typeof expected | undefined;
  await eventually('the answer of /readyz', async () => {
    await begin();
    answer = await read();
    return JSON.stringify(answer) === JSON.stringify(expected);
  }).catch(() => undefined);
  expect(answer).toEqual(expected);
}

const beat = (worker: string, secondsAgo = 0) =>
  database.stores.heartbeats.beat(worker, new Date(Date.now() - secondsAgo * 1_000));
const missing = (...parts: string[]) => ({
  status: 503,
  retryAfter: '1',
  body: { status: 'not_ready', missing: parts },
});

test('healthz answers while the process runs', async () => {
  const answer = { status: 200, retryAfter: null, body: { status: 'ok' } };
  expect(await ask('/healthz')).toEqual(answer);
  expect(await askAt(`${sharedProduct().url}/healthz`)).toEqual(answer);
});

describe('readyz', () => {
  test('names the worker until one polls, and once it is silent for 30 seconds or has ended', async () => {
    await expectReadiness(missing('worker'));
    await expectReadiness(missing('worker'), () => beat('worker-1', 30));
    await expectReadiness(READY, () => beat('worker-2', 1));
    await database.stores.heartbeats.end('worker-2');
    await expectReadiness(missing('worker'));
    // The workers of the shared product send no heartbeats.
    const read = () => askAt(`${sharedProduct().url}/readyz`);
    await expectReadiness(missing('worker'), undefined, read);
  });

  test('names the environment that no worker serves', async () => {
    const serve = (environment: Env) => () =>
      database.stores.heartbeats.beat('worker-1', new Date(), [environment]);
    await expectReadiness(missing('worker_live'), serve('sandbox'));
    await expectReadiness(missing('worker_sandbox'), serve('live'));
    const heartbeats = database.db.collection<{ _id: string; at: Date }>('worker_heartbeats');
    // A worker of an earlier version serves both.
    await expectReadiness(READY, () =>
      heartbeats.replaceOne({ _id: 'worker-2' }, { at: new Date() }, { upsert: true }),
    );
  });

  test('names Temporal in time when it is unavailable', async () => {
    const connection = Connection.lazy({ address: NOWHERE });
    const client = new Client({ connection });
    await expectReadiness(
      missing('temporal'),
      () => beat('worker-1'),
      () => ask('/readyz', { client }),
    );
    await connection.close();
  });

  test('names MongoDB, and the workers stored there, in time when it is unavailable', async () => {
    const mongo = await connectMongo(mongodbUri(), 'health');
    const stores = createStores(mongo.db(database.db.databaseName));
    await mongo.close();
    const read = () => ask('/readyz', { mongo, stores });
    await expectReadiness(missing('mongodb', 'worker'), undefined, read);
  });

  test('names the API once its process is about to end, and nothing else when asked about it only', async () => {
    const stopping = new AbortController();
    const readWith = (query = '') => {
      const read = () => ask(`/readyz${query}`, { stopping: stopping.signal });
      return [undefined, read] as const;
    };
    await expectReadiness(READY, ...readWith('?only=api'));
    await expectReadiness(missing('worker'), ...readWith());
    stopping.abort();
    await expectReadiness(missing('api'), ...readWith('?only=api'));
    await expectReadiness(missing('worker', 'api'), ...readWith());
  });
});

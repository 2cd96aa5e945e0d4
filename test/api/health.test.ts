import { once } from 'node:events';
import { createServer } from 'node:http';
import Router from '@koa/router';
import { Client, Connection } from '@temporalio/client';
import Koa from 'koa';
import type { MongoClient } from 'mongodb';
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

const database = useDatabase({ indexed: false });
const temporal = useFixture(
  async () => connectTemporal({ address: temporalAddress(), namespace: 'default' }),
  ({ connection }) => connection.close(),
);

afterEach(() => database.stores.heartbeats.end('worker'));

interface Parts {
  client?: Client;
  mongo?: MongoClient;
  stopping?: AbortSignal;
}

async function askAt(url: string) {
  const response = await fetch(url);
  const body: unknown = await response.json();
  return [response.status, response.headers.get('Retry-After'), body];
}

/** Asks a server of the routes; in two seconds, and time for a busy machine. */
async function ask(
  path: string,
  { client = temporal, mongo = database.mongo, stopping }: Parts = {},
) {
  const router = new Router();
  const now = () => new Date();
  const stores = createStores(mongo.db(database.db.databaseName));
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

/** Expects parts to be missing, though a busy machine's servers and workers may be silent for some seconds. */
async function expectMissing(
  missing: string[],
  read = () => ask('/readyz'),
  begin: () => Promise<unknown> = async () => undefined,
) {
  const isReady = missing.length === 0;
  const status = isReady ? 'ready' : 'not_ready';
  const expected = [isReady ? 200 : 503, isReady ? null : '1', { status, missing }];
  let answer: unknown;
  await eventually('the answer of /readyz', async () => {
    await begin();
    answer = await read();
    return JSON.stringify(answer) === JSON.stringify(expected);
  }).catch(() => undefined);
  expect(answer).toEqual(expected);
}

const beat = (secondsAgo = 0, environments?: Env[]) => {
  const at = new Date(Date.now() - secondsAgo * 1_000);
  return database.stores.heartbeats.beat('worker', at, environments);
};

test('healthz answers while the process runs', async () => {
  const answer = [200, null, { status: 'ok' }];
  expect(await ask('/healthz')).toEqual(answer);
  expect(await askAt(`${sharedProduct().url}/healthz`)).toEqual(answer);
});

describe('readyz names', () => {
  test.each<[what: string, missing: string[], begin: () => Promise<unknown>]>([
    ['the worker without one', ['worker'], async () => undefined],
    ['nothing with a worker that polls', [], () => beat(1)],
    ['the worker when it has been silent for 30 seconds', ['worker'], () => beat(30)],
    ['live when a worker serves the sandbox alone', ['worker_live'], () => beat(0, ['sandbox'])],
    ['the sandbox when a worker serves live alone', ['worker_sandbox'], () => beat(0, ['live'])],
    [
      'the worker when it has ended',
      ['worker'],
      () => beat().then(() => database.stores.heartbeats.end('worker')),
    ],
  ])('%s', async (_what, missing, begin) => {
    await expectMissing(missing, undefined, begin);
  });

  test('the worker of the shared product, whose workers send no heartbeats', async () => {
    await expectMissing(['worker'], () => askAt(`${sharedProduct().url}/readyz`));
  });

  test('Temporal in time when it is unavailable', async () => {
    const connection = Connection.lazy({ address: NOWHERE });
    const client = new Client({ connection });
    await expectMissing(['temporal'], () => ask('/readyz', { client }), beat);
    await connection.close();
  });

  test('MongoDB, and the workers stored there, in time when it is unavailable', async () => {
    const mongo = await connectMongo(mongodbUri(), 'health');
    await mongo.close();
    await expectMissing(['mongodb', 'worker'], () => ask('/readyz', { mongo }));
  });

  test('the API once its process is about to end, and nothing else when asked about it only', async () => {
    const stopping = new AbortController();
    const parts = { stopping: stopping.signal };
    const only = () => ask('/readyz?only=api', parts);
    await expectMissing([], only);
    await expectMissing(['worker'], () => ask('/readyz', parts));
    stopping.abort();
    await expectMissing(['api'], only);
    await expectMissing(['worker', 'api'], () => ask('/readyz', parts));
  });
});

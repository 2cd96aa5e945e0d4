import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Connection } from '@temporalio/client';
import { msToTs } from '@temporalio/common/lib/time';
import { type Db, type MongoClient, MongoServerError, MongoServerSelectionError } from 'mongodb';
import { connectMongo } from '../../src/base/mongo';
import {
  MONGO_USERS,
  type MongoLogin,
  type MongoServer,
  type MongoUser,
  mongoLogin,
  mongoUri,
  prepareMongo,
  startMongo,
} from '../../stack/mongo-server';
import { prepareUsers } from '../../stack/mongo-users';
import { freePort, LOOPBACK } from '../../stack/ports';
import { mongod } from '../../stack/provision/mongod';
import { prepareRemoteTemporal, temporalCli } from '../../stack/provision/temporal';
import { startTemporal } from '../../stack/temporal-server';
import { silentProgress } from '../../stack/terminal';
import { eventually } from '../support/eventually';
import { useFixture } from '../support/fixture';
import { provisionQuietly } from '../support/programs';

const folder = mkdtempSync(join(tmpdir(), 'stack-servers-'));
let running: MongoServer | undefined;
const mongo = useFixture(
  async () => ({ executable: await provisionQuietly(mongod) }),
  async () => {
    await running?.stop();
    rmSync(folder, { recursive: true });
  },
);

const startOn = async (data: string, login?: MongoLogin, port?: number) =>
  await startMongo({
    ...{ executable: mongo.executable, port: port ?? (await freePort()), login },
    ...{ dbPath: join(folder, data), logFile: join(folder, `${data}.log`) },
  });

/** Starts the server on the same data and another port; the next test finds it running. */
async function start(login?: MongoLogin): Promise<MongoServer> {
  await running?.stop();
  running = await startOn('data', login);
  return running;
}

/** Connects as often as a busy machine misses the deadline of a connection. */
function connect(uri: string): Promise<MongoClient> {
  return eventually('a connection', () =>
    connectMongo(uri, 'mongo-server-test').catch((error) => {
      if (error instanceof MongoServerSelectionError) return undefined;
      throw error;
    }),
  );
}

async function administer<T>(uri: string, work: (db: Db) => Promise<T>): Promise<T> {
  const mongo = await connect(uri);
  return await work(mongo.db('mongo_server_test')).finally(() => mongo.close());
}

/** Adds a row. @returns those before it */
function addRow({ uri }: Pick<MongoServer, 'uri'>, _id: number): Promise<number[]> {
  return administer(uri, async (db) => {
    const rows = db.collection<{ _id: number }>('rows');
    const before = await rows.find().sort({ _id: 1 }).toArray();
    await rows.insertOne({ _id });
    return before.map((row) => row._id);
  });
}

test('an acknowledged write survives a killed server and a change of its port', async () => {
  const first = await start();
  await addRow(first, 1);
  first.kill();
  await first.exited;

  expect(await addRow(await start(), 2)).toEqual([1]);
});

test('a server never replaces another on its port', async () => {
  const taken = running ?? (await start());
  const port = Number(new URL(taken.uri).port);
  await expect(startOn('other', undefined, port)).rejects.toThrow(
    `MongoDB can't have its port ${port}: another program listens on it`,
  );
  expect(taken.hasExited()).toBe(false);
});

test('a stop does not wait for index builds', async () => {
  const { uri } = running ?? (await start());
  const preparation = prepareMongo(uri, 'payments', silentProgress, AbortSignal.abort());
  await expect(preparation).rejects.toThrow('aborted');
});

describe('a server with users', () => {
  const dataDir = mkdtempSync(join(folder, 'kept-'));
  let login = mongoLogin(dataDir);

  test('refuses other users, also on data from a server without users and on another port', async () => {
    expect(mongoLogin(dataDir)).toEqual(login);
    for (const id of [3, 4]) {
      running?.kill();
      await running?.exited;
      const server = await start(login);
      expect(await addRow(server, id)).toContain(id - 1);
      const bare = { uri: server.uri.replace(/[^/]*@/, '') };
      await expect(addRow(bare, 9)).rejects.toThrow(/requires authentication/);
    }
  });

  test('lets each process write its own collections only', async () => {
    const server = running ?? (await start(login));
    const port = Number(new URL(server.uri).port);
    const insert = (user: MongoUser, collection: string, of = 'payments') =>
      administer(mongoUri(port, login, user), async ({ client }) => {
        const rowsOf = client.db(of).collection<{ _id: string }>(collection);
        await rowsOf.insertOne({ _id: user });
        await rowsOf.updateOne({ _id: user }, { $set: { seen: true } });
        return 'updated';
      }).catch((error) => (error instanceof MongoServerError ? error.codeName : String(error)));
    const rights: [MongoUser, string, string, db?: string][] = [
      ['operator', 'accounts', 'updated'],
      ['api', 'connector_keys', 'Unauthorized'],
      ['api', 'api_keys', 'updated'],
      ['api', 'ledger_books', 'Unauthorized'],
      ['api', 'audit_log', 'Unauthorized'],
      ['worker', 'crypto_payments', 'updated'],
      ['worker', 'ledger_books', 'updated'],
      ['worker', 'entry_states', 'updated'],
      ['worker', 'journal_entries', 'Unauthorized'],
      ['worker', 'api_keys', 'Unauthorized'],
      ['sandbox_bank', 'bank_callbacks', 'updated'],
      ['sandbox_bank', 'payments', 'Unauthorized'],
      ['sandbox_bank', 'sessions', 'updated', 'payments_sandbox_bank'],
      ['api', 'sessions', 'Unauthorized', 'payments_sandbox_bank'],
    ];
    const outcomes = rights.map(([user, collection, , db]) => insert(user, collection, db));
    expect(await Promise.all(outcomes)).toEqual(rights.map(([, , outcome]) => outcome));
    const read = (uri: string, collection: string) =>
      administer(uri, ({ client }) =>
        client.db('payments').collection(collection).find().toArray(),
      );
    const users = read(mongoUri(port, login, 'sandbox_bank'), 'users');
    await expect(users).rejects.toThrow(/not authorized/);
    expect(await read(server.uri, 'audit_log')).toEqual([{ _id: 'api' }]);
  });

  test('has its address for each process in a folder of that process', async () => {
    const { host, port } = new URL((await start(login)).uri);
    const own = join(folder, 'login');
    for (const user of MONGO_USERS) mkdirSync(join(own, user), { recursive: true });
    const file = 'mongodb-login.json';
    copyFileSync(join(dataDir, file), join(own, 'operator', file));
    await prepareUsers(own, host, Number(port));
    for (const user of MONGO_USERS) {
      const address = readFileSync(join(own, user, 'uri'), 'utf8');
      expect(address).toBe(mongoUri(Number(port), login, user));
      expect(await administer(address, (db) => db.command({ ping: 1 }))).toMatchObject({ ok: 1 });
    }
  });

  test('starts with a new login after the old one was lost, and removes all other users', async () => {
    const before = running ?? (await start(login));
    await administer(before.uri, async (db) => {
      await db.command({ createRole: 'theirs', privileges: [], roles: ['readWrite'] });
      const roles = ['theirs', { role: 'root', db: 'admin' }];
      await db.command({ createUser: 'stranger', pwd: 'theirs', roles });
    });
    await before.stop();
    writeFileSync(join(dataDir, 'mongodb-login.json'), '');
    const next = mongoLogin(dataDir);
    expect(next.passwords).not.toEqual(login.passwords);
    login = next;
    const server = await start(login);
    expect(await addRow(server, 5)).toContain(4);
    await administer(server.uri, async (db) => {
      const { users } = await db.command({ usersInfo: { forAllDBs: true } });
      const names = ['api', 'operator', 'sandbox_bank', 'sepa', 'worker'];
      expect(users.map(({ user }: { user: string }) => user).toSorted()).toEqual(names);
      expect((await db.command({ rolesInfo: 1 })).roles).toEqual([]);
    });
  });

  test('starts after a start that was killed before it stored its users', async () => {
    await running?.stop();
    rmSync(join(folder, 'data', 'users-made'));
    expect(await addRow(await start(login), 6)).toContain(5);
  });
});

test('a server that ends at its start is reported with the end of its log', async () => {
  mkdirSync(join(folder, 'damaged'));
  writeFileSync(join(folder, 'damaged/WiredTiger.wt'), 'not a database');
  writeFileSync(join(folder, 'damaged/storage.bson'), 'neither');
  await expect(startOn('damaged')).rejects.toThrow(
    /MongoDB (ended|was ended) .*The end of .*damaged\.log:\n.+/s,
  );
});

/** Search attributes that operators are promised, and their wire numbers of types. */
const ATTRIBUTES = {
  ServiceResource: 2,
  ServiceStatus: 2,
  ServiceMethod: 2,
  ServiceAccount: 2,
  ServiceConnector: 2,
  ServiceCurrency: 2,
  ServiceAttention: 2,
  ServiceLivemode: 5,
  ServiceAssetAmount: 2,
  ServiceAmount: 3,
  ServiceVersion: 3,
};
const DAY_SECONDS = 24 * 3_600;

const temporal = useFixture(
  async () => {
    const [port, uiPort] = [await freePort(), await freePort()];
    const executable = await provisionQuietly(temporalCli);
    const [dbFile, logFile] = [join(folder, 'temporal.db'), join(folder, 'temporal.log')];
    const server = await startTemporal({ executable, dbFile, port, uiPort, logFile });
    const { address, stop } = server;
    const connection = await Connection.connect({ address, connectTimeout: '2 minutes' });
    return { address, uiPort, connection, stop };
  },
  async ({ connection, stop }) => {
    await connection.close();
    await stop();
  },
);

async function listAttributes(namespace: string) {
  const { operatorService } = temporal.connection;
  const { customAttributes } = await operatorService.listSearchAttributes({ namespace });
  return customAttributes ?? {};
}

async function readRetentionDays(namespace: string): Promise<number> {
  const { config } = await temporal.connection.workflowService.describeNamespace({ namespace });
  return Number(config?.workflowExecutionRetentionTtl?.seconds) / DAY_SECONDS;
}

test('the server that we start has search attributes and a web UI, keeps closed workflows for 30 days, and shows its files to their owner only', async () => {
  expect(await listAttributes('default')).toMatchObject(ATTRIBUTES);
  expect(await readRetentionDays('default')).toBe(30);
  expect(statSync(join(folder, 'temporal.db')).mode & 0o777).toBe(0o600);
  const askUi = () => fetch(`http://${LOOPBACK}:${temporal.uiPort}`).catch(() => undefined);
  expect((await eventually('an answer', askUi)).status).toBe(200);
});

test('a Temporal that is named by address gets the search attributes and keeps its retention', async () => {
  await temporal.connection.workflowService.registerNamespace({
    namespace: 'given',
    workflowExecutionRetentionPeriod: msToTs(3 * DAY_SECONDS * 1_000),
  });
  const told: string[] = [];
  const progress = { ...silentProgress, line: (text: string) => told.push(text) };
  const prepare = () =>
    prepareRemoteTemporal({ address: temporal.address, namespace: 'given' }, progress);
  await prepare();
  expect(await listAttributes('given')).toMatchObject(ATTRIBUTES);
  expect(await readRetentionDays('given')).toBe(3);
  expect(told).toEqual([expect.stringContaining('ServiceAttention')]);
  await prepare();
  expect(told).toHaveLength(1);
});

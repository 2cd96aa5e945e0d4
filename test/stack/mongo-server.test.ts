import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Db, type MongoClient, MongoServerError, MongoServerSelectionError } from 'mongodb';
import { connectMongo } from '../../src/base/mongo';
import { type MongoLogin, type MongoUser, mongoLogin } from '../../stack/mongo-login';
import { type MongoServer, mongoUri, prepareMongo, startMongo } from '../../stack/mongo-server';
import { freePort } from '../../stack/ports';
import { mongod } from '../../stack/provision/mongod';
import { cacheDirectory, provision } from '../../stack/provision/provision';
import { silentProgress } from '../../stack/terminal';
import { eventually } from '../support/http';

let folder: string;
let executable: string;
let running: MongoServer | undefined;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'stack-mongo-'));
  const context = { cacheDir: cacheDirectory(process.env), env: process.env };
  const { signal } = new AbortController();
  executable = (await provision(mongod, { ...context, progress: silentProgress, signal })).path;
});
afterAll(async () => {
  await running?.stop();
  rmSync(folder, { recursive: true });
});

/** Starts the server on the same data and another port; the next test finds it running. */
async function start(login?: MongoLogin): Promise<MongoServer> {
  const paths = { dbPath: join(folder, 'data'), logFile: join(folder, 'mongodb.log') };
  await running?.stop();
  running = await startMongo({ executable, port: await freePort(), login, ...paths });
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

async function rows(
  server: MongoServer,
): Promise<{ insert(id: number): Promise<void>; all: number[] }> {
  const mongo = await connect(server.uri);
  const collection = mongo.db('mongo_server_test').collection<{ _id: number }>('rows');
  const found = collection.find().sort({ _id: 1 }).toArray();
  const all = (await found.catch(closing(mongo))).map(({ _id }) => _id);
  return {
    all,
    insert: async (id) => {
      await collection.insertOne({ _id: id });
      await mongo.close();
    },
  };
}

/** Works on a database that is not the service's, as the operator. */
async function administer(uri: string, work: (db: Db) => Promise<void>): Promise<void> {
  const mongo = await connect(uri);
  await work(mongo.db('mongo_server_test')).finally(() => mongo.close());
}

/** Closes the connection, and fails as before. */
function closing(mongo: MongoClient) {
  return async (error: unknown): Promise<never> => {
    await mongo.close();
    throw error;
  };
}

test('an acknowledged write survives a killed server and a change of its port', async () => {
  const first = await start();
  await (await rows(first)).insert(1);
  first.kill();
  await first.exited;

  const found = await rows(await start());
  expect(found.all).toEqual([1]);
  await found.insert(2);
});

test('a server never replaces another on its port', async () => {
  const taken = running ?? (await start());
  const port = Number(new URL(taken.uri).port);
  const other = { dbPath: join(folder, 'other'), logFile: join(folder, 'other.log') };
  await expect(startMongo({ executable, port, ...other })).rejects.toThrow(
    `MongoDB can't have its port ${port}: another program listens on it`,
  );
  expect(taken.hasExited()).toBe(false);
});

test('a stop does not wait for index builds', async () => {
  const { uri } = running ?? (await start());
  const preparation = prepareMongo(uri, 'payments', silentProgress, AbortSignal.abort());
  await expect(preparation).rejects.toThrow('aborted');
});

test('a stop ends the server', async () => {
  const server = running ?? (await start());
  await server.stop();
  expect(server.hasExited()).toBe(true);
});

describe('a server with users', () => {
  let dataDir: string;
  let login: MongoLogin;

  beforeAll(() => {
    dataDir = join(folder, 'kept');
    mkdirSync(dataDir);
    login = mongoLogin(dataDir);
  });

  test('refuses other users, also on data from a server without users and on another port', async () => {
    expect(mongoLogin(dataDir)).toEqual(login);
    for (const id of [3, 4]) {
      running?.kill();
      await running?.exited;
      const server = await start(login);
      const { insert, all } = await rows(server);
      await insert(id);
      expect(all).toContain(id - 1);
      const bare = { ...server, uri: server.uri.replace(/[^/]*@/, '') };
      await expect(rows(bare)).rejects.toThrow(/requires authentication/);
    }
  });

  test('lets each process write its own collections only', async () => {
    const server = running ?? (await start(login));
    const port = Number(new URL(server.uri).port);
    const inserted = async (user: MongoUser, collection: string, db = 'payments') => {
      const mongo = await connect(mongoUri(port, login, user));
      try {
        const rowsOf = mongo.db(db).collection<{ _id: string }>(collection);
        await rowsOf.insertOne({ _id: `${user}` });
        await rowsOf.updateOne({ _id: `${user}` }, { $set: { seen: true } });
        return 'updated';
      } catch (error) {
        return error instanceof MongoServerError ? error.codeName : String(error);
      } finally {
        await mongo.close();
      }
    };
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
    const attempts = rights.map(async ([user, collection, outcome, db]) => {
      const found = await inserted(user, collection, db);
      expect([user, collection, found]).toEqual([user, collection, outcome]);
    });
    await Promise.all(attempts);
    const mongo = await connect(mongoUri(port, login, 'sandbox_bank'));
    const users = mongo.db('payments').collection('users').findOne();
    await expect(users.finally(() => mongo.close())).rejects.toThrow(/not authorized/);
    const operator = await connect(server.uri);
    const lines = operator.db('payments').collection('audit_log').find().toArray();
    expect(await lines.finally(() => operator.close())).toEqual([{ _id: 'api' }]);
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
    const { insert, all } = await rows(server);
    await insert(5);
    expect(all).toContain(4);
    await administer(server.uri, async (db) => {
      const { users } = await db.command({ usersInfo: { forAllDBs: true } });
      const names = users.map(({ _id }: { _id: string }) => _id).toSorted();
      expect(names).toEqual(
        ['api', 'operator', 'sandbox_bank', 'sepa', 'worker'].map((u) => `admin.${u}`),
      );
      expect((await db.command({ rolesInfo: 1 })).roles).toEqual([]);
    });
  });

  test('starts after a start that was killed before it stored its users', async () => {
    await running?.stop();
    rmSync(join(folder, 'data', 'users-made'));
    const { insert, all } = await rows(await start(login));
    await insert(6);
    expect(all).toContain(5);
  });
});

test('reports a server that ends at its start with the end of its log', async () => {
  const dbPath = join(folder, 'damaged');
  mkdirSync(dbPath);
  writeFileSync(join(dbPath, 'WiredTiger.wt'), 'not a database');
  writeFileSync(join(dbPath, 'storage.bson'), 'neither');
  const options = { executable, dbPath, port: await freePort() };
  await expect(startMongo({ ...options, logFile: join(folder, 'damaged.log') })).rejects.toThrow(
    /MongoDB (ended|was ended) .*The end of .*damaged\.log:\n.+/s,
  );
});

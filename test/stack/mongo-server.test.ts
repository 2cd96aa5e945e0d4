import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connectMongo, inTransaction } from '../../src/mongo';
import { type MongoServer, startMongo } from '../../stack/mongo-server';
import { freePort } from '../../stack/ports';
import { cacheDirectory, mongod, provision } from '../../stack/provision';
import { silentProgress } from '../../stack/terminal';

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

async function start(port: number): Promise<MongoServer> {
  const paths = { dbPath: join(folder, 'data'), logFile: join(folder, 'mongodb.log') };
  running = await startMongo({ executable, port, ...paths });
  return running;
}

async function rows(
  server: MongoServer,
): Promise<{ insert(id: number): Promise<void>; all: number[] }> {
  const mongo = await connectMongo(server.uri, 'mongo-server-test');
  const collection = mongo.db('mongo_server_test').collection<{ _id: number }>('rows');
  const all = (await collection.find().sort({ _id: 1 }).toArray()).map(({ _id }) => _id);
  return {
    all,
    insert: async (id) => {
      await collection.insertOne({ _id: id });
      await mongo.close();
    },
  };
}

test('an acknowledged write outlives a killed server, also when its port changes', async () => {
  const first = await start(await freePort());
  await (await rows(first)).insert(1);
  first.kill();
  await first.exited;

  const second = await start(await freePort());
  const found = await rows(second);
  expect(found.all).toEqual([1]);
  await found.insert(2);
  await second.stop();
  expect(second.hasExited()).toBe(true);
});

test('a server takes transactions', async () => {
  const server = await start(await freePort());
  const mongo = await connectMongo(server.uri, 'mongo-server-test');
  const collection = mongo.db('mongo_server_test').collection<{ _id: string }>('transactions');
  await inTransaction(mongo, async (session) => {
    await collection.insertOne({ _id: 'first' }, { session });
    await collection.insertOne({ _id: 'second' }, { session });
  });
  expect(await collection.countDocuments()).toBe(2);
  await mongo.close();
  await server.stop();
});

test('a server never takes the place of another on its port', async () => {
  const port = await freePort();
  const taken = await start(port);
  const other = { dbPath: join(folder, 'other'), logFile: join(folder, 'other.log') };
  await expect(startMongo({ executable, port, ...other })).rejects.toThrow(
    `MongoDB can't have its port ${port}: another program listens on it`,
  );
  expect(taken.hasExited()).toBe(false);
});

test('a server that ends at its start is told of with the end of its log', async () => {
  const dbPath = join(folder, 'damaged');
  mkdirSync(dbPath);
  writeFileSync(join(dbPath, 'WiredTiger.wt'), 'not a database');
  writeFileSync(join(dbPath, 'storage.bson'), 'neither');
  const options = { executable, dbPath, port: await freePort() };
  await expect(startMongo({ ...options, logFile: join(folder, 'damaged.log') })).rejects.toThrow(
    /MongoDB (ended|was ended) .*The end of .*damaged\.log:\n.+/s,
  );
});

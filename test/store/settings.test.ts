import { randomUUID } from 'node:crypto';
import os from 'node:os';
import { MongoClient } from 'mongodb';
import { Sealed } from '../../src/keys/seal';
import { createLogger } from '../../src/log';
import { connectMongo } from '../../src/mongo';
import { createStores, type Stores } from '../../src/store';
import { followSettings, type Settings } from '../../src/store/settings';
import { insist } from '../support/insist';
import { mongodbUri } from '../support/servers';

const database = `settings_${randomUUID()}`;
const log = createLogger('settings-test', 'silent');
const FINDS = new Set(['accounts', 'webhook_endpoints']);

let watched: MongoClient;
let mongo: MongoClient;
let settings: Settings;
/** Stores of a process that remembers, and of another one that changes settings. */
let here: Stores;
let elsewhere: Stores;
let finds = 0;

beforeAll(async () => {
  mongo = await connectMongo(mongodbUri(), 'settings-test');
  const options = { readConcernLevel: 'majority', monitorCommands: true } as const;
  watched = new MongoClient(mongodbUri(), { ...options, runtimeAdapters: { os } });
  watched.on('commandStarted', ({ commandName, command }) => {
    if (commandName === 'find' && FINDS.has(String(command['find']))) finds += 1;
  });
  await watched.connect();
  settings = followSettings(watched.db(database), log);
  here = createStores(watched.db(database), settings);
  elsewhere = createStores(mongo.db(database));
});

afterAll(async () => {
  await settings.close();
  await mongo.db(database).dropDatabase();
  await watched.close();
  await mongo.close();
});

async function account(): Promise<string> {
  const _id = `acct_${randomUUID()}`;
  const dashboard = { email: `${_id}@example.com`, password_hash: 'x' };
  const facts = { name: 'A', crypto: false, enabled_methods: ['ideal'], created_at: '2026-01-01' };
  await elsewhere.accounts.insert({ _id, ...facts, dashboard });
  return _id;
}

const setEndpoint = (account_id: string, url: string) => {
  const sealed = Sealed.parse('a.a.a.a.a');
  return elsewhere.endpoints.set({ account_id, livemode: false, url, sealed, now: new Date() });
};

/** Reads until nothing has to be asked of the database: it is remembered. */
async function untilRemembered(read: () => Promise<unknown>): Promise<void> {
  await insist(async () => {
    const before = finds;
    await read();
    if (finds > before) throw new Error('It was read.');
  });
}

describe('settings that a process remembers', () => {
  it('are read once, and again after another process has changed them', async () => {
    const id = await account();
    await untilRemembered(() => here.accounts.known(id));
    await elsewhere.accounts.enableMethod(id, 'visa');
    await insist(async () => {
      expect((await here.accounts.known(id))?.enabled_methods).toEqual(['ideal', 'visa']);
    });
    await untilRemembered(() => here.accounts.known(id));
  });

  it('are found as soon as they exist: no absence is remembered', async () => {
    const id = await account();
    expect(await here.endpoints.known(id, false)).toBeNull();
    await setEndpoint(id, 'https://one.example/');
    expect((await here.endpoints.known(id, false))?.url).toBe('https://one.example/');
  });

  it('are gone once they were removed, and the other environment has its own', async () => {
    const id = await account();
    await setEndpoint(id, 'https://one.example/');
    await untilRemembered(() => here.endpoints.known(id, false));
    expect(await here.endpoints.known(id, true)).toBeNull();
    await elsewhere.endpoints.remove(id, false);
    await insist(async () => expect(await here.endpoints.known(id, false)).toBeNull());
  });

  it('are read each time once they are followed no more', async () => {
    const id = await account();
    const own = followSettings(watched.db(database), log);
    const stores = createStores(watched.db(database), own);
    await untilRemembered(() => stores.accounts.known(id));
    await own.close();
    await elsewhere.accounts.enableMethod(id, 'visa');
    expect((await stores.accounts.known(id))?.enabled_methods).toEqual(['ideal', 'visa']);
  });

  it('are dropped when the server ends the stream, and followed again', async () => {
    const id = await account();
    await untilRemembered(() => here.accounts.known(id));
    const { cursor } = await cursors();
    const before = finds;
    await watched.db(database).command({ killCursors: '$cmd.aggregate', cursors: cursor });
    await insist(async () => {
      await here.accounts.known(id);
      if (finds === before) throw new Error('It is remembered.');
    });
    await untilRemembered(() => here.accounts.known(id));
  });
});

/** The change streams that stand open. */
async function cursors() {
  const admin = watched.db('admin');
  const stages = [{ $currentOp: { idleCursors: true, allUsers: true } }];
  const found = await admin.aggregate(stages, { readConcern: { level: 'local' } }).toArray();
  const own = found.filter(({ ns }) => String(ns).startsWith(`${database}.`));
  return { cursor: own.flatMap(({ cursor }) => (cursor === undefined ? [] : [cursor.cursorId])) };
}

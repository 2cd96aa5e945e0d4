import { createHash, randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Db, MongoClient, MongoServerError } from 'mongodb';
import { z } from 'zod';
import { describeError, OperationalError } from '../src/base/errors';
import { connectToBuild } from '../src/base/mongo-indexes';
import { RUNTIME_ADAPTERS } from '../src/base/runtime-adapters';
import { ServiceError } from '../src/domain/errors';
import { SEPA_CONNECTOR } from '../src/service/banks/sepa/book';
import { connectorRole, serviceRoles } from '../src/service/installation/database';
import { createStores, ensureIndexes } from '../src/store';
import { type Child, orAborted, startChild, waitUntilUp } from './child-process';
import { readJson, replaceFile } from './data-dir';
import { LOOPBACK, needPortFor } from './ports';
import type { Progress } from './terminal';

const PROCESSES = ['api', 'worker', 'sandbox_bank', 'sepa'] as const;
export const MONGO_USERS = ['operator', ...PROCESSES] as const;
const Passwords = z.record(z.enum(MONGO_USERS), z.string());

export type MongoUser = (typeof MONGO_USERS)[number];

export interface MongoLogin {
  passwords: z.infer<typeof Passwords>;
  /** The server requires a key even for one node. */
  keyFile: string;
}

const REPLICA_SET = 'payments';
const UP_MS_MAX = 60_000;
const STOP_MS_MAX = 6_000;
const UNAUTHORIZED = 13;
const ALREADY_INITIALIZED = 23;
/** Server's minimum; the passwords are long and random. */
const PASSWORD_ROUNDS = 5_000;

/** A killed process's transaction locks a merchant's balance for so long; by default a minute. */
const TRANSACTION_SECONDS_MAX = 3;

export interface MongoOptions {
  executable: string;
  dbPath: string;
  port: number;
  logFile: string;
  signal?: AbortSignal;
  login?: MongoLogin;
  database?: string;
}

export interface MongoServer extends Child {
  uri: string;
}

/** Replaces a missing or damaged login (mode 0600). */
export function mongoLogin(dataDir: string): MongoLogin {
  const path = join(dataDir, 'mongodb-login.json');
  const keyFile = join(dataDir, 'mongodb.key');
  const makeSecret = () => randomBytes(32).toString('hex');
  // A set of one node may have a new key at each start.
  replaceFile(keyFile, `${makeSecret()}\n`);
  const stored = readJson(path, Passwords);
  if (stored !== undefined) return { passwords: stored, keyFile };
  const passwords = Passwords.parse(
    Object.fromEntries(MONGO_USERS.map((user) => [user, makeSecret()])),
  );
  replaceFile(path, `${JSON.stringify(passwords, null, 2)}\n`);
  return { passwords, keyFile };
}

export function mongoUri(port: number, login?: MongoLogin, user: MongoUser = 'operator'): string {
  const who = login === undefined ? '' : `${user}:${login.passwords[user]}@`;
  return `mongodb://${who}${LOOPBACK}:${port}/?replicaSet=${REPLICA_SET}`;
}

/**
 * Starts a replica set of one node (transactions need one), for this machine only. Resolves once it
 * is primary.
 * @throws OperationalError with the end of its log if it does not come up
 */
export async function startMongo(options: MongoOptions): Promise<MongoServer> {
  const { login, ...openOptions } = options;
  if (login === undefined) return await start(openOptions);
  const markerFile = join(options.dbPath, 'users-made');
  const passwordHash = createHash('sha256').update(JSON.stringify(login.passwords)).digest('hex');
  const isNew = !existsSync(options.dbPath);
  const hasUsers = existsSync(markerFile) && readFileSync(markerFile, 'utf8') === passwordHash;
  if (!isNew && !hasUsers) {
    // A server without authentication lets us drop users without known passwords, and change the node's port.
    const open = await start(openOptions);
    await orAborted(asNobody(openOptions, dropUsers), options.signal).finally(() => open.stop());
  }
  const server = await start(options);
  if (!hasUsers) replaceFile(markerFile, passwordHash);
  return server;
}

async function start(options: MongoOptions): Promise<MongoServer> {
  const { login } = options;
  const rounds = `scramSHA256IterationCount=${PASSWORD_ROUNDS}`;
  await needPortFor('MongoDB', options.port);
  mkdirSync(options.dbPath, { recursive: true });
  const child = await startChild({
    name: 'MongoDB',
    command: options.executable,
    args: [
      ...['--dbpath', options.dbPath, '--port', String(options.port), '--bind_ip', LOOPBACK],
      ...['--replSet', REPLICA_SET, '--storageEngine', 'wiredTiger'],
      ...['--wiredTigerCacheSizeGB', '1', '--nounixsocket'],
      ...['--oplogSize', '1024'],
      ...['--setParameter', `transactionLifetimeLimitSeconds=${TRANSACTION_SECONDS_MAX}`],
      ...(login ? ['--auth', '--keyFile', login.keyFile, '--setParameter', rounds] : []),
    ],
    logFile: options.logFile,
    graceMs: STOP_MS_MAX,
  });
  try {
    const { logFile, signal } = options;
    await waitUntilUp(child, logFile, UP_MS_MAX, () => becomePrimary(options), signal);
  } catch (error) {
    await child.stop();
    throw error;
  }
  return { ...child, uri: mongoUri(options.port, options.login) };
}

/**
 * Builds the indexes, which may take hours; a server of others goes on without us after `signal`.
 * @throws OperationalError if an index can't be created, or the database has another format
 */
export async function prepareMongo(
  uri: string,
  database: string,
  progress: Pick<Progress, 'line'>,
  signal?: AbortSignal,
): Promise<void> {
  const mongo = await connectToBuild(uri);
  try {
    await orAborted(ensureIndexes(createStores(mongo.db(database))), signal);
  } catch (error) {
    if (error instanceof ServiceError) throw new OperationalError(error.message);
    if (!(error instanceof MongoServerError)) throw error;
    if (error.code !== UNAUTHORIZED) {
      throw new OperationalError(`An index of ${database} can't be made: ${describeError(error)}`);
    }
    progress.line('MongoDB: the user of MONGODB_URI may not make indexes (`migrate` does)');
  } finally {
    await mongo.close();
  }
}

/** Makes a server a replica set of one node, with users where there is a login. */
export async function becomePrimary(access: Access): Promise<void> {
  const hello = await asNobody(access, (admin) => admin.command({ hello: 1 }));
  if (hello['isWritablePrimary'] === true) return await makeUsers(access);
  if (hello['setName'] === undefined) await initiate(access);
  throw new Error('it is not primary yet');
}

async function initiate(access: Access): Promise<void> {
  const { port, host = `${LOOPBACK}:${port}` } = access;
  const members = [{ _id: 0, host }];
  try {
    const first = { replSetInitiate: { _id: REPLICA_SET, members } };
    await asNobody(access, (admin) => admin.command(first));
  } catch (error) {
    // Once there are users, an anonymous client does not learn that the set exists.
    if (!isServerError(error, ALREADY_INITIALIZED, UNAUTHORIZED)) throw error;
    // The set of an earlier start may know this node by another port.
    const runAs = error.code === UNAUTHORIZED ? asOperator : asNobody;
    await runAs(access, async (admin) => {
      const { config } = await admin.command({ replSetGetConfig: 1 });
      if (config.members[0]?.host === members[0]?.host) return;
      const newConfig = { ...config, version: config.version + 1, members };
      await admin.command({ replSetReconfig: newConfig, force: true });
    });
  }
}

const DATABASE = 'payments';
const CALL_MS_MAX = 2_000;
const AUTHENTICATION_FAILED = 18;
const OPERATOR_ROLES = ['root', '__system'];
/** Each further mechanism takes time to set up. */
const SCRAM = { mechanisms: ['SCRAM-SHA-256'] };

interface Access {
  port: number;
  /** By which clients of the set find it; this machine by default. */
  host?: string;
  login?: MongoLogin;
  database?: string;
}

const Users = z.object({ users: z.array(z.object({ user: z.string() })) });
const Roles = z.object({ roles: z.array(z.object({ role: z.string() })) });

/** Creates missing users and roles; it may be interrupted and run again. */
async function makeUsers(access: Access): Promise<void> {
  const { login, database = DATABASE } = access;
  if (login === undefined) return;
  const { passwords } = login;
  const allow = (admin: Db) => allowProcesses(admin, passwords, database);
  try {
    await asOperator(access, allow);
  } catch (error) {
    if (!isServerError(error, AUTHENTICATION_FAILED)) throw error;
    const roles = OPERATOR_ROLES.map((role) => ({ role, db: 'admin' }));
    // An anonymous local client may create only the first user.
    await asNobody(access, (admin) =>
      admin.command({ createUser: 'operator', pwd: passwords.operator, roles, ...SCRAM }),
    );
    await asOperator(access, allow);
  }
}

async function allowProcesses(
  admin: Db,
  passwords: MongoLogin['passwords'],
  database: string,
): Promise<void> {
  const { users } = Users.parse(await admin.command({ usersInfo: 1 }));
  const { roles } = Roles.parse(await admin.command({ rolesInfo: 1 }));
  const processRoles = {
    ...serviceRoles(database),
    sandbox_bank: connectorRole(database, 'sandbox_bank'),
    sepa: connectorRole(database, SEPA_CONNECTOR),
  };
  for (const name of PROCESSES) {
    const { role, privileges } = processRoles[name];
    const isMade = roles.some((existing) => existing.role === role);
    const roleCommand = isMade ? { updateRole: role } : { createRole: role };
    await admin.command({ ...roleCommand, privileges, roles: [] });
    const access = { roles: [{ role, db: 'admin' }], ...SCRAM };
    const isKnown = users.some(({ user }) => user === name);
    await admin.command(
      isKnown
        ? { updateUser: name, ...access }
        : { createUser: name, pwd: passwords[name], ...access },
    );
  }
}

/** Drops all users and roles: while one user exists, no anonymous client may create the first. */
async function dropUsers(admin: Db): Promise<void> {
  for (const [collection, command] of [
    ['system.users', 'dropAllUsersFromDatabase'],
    ['system.roles', 'dropAllRolesFromDatabase'],
  ] as const) {
    for (const name of await admin.collection(collection).distinct('db')) {
      await admin.client.db(String(name)).command({ [command]: 1 });
    }
  }
}

function isServerError(error: unknown, ...codes: number[]): error is MongoServerError {
  return error instanceof MongoServerError && codes.includes(Number(error.code));
}

function asNobody<T>({ port }: Access, work: (admin: Db) => Promise<T>): Promise<T> {
  return withAdmin(`${LOOPBACK}:${port}`, work);
}

function asOperator<T>({ port, login }: Access, work: (admin: Db) => Promise<T>): Promise<T> {
  const user = login === undefined ? '' : `operator:${login.passwords.operator}@`;
  return withAdmin(`${user}${LOOPBACK}:${port}`, work);
}

async function withAdmin<T>(host: string, work: (admin: Db) => Promise<T>): Promise<T> {
  const client = new MongoClient(`mongodb://${host}/?directConnection=true`, {
    serverSelectionTimeoutMS: CALL_MS_MAX,
    connectTimeoutMS: CALL_MS_MAX,
    socketTimeoutMS: CALL_MS_MAX * 5,
    runtimeAdapters: RUNTIME_ADAPTERS,
  });
  try {
    return await work(client.db('admin'));
  } finally {
    await client.close();
  }
}

import { type Db, MongoClient, MongoServerError } from 'mongodb';
import { z } from 'zod';
import { RUNTIME_ADAPTERS } from '../src/base/runtime-adapters';
import { connectorRole, serviceRoles } from '../src/service/mongo-roles';
import { SEPA_CONNECTOR } from '../src/service/sepa/book';
import type { MongoLogin, MongoUser } from './mongo-login';
import { LOOPBACK } from './ports';

const DATABASE = 'payments';
const CALL_MS_MAX = 2_000;
const AUTHENTICATION_FAILED = 18;
const PROCESSES = ['api', 'worker', 'sandbox_bank', 'sepa'] as const satisfies readonly MongoUser[];
const OPERATOR_ROLES = ['root', '__system'];
/** Each further mechanism takes time to set up. */
const SCRAM = { mechanisms: ['SCRAM-SHA-256'] };

export interface Access {
  port: number;
  login?: MongoLogin;
  database?: string;
}

const Users = z.object({ users: z.array(z.object({ user: z.string() })) });
const Roles = z.object({ roles: z.array(z.object({ role: z.string() })) });

/** Creates missing users and roles; it may be interrupted and run again. */
export async function makeUsers(access: Access): Promise<void> {
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
export async function dropUsers(admin: Db): Promise<void> {
  for (const [collection, command] of [
    ['system.users', 'dropAllUsersFromDatabase'],
    ['system.roles', 'dropAllRolesFromDatabase'],
  ] as const) {
    for (const name of await admin.collection(collection).distinct('db')) {
      await admin.client.db(String(name)).command({ [command]: 1 });
    }
  }
}

export function isServerError(error: unknown, ...codes: number[]): error is MongoServerError {
  return error instanceof MongoServerError && codes.includes(Number(error.code));
}

export function asNobody<T>({ port }: Access, work: (admin: Db) => Promise<T>): Promise<T> {
  return withAdmin(`${LOOPBACK}:${port}`, work);
}

export function asOperator<T>(
  { port, login }: Access,
  work: (admin: Db) => Promise<T>,
): Promise<T> {
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

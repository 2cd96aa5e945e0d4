import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Db } from 'mongodb';
import { z } from 'zod';
import { checkConnector } from '../../connectors/conformance/check';
import { connectMongo } from '../../src/base/mongo';
import { createContext } from '../../src/cli/context';
import { runCli, runIn } from '../../src/cli/program';
import { readSettings } from '../../src/cli/settings';
import type { OperatorRole } from '../../src/domain/operators/operator-act';
import { createAuditKeys } from '../../src/encryption/audit-keys';
import { ensureKeys } from '../../src/encryption/ensure-keys';
import { createOperatorDeps, createReadDeps } from '../../src/service/operators/deps';
import { createOperator } from '../../src/service/operators/keys';
import { createStores } from '../../src/store';
import { operatorsAudit, signAsProcesses } from '../support/audit';
import { eventually, retryUntilDone } from '../support/eventually';
import { useFixture } from '../support/fixture';
import { NOT_DONE } from '../support/not-done';
import { openRebuilder } from '../support/rebuilder';
import { mongodbUri, temporalAddress } from '../support/servers';
import type { Service } from '../support/service';

export const CreatedAccount = z.strictObject({
  account_id: z.string(),
  sandbox_key: z.string(),
  live_key: z.string(),
  dashboard_email: z.string(),
  dashboard_password: z.string(),
});

export const CliError = z.strictObject({
  error: z.strictObject({ code: z.string(), message: z.string() }),
});

interface Outcome {
  exit: number;
  stdout: string;
  stderr: string;
}

let auditKeys: string | undefined;
afterAll(() => {
  if (auditKeys !== undefined) rmSync(auditKeys, { recursive: true, force: true });
});

/** Lends keys that sign the audit log to a command line without any. */
function lendKeys(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  if ('KEYS_DIR' in env) return env;
  auditKeys ??= mkdtempSync(join(tmpdir(), 'cli-keys-'));
  createAuditKeys(auditKeys, new Date());
  return { ...env, KEYS_DIR: auditKeys };
}

const LOADS = { openRebuilder, checkConnector };

/** Opens a command line as `createContext` does, and what it has written. */
function openOutput(env: NodeJS.ProcessEnv, args: readonly string[]) {
  const written = { stdout: '', stderr: '' };
  const write = (name: keyof typeof written) => (text: string) => {
    written[name] += text;
  };
  const io = { env, stdout: write('stdout'), stderr: write('stderr') };
  return { written, io, opened: createContext(io, args.includes('--json'), LOADS) };
}

/** Runs the command line once, as `main.ts` does. */
export async function run(env: NodeJS.ProcessEnv, ...args: string[]): Promise<Outcome> {
  const { written, io } = openOutput(lendKeys(env), args);
  return { exit: await runCli(args, io, LOADS), ...written };
}

type Opened = ReturnType<typeof createContext>;
/** Command lines by their settings. A connection costs more than most commands do. */
const open = new Map<string, Opened>();
const failed: Opened[] = [];
afterAll(async () => {
  await Promise.all([...open.values(), ...failed].map(({ close }) => close()));
});

/** As `run`, over connections that stay open until the file ends. */
async function runOpen(env: NodeJS.ProcessEnv, ...args: string[]): Promise<Outcome> {
  const lent = lendKeys(env);
  const settings = JSON.stringify(lent);
  const { written, io, opened } = openOutput(lent, args);
  const first = open.get(settings) ?? opened;
  open.set(settings, first);
  const { isJson, print, progress } = opened.context;
  const exit = await runIn({ ...first.context, isJson, print, progress }, args, io);
  // A connection that was not made is not tried again.
  if (/MongoDB|Temporal/.test(written.stderr) && open.delete(settings)) failed.push(first);
  return { exit, ...written };
}

/** A command line with `--json`, whose connections end when it is closed. */
export function openCommandLine(env: NodeJS.ProcessEnv) {
  const { cli } = commandsIn(env);
  return {
    cli: (...args: string[]) => cli(...args, '--json'),
    close: async () => {
      const settings = JSON.stringify(lendKeys(env));
      await open.get(settings)?.close();
      open.delete(settings);
    },
  };
}

/** Splits a command line as a shell does; what follows a pipe is no part of it. */
export function splitWords(line: string): string[] {
  const words: string[] = line.match(/"[^"]*"|[^\s\\]+/g) ?? [];
  const end = words.indexOf('|');
  return words.slice(0, end === -1 ? undefined : end).map((word) => word.replaceAll('"', ''));
}

/**
 * Commands with these settings, repeated while a busy machine keeps them from doing anything. Each is
 * a line as in a shell, with more words behind it.
 */
export function commandsIn(env: NodeJS.ProcessEnv, runOnce = runOpen) {
  const cli = (...[line = '', ...more]: string[]) =>
    eventually(`${line} ${more.join(' ')}`, async () => {
      const outcome = await runOnce(env, ...splitWords(line), ...more);
      return !NOT_DONE.test(outcome.stderr) && outcome;
    });
  return {
    env,
    cli,
    json: async (...args: string[]): Promise<unknown> => {
      const { exit, stdout, stderr } = await cli(...args, '--json');
      if (exit !== 0 || stderr !== '') throw new Error(`${args.join(' ')}: ${stderr}`);
      return JSON.parse(stdout);
    },
    /** The `code` and `message` of a command that is refused. */
    refusal: async (...args: string[]) => {
      const { exit, stdout, stderr } = await cli(...args, '--json');
      expect({ exit, stdout }).toEqual({ exit: 1, stdout: '' });
      return CliError.parse(JSON.parse(stderr)).error;
    },
  };
}

/** A command line with the key of a new operator, as live needs it. */
export async function asOperator(
  { env }: Pick<ReturnType<typeof commandsIn>, 'env'>,
  name = 'mia',
  role: OperatorRole = 'operator',
  more: NodeJS.ProcessEnv = {},
) {
  const { mongodb, keysDir } = readSettings(lendKeys(env));
  const mongo = await connectMongo(mongodb.uri, 'cli-test');
  try {
    const deps = await createOperatorDeps(createReadDeps(mongo, mongodb.db, { keysDir }));
    const { key } = await createOperator(deps, { name, role });
    return commandsIn({ ...env, OPERATOR_KEY: key, ...more });
  } finally {
    await mongo.close();
  }
}

/** Runs a command that a second operator approves, and again where it then prints a secret. */
export async function runApproved(
  commands: Pick<ReturnType<typeof commandsIn>, 'env'>,
  ...args: string[]
): Promise<unknown> {
  const why = ['--reason', 'Ticket 42'];
  const requester = await asOperator(commands, `requester ${randomUUID()}`);
  const approver = await asOperator(commands, `approver ${randomUUID()}`, 'approver');
  const { approval_id, operation_id } = Object(await requester.json(...args, ...why));
  const approved = await approver.json(`approval approve ${approval_id}`, ...why);
  if (operation_id === undefined) return approved;
  return await requester.json(...args, ...why, '--operation-id', operation_id);
}

/** A command line on a product, and what its commands hand to the service. */
export function useCommands(service: Service) {
  return useFixture(async () => {
    const { database, keysDir, keysFile, mongo, stores } = service;
    const deps = { mongo, stores, now: () => new Date(), audit: operatorsAudit(stores) };
    const files = { DATA_DIR: 'none', KEYS_FILE: keysFile, KEYS_DIR: keysDir };
    const env = {
      ...files,
      MONGODB_URI: mongodbUri(),
      MONGODB_DB: database,
      TEMPORAL_ADDRESS: temporalAddress(),
    };
    return { ...commandsIn(env), deps };
  });
}

export type Provisioning = Awaited<ReturnType<typeof openProvisioning>>;

/** A command line with a database and a key file of its own. */
export async function openProvisioning() {
  const folder = mkdtempSync(join(tmpdir(), 'cli-test-'));
  const keys = ensureKeys(folder);
  const mongo = await connectMongo(mongodbUri(), 'cli-test');
  const name = `cli_${randomUUID()}`;
  const db = mongo.db(name);
  const env: NodeJS.ProcessEnv = {
    DATA_DIR: folder,
    MONGODB_URI: mongodbUri(),
    MONGODB_DB: name,
    TEMPORAL_ADDRESS: temporalAddress(),
    ...keys,
    WEBHOOK_ALLOW_PRIVATE: 'sandbox',
  };
  const commands = commandsIn(env);
  const stores = createStores(db, 0, signAsProcesses(keys.KEYS_DIR));
  return {
    ...commands,
    folder,
    db,
    mongo,
    stores,
    deps: { mongo, stores, now: () => new Date(), audit: operatorsAudit(stores) },
    account: async (label = 'Acme') =>
      CreatedAccount.parse(await commands.json('account', 'create', '--name', label)),
    close: async () => {
      await retryUntilDone(() => db.dropDatabase());
      await mongo.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Everything that the database holds, as text to search in. */
export async function everythingStored(db: Db): Promise<string> {
  const names = (await db.listCollections().toArray()).map(({ name }) => name);
  const all = await Promise.all(names.map((name) => db.collection(name).find().toArray()));
  return JSON.stringify(all);
}

/** A command line for one file's tests. */
export function useProvisioning(): Provisioning {
  return useFixture(openProvisioning, (provisioning) => provisioning.close());
}

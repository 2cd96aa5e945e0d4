import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { CLEAR_TEXT_ALLOWED } from '../clear-text';
import { TASK_QUEUE_PREFIX } from '../domain/task-queues';
import { areCidrs } from '../networks';
import { type TemporalAccess, temporalAccess } from '../temporal/access';
import { reasonOf } from '../temporal/in-time';
import { APPROVAL_LIMIT } from './approval';
import { CliFailure, isMissingFile } from './failure';

/** Addresses of the servers, and the rules that the command line shares with the service. */
export interface Settings {
  mongodb: { uri: string; db: string };
  temporal: TemporalAccess;
  /** Tells the task queues from those of others in the namespace. */
  taskQueuePrefix: string;
  /** Path of the key file; undefined when neither place names it, since only sealing needs it. */
  keysFile: string | undefined;
  /** Folder of the rings that recipients have of their own; undefined without any. */
  keysDir: string | undefined;
  /** Whether sandbox endpoints may be on this machine. Live ones never. */
  allowPrivate: boolean;
  /** Networks that are kept from webhooks: CIDRs separated by commas. */
  deniedNetworks: string;
  /** Minor units above which a second operator approves a correction on live. */
  approvalLimit: number;
  /** Limit of fundings and of `mark_settled`: that of corrections, where it is set. */
  creditLimit: number;
  /** Base of the service's own links. */
  publicUrl: string;
  /** Whether servers beyond this machine may be spoken to in clear. */
  allowClearText: boolean;
  /** Live connectors, as `createConnectors` reads them. */
  liveConnectors: string;
  /** Source of the addresses, for messages. */
  source: string;
}

/** Fields read from `DATA_DIR/stack.json`. @see docs/decisions.md#running-and-provisioning */
const StackFile = z.object({
  temporal: z
    .object({
      address: z.string(),
      namespace: z.string().optional(),
      /** Null where the server was given by address. */
      ui_url: z.string().nullish(),
    })
    .optional(),
  mongodb: z.object({ uri: z.string() }).optional(),
  settings: z
    .object({
      MONGODB_DB: z.string(),
      TASK_QUEUE_PREFIX: z.string(),
      KEYS_FILE: z.string(),
      WEBHOOK_ALLOW_PRIVATE: z.string(),
      PUBLIC_URL: z.string(),
      LIVE_CONNECTORS: z.string(),
    })
    .partial()
    .optional(),
});

type Environment = Partial<Record<string, string>>;

const DEFAULT_DB = 'payments';
const DEFAULT_URL = 'http://localhost:8080';

/**
 * Reads the environment first, then the file of the stack that runs here. A stack file of another
 * database than the environment's is left alone: its sealing keys would be the wrong ones.
 * @throws CliFailure `no_stack` when neither says where MongoDB is; `stack_file_invalid`;
 *   `setting_invalid`.
 */
export function readSettings(env: NodeJS.ProcessEnv): Settings {
  const given: Environment = Object.fromEntries(
    Object.entries(env).filter(([, value]) => value !== undefined && value !== ''),
  );
  const path = join(given['DATA_DIR'] ?? '.data', 'stack.json');
  const file = readStackFile(path);
  const stack = file !== undefined && isSameDatabase(given, file) ? file : undefined;
  const uri = given['MONGODB_URI'] ?? stack?.mongodb?.uri;
  if (uri === undefined) {
    throw new CliFailure(
      'no_stack',
      `No stack is running here (nothing in ${path}): run \`npm start\`, or set MONGODB_URI ` +
        'to the database of the one you mean.',
    );
  }
  return {
    mongodb: { uri, db: given['MONGODB_DB'] ?? stack?.settings?.MONGODB_DB ?? DEFAULT_DB },
    temporal: readTemporal(given, stack?.temporal),
    taskQueuePrefix: readTaskQueuePrefix(
      given['TASK_QUEUE_PREFIX'] ?? stack?.settings?.TASK_QUEUE_PREFIX ?? '',
    ),
    keysFile: given['KEYS_FILE'] ?? stack?.settings?.KEYS_FILE,
    keysDir: given['KEYS_DIR'],
    allowPrivate: readAllowPrivate(
      given['WEBHOOK_ALLOW_PRIVATE'] ?? stack?.settings?.WEBHOOK_ALLOW_PRIVATE ?? '',
    ),
    deniedNetworks: readDeniedNetworks(given['WEBHOOK_DENY_CIDRS'] ?? ''),
    approvalLimit: readApprovalLimit(given['APPROVAL_LIMIT'], APPROVAL_LIMIT),
    creditLimit: readApprovalLimit(given['APPROVAL_LIMIT'], Number.POSITIVE_INFINITY),
    publicUrl: (given['PUBLIC_URL'] ?? stack?.settings?.PUBLIC_URL ?? DEFAULT_URL).replace(
      /\/+$/,
      '',
    ),
    allowClearText: given['ALLOW_CLEAR_TEXT'] === CLEAR_TEXT_ALLOWED,
    liveConnectors: given['LIVE_CONNECTORS'] ?? stack?.settings?.LIVE_CONNECTORS ?? '',
    source: given['MONGODB_URI'] === undefined ? path : 'the environment',
  };
}

function readStackFile(path: string): z.infer<typeof StackFile> | undefined {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    if (isMissingFile(error)) return undefined;
    throw new CliFailure('stack_file_invalid', `${path} can not be read: ${reasonOf(error)}`);
  }
  const parsed = StackFile.safeParse(parseJson(text));
  if (parsed.success) return parsed.data;
  throw new CliFailure('stack_file_invalid', `${path} is not the file that \`npm start\` writes.`);
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function isSameDatabase(given: Environment, stack: z.infer<typeof StackFile>): boolean {
  const { MONGODB_URI, MONGODB_DB } = given;
  const isSameServer = MONGODB_URI === undefined || MONGODB_URI === stack.mongodb?.uri;
  const stackDb = stack.settings?.MONGODB_DB ?? DEFAULT_DB;
  return isSameServer && (MONGODB_DB === undefined || MONGODB_DB === stackDb);
}

/** The server of a stack that runs here has no TLS and asks for no key, whatever is set for others. */
function readTemporal(
  given: Environment,
  stack: z.infer<typeof StackFile>['temporal'],
): TemporalAccess {
  const isOwn = given['TEMPORAL_ADDRESS'] === undefined && typeof stack?.ui_url === 'string';
  const { TEMPORAL_NAMESPACE } = given;
  try {
    return temporalAccess(isOwn ? { TEMPORAL_NAMESPACE } : given, stack);
  } catch (error) {
    throw new CliFailure('setting_invalid', reasonOf(error));
  }
}

function readApprovalLimit(value: string | undefined, otherwise: number): number {
  if (value === undefined) return otherwise;
  if (/^\d{1,11}$/.test(value)) return Number(value);
  throw new CliFailure(
    'setting_invalid',
    `APPROVAL_LIMIT is "${value}": it must be a whole number of minor units.`,
  );
}

function readTaskQueuePrefix(value: string): string {
  if (TASK_QUEUE_PREFIX.test(value)) return value;
  throw new CliFailure(
    'setting_invalid',
    `TASK_QUEUE_PREFIX is "${value}": it must be up to 64 letters, digits, hyphens and underscores.`,
  );
}

function readDeniedNetworks(value: string): string {
  if (value === '' || areCidrs(value)) return value;
  throw new CliFailure(
    'setting_invalid',
    `WEBHOOK_DENY_CIDRS is "${value}": it must be CIDRs separated by commas.`,
  );
}

function readAllowPrivate(value: string): boolean {
  if (value === '' || value === 'sandbox') return value === 'sandbox';
  throw new CliFailure(
    'setting_invalid',
    `WEBHOOK_ALLOW_PRIVATE is "${value}": it must be "sandbox" or empty.`,
  );
}

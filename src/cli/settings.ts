import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { z } from 'zod';
import { describeError, isMissingFile } from '../base/errors';
import { PROGRAM } from '../base/program';
import { PLAIN_TEXT_ALLOWED } from '../base/tls';
import { ServiceError } from '../domain/errors';
import { readApprovalLimits } from '../domain/operators/approval';
import { StackSettings } from '../stack-settings';
import { temporalAccess } from '../temporal/access';
import { VARIABLES } from '../variables';

export type Settings = ReturnType<typeof readSettings>;

/** Fields of `DATA_DIR/stack.json`. @see docs/decisions.md#running-and-provisioning */
const StackFile = z.object({
  temporal: z
    .object({
      address: z.string(),
      namespace: z.string().optional(),
      /** Null for an external server. */
      ui_url: z.string().nullish(),
    })
    .optional(),
  mongodb: z.object({ uri: z.string() }).optional(),
  settings: StackSettings.partial().optional(),
});

type Environment = Partial<Record<string, string>>;

const Variables = VARIABLES.pick({
  MONGODB_DB: true,
  TASK_QUEUE_PREFIX: true,
  KEYS_FILE: true,
  KEYS_DIR: true,
  WEBHOOK_ALLOW_PRIVATE: true,
  WEBHOOK_DENY_CIDRS: true,
  APPROVAL_LIMIT: true,
  APPROVAL_LIMIT_DAY: true,
  LIVE_CONNECTORS: true,
  SANDBOX_CONNECTORS: true,
  SEPA_IN_DIR: true,
  SEPA_IBAN: true,
}).partial({ KEYS_FILE: true, KEYS_DIR: true });

const DEFAULT_URL = 'http://localhost:8080';

/**
 * Reads the environment, then `DATA_DIR/stack.json`. A stack file for another database is ignored,
 * because its encryption keys would be wrong.
 * @throws ServiceError `no_stack`, `stack_file_invalid` or `setting_invalid`
 */
export function readSettings(env: NodeJS.ProcessEnv) {
  const values: Environment = Object.fromEntries(
    Object.entries(env).filter(([, value]) => value !== undefined && value !== ''),
  );
  const dataDir = values['DATA_DIR'] ?? '.data';
  const path = join(dataDir, 'stack.json');
  const file = readStackFile(path);
  const { MONGODB_URI, MONGODB_DB } = values;
  const fileDb = Variables.shape.MONGODB_DB.parse(file?.settings?.MONGODB_DB);
  const isSameServer = MONGODB_URI === undefined || MONGODB_URI === file?.mongodb?.uri;
  const isSame = isSameServer && (MONGODB_DB === undefined || MONGODB_DB === fileDb);
  const stack = isSame ? file : undefined;
  const uri = MONGODB_URI ?? stack?.mongodb?.uri;
  if (uri === undefined) {
    throw new ServiceError(
      'no_stack',
      `No stack is running here (nothing in ${path}): run \`${PROGRAM.start}\`, or set MONGODB_URI ` +
        'to the database of the one you mean.',
    );
  }
  const merged = { ...stack?.settings, ...values };
  const variables = readVariables(merged);
  const { SEPA_IN_DIR: dir, SEPA_IBAN: iban } = variables;
  return {
    mongodb: { uri, db: variables.MONGODB_DB },
    temporal: readTemporal(values, stack?.temporal),
    dataDir: resolve(dataDir),
    taskQueuePrefix: variables.TASK_QUEUE_PREFIX,
    keysFile: variables.KEYS_FILE,
    keysDir: variables.KEYS_DIR,
    /** Live endpoints are never on this machine. */
    allowPrivate: variables.WEBHOOK_ALLOW_PRIVATE === 'sandbox',
    deniedNetworks: variables.WEBHOOK_DENY_CIDRS,
    /** Sums on live above these need a second operator. */
    limits: readApprovalLimits({
      limit: variables.APPROVAL_LIMIT,
      day: variables.APPROVAL_LIMIT_DAY,
    }),
    publicUrl: (merged.PUBLIC_URL ?? DEFAULT_URL).replace(/\/+$/, ''),
    allowPlainText: values['ALLOW_CLEAR_TEXT'] === PLAIN_TEXT_ALLOWED,
    liveConnectors: variables.LIVE_CONNECTORS,
    sandboxConnectors: variables.SANDBOX_CONNECTORS,
    /** Undefined without the SEPA connector. */
    sepa: dir === '' || iban === '' ? undefined : { dir: resolve(dir), iban },
    source: MONGODB_URI === undefined ? path : 'the environment',
  };
}

function readStackFile(path: string): z.infer<typeof StackFile> | undefined {
  const refuse = (why: string) => new ServiceError('stack_file_invalid', `${path} ${why}`);
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    if (isMissingFile(error)) return undefined;
    throw refuse(`can not be read: ${describeError(error)}`);
  }
  try {
    return StackFile.parse(JSON.parse(text));
  } catch {
    throw refuse(`is not the file that \`${PROGRAM.start}\` writes.`);
  }
}

/** A local stack's server has neither TLS nor an API key. */
function readTemporal(values: Environment, stack: z.infer<typeof StackFile>['temporal']) {
  const isLocal = values['TEMPORAL_ADDRESS'] === undefined && typeof stack?.ui_url === 'string';
  const { TEMPORAL_NAMESPACE } = values;
  try {
    return temporalAccess(isLocal ? { TEMPORAL_NAMESPACE } : values, stack);
  } catch (error) {
    throw new ServiceError('setting_invalid', describeError(error));
  }
}

function readVariables(values: Environment): z.output<typeof Variables> {
  const parsed = Variables.safeParse(values);
  if (parsed.success) return parsed.data;
  const faults = parsed.error.issues.map(({ path: [name = ''], message }) => {
    const value = values[String(name)];
    return `${String(name)} is "${value}": ${message}`;
  });
  throw new ServiceError('setting_invalid', `${faults.join('. ')}.`);
}

import { setTimeout as wait } from 'node:timers/promises';
import { z } from 'zod';
import { ServiceError } from '../../domain/errors';
import { createConnectors, SANDBOX_CONNECTOR } from '../../routing';
import { assertConnectorName } from '../../service/banks/connectors';
import { connectorRole, migrate, serviceRoles } from '../../service/installation/database';
import { isKeyRingName, KEY_RING_NAMES } from '../../service/operators/key-rotation/encrypters';
import {
  continueRotation,
  createPairs,
  type KeyDeps,
  type ReencryptionResult,
  retireKey,
  rotateKeys,
  showKeys,
} from '../../service/operators/key-rotation/rotate';
import { defineCommand, defineGroup } from '../command';
import { findKeysDir, getKeysDir } from '../connections';
import type { CliContext } from '../context';
import { textOption } from '../options';
import { fields, printFields, table } from '../output';

export const migrateCommand = defineCommand({
  name: 'migrate',
  description: 'create the indexes, validators and search attributes that this version needs',
  options: z.object({ dry_run: z.boolean().default(false).describe('only list what is missing') }),
  notes: `
Run it before the processes of a new version start, which only check. Reads and writes continue. It may take
hours and be repeated. If Temporal refuses search attributes, it prints the commands that register them.`,
  example: 'migrate --dry-run',
  run: async (context, { dry_run: dryRun }) => {
    const { mongodb } = context.settings();
    const [builder, temporal] = [await context.indexBuilder(), await context.temporal()];
    const deps = { db: builder.db(mongodb.db), temporal, progress: context.progress };
    const migration = await migrate(deps, dryRun);
    const { indexes, search_attributes } = migration;
    const rows = fields([
      ['Indexes', indexes.join(', ') || 'none'],
      ['Search attributes', search_attributes.join(', ') || 'none'],
    ]);
    const isComplete = indexes.length + search_attributes.length === 0;
    const text = `${dryRun ? 'Missing:' : 'Created:'}\n${rows}`;
    context.print({ json: migration, text: isComplete ? 'Nothing is missing.' : text });
  },
});

const SANDBOX = 'sandbox_bank';

export const rolesCommand = defineCommand({
  name: 'roles',
  description: 'print the MongoDB role of each process, as lines for mongosh',
  options: z.object({
    connectors: textOption(
      'connectors of live banks, in addition to that of the sandbox',
      'a,b',
    ).optional(),
  }),
  notes: `
Give each process and the command line a user with its role, and print the roles again for each new version.
\`migrate\` and \`connector check\`, which alter collections, need readWrite and dbAdmin. \`npm start\` makes roles and users by itself.`,
  example: 'roles --connectors evm | mongosh "$MONGODB_ADMIN_URI"',
  run: (context, { connectors: list }) => {
    const names = [SANDBOX, ...(list?.split(',') ?? [])].map((name) => name.trim());
    for (const name of names) assertConnectorName(name);
    const { db } = context.settings().mongodb;
    const connectors = new Map(names.map((name) => [name, connectorRole(db, name)]));
    const service = serviceRoles(db, names.slice(1));
    const lines = [...Object.values(service), ...connectors.values()].map(
      ({ role, privileges }) => {
        const name = JSON.stringify(role);
        const body = JSON.stringify({ privileges, roles: [] });
        const createCall = `admin.createRole({ role: ${name}, ...${body} })`;
        return `admin.getRole(${name}) === null ? ${createCall} : admin.updateRole(${name}, ${body});`;
      },
    );
    context.print({
      json: { ...service, connectors: Object.fromEntries(connectors) },
      text: ["admin = db.getSiblingDB('admin');", ...lines].join('\n'),
    });
  },
});

const rotate = defineCommand({
  name: 'rotate',
  description: 'create a new current key, and re-encrypt with it what the others hold',
  options: z.object({
    force: z.boolean().default(false).describe('begin before the last rotation is complete'),
    ring: z
      .string()
      .refine(isKeyRingName, `must be ${KEY_RING_NAMES.join(', ')} or recipients.live-CONNECTOR`)
      .default('seal')
      .describe('key ring: of the service, or of recipients')
      .meta({ placeholder: 'name' }),
  }),
  notes: `
If it is interrupted, \`keys reseal\` continues. Back the key files up at once. The earlier key stays in its
file until \`keys retire\` removes it: older database backups need it.`,
  example: 'keys rotate --ring recipients.live',
  run: async (context, { force, ring: keyRing }) =>
    report(context, await rotateKeys(await keyDeps(context), force, keyRing)),
});

const split = defineCommand({
  name: 'split',
  description: 'create the keys that KEYS_DIR lacks',
  options: z.object({}),
  notes: `
KEYS_DIR then holds, for each process, audit.PROCESS.json, which signs its lines of the audit log, and
audit.public.json, which verifies them; for each environment, recipients.ENV.json, which decrypts recipients, for its
connectors, and recipients.ENV.public.json, which only encrypts, for the API; and for each connector of
LIVE_CONNECTORS that pays out its own, recipients.live-CONNECTOR.json and recipients.live-CONNECTOR.public.json.
Existing files stay. \`keys reseal\` then re-encrypts recipients for those who may pay them.`,
  example: 'keys split',
  run: async (context) => {
    const settings = context.settings();
    const [keysFile, keysDir] = [context.keysFile(), getKeysDir(settings)];
    const connectors = createConnectors(SANDBOX_CONNECTOR, settings.liveConnectors);
    const { audit, now } = await context.actingDeps();
    const paths = await createPairs({ audit, keysFile, keysDir, connectors, now });
    const text = paths.length === 0 ? 'No file was missing.' : paths.join('\n');
    context.print({ json: { written: paths }, text });
  },
});

const reseal = defineCommand({
  name: 'reseal',
  description:
    'continue a rotation that was interrupted, or encrypt for new connectors; creates no key',
  options: z.object({}),
  example: 'keys reseal',
  run: async (context) => report(context, await continueRotation(await keyDeps(context))),
});

const show = defineCommand({
  name: 'show',
  description: 'show the keys, and how much each one holds',
  options: z.object({}),
  example: 'keys show',
  run: async (context) => {
    const usage = await showKeys(await keyDeps(context));
    const currentKids = [usage.current, ...Object.values(usage.recipients)];
    const rows = usage.keys.map(({ kid, recipients, endpoints, claims, users, ...more }) => [
      kid,
      currentKids.includes(kid) ? 'current' : '',
      ...[
        recipients,
        endpoints,
        claims,
        users,
        more.connector_keys,
        more.payer_keys,
        more.evidence,
      ].map(String),
    ]);
    const counts = [
      'RECIPIENTS',
      'ENDPOINTS',
      'CLAIMS',
      'USERS',
      'CONNECTOR KEYS',
      'PAYER KEYS',
      'EVIDENCE',
    ];
    context.print({ json: usage, text: table(['KEY', '', ...counts], rows, 'There are no keys.') });
  },
});

const retire = defineCommand({
  name: 'retire',
  description: 'remove a key that holds nothing',
  options: z.object({ kid: z.string().describe('name of the key').meta({ argument: true }) }),
  example: 'keys retire k1',
  run: async (context, { kid }) => {
    const keys = await retireKey(await keyDeps(context), kid);
    const text = `The key ${kid} is removed. Left: ${keys.join(', ')}.`;
    context.print({ json: { retired: kid, keys }, text });
  },
});

export const encryptionKeyCommands = defineGroup({
  name: 'keys',
  description: 'keys that encrypt recipients, secrets and second factors in the database',
  notes: `
The current key encrypts, all keys decrypt. Running processes follow the files KEYS_FILE and KEYS_DIR
within a second, so nothing is restarted. If machines have copies, see docs/operations.md.`,
  commands: [rotate, split, reseal, show, retire],
});

function report(context: CliContext, result: ReencryptionResult): void {
  printFields(context, { json: result }, [
    ['Current key', result.kid],
    ['Re-encrypted', String(result.resealed)],
    ['Remaining', String(result.remaining)],
  ]);
  if (result.remaining === 0) return;
  throw new ServiceError(
    'rotation_unfinished',
    `Other keys still hold ${result.remaining} values: run \`keys reseal\` again. A value that can not ` +
      'be decrypted needs the key file that it was encrypted with.',
  );
}

async function keyDeps(context: CliContext): Promise<KeyDeps> {
  const settings = context.settings();
  const [keysFile, keysDir] = [context.keysFile(), findKeysDir(settings)];
  const { stores, audit } = await context.actingDeps();
  return {
    ...{ stores, audit, keysFile, keysDir },
    connectors: createConnectors(SANDBOX_CONNECTOR, settings.liveConnectors),
    now: context.now,
    wait: async (ms) => {
      await wait(ms);
    },
    progress: context.progress,
  };
}

import { z } from 'zod';
import { createConnectorKey, listConnectorKeys, revokeConnectorKey } from '../../callbacks/keys';
import { isLive, toEnv } from '../../domain/environment';
import { ServiceError } from '../../domain/errors';
import { KINDS } from '../../lifecycles';
import type { CheckFolders, PromiseResult } from '../../service/banks/connector-check';
import { createConnector } from '../../service/banks/connector-template';
import {
  assertConnectorName,
  findPauseEnvironment,
  findStop,
  isOfSandboxOnly,
  isRouted,
  listRoutedInSandbox,
  pauseConnector,
  readConnectorHealth,
  releaseConnector,
  resumeConnector,
} from '../../service/banks/connectors';
import { identifyOperator, openKeyed, openNoted, withAuthority } from '../acting-operator';
import { defineCommand, defineGroup } from '../command';
import { findKeysDir } from '../connections';
import { type CliContext, readRoutes } from '../context';
import {
  APPROVED,
  APPROVED_HERE,
  APPROVED_NOTE,
  Env,
  Id,
  NOTED,
  ON_LIVE,
  Operator,
  Reason,
  textOption,
  wholeNumber,
} from '../options';
import { fields, formatTime, printFields, printList, table } from '../output';

const ConnectorName = z.string().describe('the connector').meta({ argument: true });

const connectorNew = defineCommand({
  name: 'new',
  description: 'copy the example connector under a new name, to begin with',
  options: z.object({
    name: textOption('lowercase letters and digits, such as acme', 'name').meta({ argument: true }),
    dir: textOption('directory of the copy (default: next to the example)', 'path').optional(),
  }),
  example: 'connector new acme',
  run: ({ print }, { name, dir }) => {
    const made = createConnector(name, dir);
    const text = `${made.dir} has ${made.files.join(', ')}.
Next: docs/connectors.md, Write a connector.
Before \`connector check\` can run, compile the connector and its fake bank (next to the example: npm run -s build),
and start both: docs/connectors.md, Check a connector.`;
    print({ json: { name, ...made }, text });
  },
});

const URL_FAULT = 'It must be an http or https address, such as http://127.0.0.1:8091.';
const WAIT_SECONDS = 120;

const address = (description: string) =>
  z
    .url({ protocol: /^https?$/, error: URL_FAULT })
    .optional()
    .describe(description)
    .meta({ placeholder: 'url' });
const port = (description: string) =>
  wholeNumber(1, 65_535).optional().describe(description).meta({ placeholder: 'port' });

const folder = (description: string) => textOption(description, 'path').optional();

const WORDS: Record<PromiseResult['result'], string> = {
  passed: 'passed',
  failed: 'FAILED',
  not_applicable: 'n/a',
};

const CHECK_OPTIONS = z.object({
  name: textOption('the connector', 'name').meta({ argument: true }),
  desk: address('desk of its fake bank, which says what it has executed and reports on demand'),
  bank: address('its fake bank, in front of which the check has faults'),
  bank_port: port('port under which the connector knows the bank'),
  webhooks: address('its own port, in front of which the check loses and repeats webhooks'),
  webhook_port: port('port to which the bank posts its webhooks'),
  files_out: folder('folder of files to a bank that answers by files: the check is that bank'),
  files_in: folder('folder of files from it'),
  only: textOption('names of promises, separated by commas; by default all', 'names')
    .transform((text) => text.split(',').map((name) => name.trim()))
    .optional(),
  wait: wholeNumber(1, 3_600)
    .default(WAIT_SECONDS)
    .describe('seconds in which a report must arrive, also if it has to be polled')
    .meta({ placeholder: 'seconds' }),
});

const connectorCheck = defineCommand({
  name: 'check',
  description: 'check a connector that runs against every promise of its contract, in the sandbox',
  options: CHECK_OPTIONS,
  notes: `
Check and connector need a MONGODB_DB and a TASK_QUEUE_PREFIX of their own, for it creates payouts without money.
Without an address, the promises that need it are n/a. Exit code 1 if a promise is broken.`,
  example:
    'connector check acme --desk http://127.0.0.1:8091/desk --bank http://127.0.0.1:8091 --bank-port 8092',
  run: async (context, { name, wait, only, ...urls }) => {
    const isPaired = (url: string | undefined, number: number | undefined) =>
      (url === undefined) === (number === undefined);
    if (!isPaired(urls.bank, urls.bank_port) || !isPaired(urls.webhooks, urls.webhook_port)) {
      const message = '--bank needs --bank-port, and --webhooks needs --webhook-port.';
      throw new ServiceError('invalid_usage', message);
    }
    const settings = context.settings();
    const routed = listRoutedInSandbox(settings, name);
    const deps = {
      ...(await context.withTemporal(await context.actingDeps())),
      access: settings.temporal,
      database: settings.mongodb.db,
      progress: context.progress,
      taskQueuePrefix: settings.taskQueuePrefix,
      keysDir: findKeysDir(settings),
    };
    const report = await context.checkConnector(deps, {
      connector: name,
      ...routed,
      waitMs: wait * 1_000,
      only,
      deskUrl: urls.desk,
      bankUrl: urls.bank,
      bankPort: urls.bank_port,
      webhookUrl: urls.webhooks,
      webhookPort: urls.webhook_port,
      folders: readFolders(urls),
    });
    const { promises, passed, failed, not_applicable } = report;
    const rows = promises.map(({ id, promise, result, seen }) => [
      WORDS[result],
      id,
      promise,
      seen,
    ]);
    const counts = `${passed} passed, ${failed} failed, ${not_applicable} not applicable.`;
    const heading = ['RESULT', 'NAME', 'PROMISE', 'SEEN'];
    context.print({ json: report, text: `${table(heading, rows, '')}\n\n${counts}` });
    if (failed === 0) return;
    const names = promises.flatMap(({ id, result }) => (result === 'failed' ? [id] : []));
    throw new ServiceError('promises_broken', `${name} breaks ${names.join(', ')}.`);
  },
});

/** @throws ServiceError `invalid_usage` */
function readFolders({
  files_out,
  files_in,
  ...urls
}: Partial<z.output<typeof CHECK_OPTIONS>>): CheckFolders | undefined {
  if (files_out === undefined && files_in === undefined) return undefined;
  const hasAddress = [urls.desk, urls.bank, urls.webhooks].some((url) => url !== undefined);
  if (files_out !== undefined && files_in !== undefined && !hasAddress) {
    return { out: files_out, in: files_in };
  }
  const message = '--files-out and --files-in need one another, and no address of a bank.';
  throw new ServiceError('invalid_usage', message);
}

const connectorHealth = defineCommand({
  name: 'health',
  description: 'see whether it takes instructions, what waits, and what needs an operator',
  options: z.object({ name: ConnectorName }),
  notes: `
Exit code 1 if it has a fault; a pause is none. A bank that does not answer shows once something needs an operator.`,
  example: 'connector health acme',
  run: async (context, { name }) => {
    const settings = context.settings();
    const health = await readConnectorHealth(
      {
        ...(await context.withTemporal(await context.readDeps())),
        ...readRoutes(context),
        namespace: settings.temporal.namespace,
        taskQueuePrefix: settings.taskQueuePrefix,
      },
      name,
    );
    const { livemode, faults, pause, stopped, report, instructions, resources, ...rest } = health;
    const env = toEnv(livemode);
    const running = KINDS.filter((kind) => resources[kind].running > 0).map((kind) => {
      const { running: count, attention } = resources[kind];
      const marked = attention === 0 ? '' : ` (${attention} need an operator)`;
      return [`${kind.replace('_', ' ')}s`, `${count}${marked}`] as const;
    });
    const { pollers, waiting, oldest_seconds } = instructions;
    const text = fields([
      ['Connector', name],
      ['Environment', env],
      ['Paused', pause === null ? 'no' : `since ${formatTime(pause.paused_at)}`],
      ['Pause', pause?.reason ?? undefined],
      ['Stopped', stopped === null ? undefined : `since ${formatTime(stopped.at)}`],
      ['Processes', `${pollers} take instructions`],
      ['Instructions', waiting === 0 ? 'none wait' : `${waiting} wait, up to ${oldest_seconds} s`],
      ['Serves', report?.serves.join(', ')],
      ['Reported', report === null ? 'never' : formatTime(report.seen_at)],
      ...running.map(([kind, count]) => [`Running ${kind}`, count] as const),
      ['Callbacks', rest.callbacks_waiting === 0 ? 'none wait' : `${rest.callbacks_waiting} wait`],
      ['Refused files', rest.files_refused === 0 ? undefined : String(rest.files_refused)],
      ['Set aside', rest.reports_set_aside === 0 ? undefined : `${rest.reports_set_aside} reports`],
      ['Keys', String(rest.keys)],
    ]);
    const json = { ...{ connector: name, env, healthy: faults.length === 0, faults }, ...rest };
    context.print({
      json: { ...json, pause, stopped, instructions, report, resources },
      text: [text, faults.length === 0 ? 'No fault is known.' : faults.join('\n')].join('\n\n'),
    });
    if (faults.length === 0) return;
    throw new ServiceError('connector_unhealthy', `${name} has ${faults.length} faults.`);
  },
});

const connectorRelease = defineCommand({
  name: 'release',
  description: 'let a connector that a restore has stopped send again; again changes nothing',
  options: z.object({
    name: ConnectorName,
    env: Env.optional().describe('environment of the connector, which it has only one of'),
    after_restore: z
      .boolean()
      .default(false)
      .describe('the bank was compared with the restored database, and nothing is paid twice'),
    operator: Operator.optional(),
    reason: Reason,
  }),
  notes: `
First compare with the bank, and end what it has executed (docs/operators.md, "Release a connector"): the
connector sends all that its database has as unsent. Its process reads the release within 15 seconds.
${APPROVED_HERE}`,
  example: 'connector release sepa --after-restore --reason "Ticket 42: no file since noon"',
  run: async (context, { name: connector, env: named, after_restore, reason, operator: typed }) => {
    if (!after_restore) {
      const message = '--after-restore says that the bank was compared with the restored database.';
      throw new ServiceError('invalid_usage', message);
    }
    const routes = readRoutes(context);
    const { stores } = await context.readDeps();
    const place = { connector, livemode: named && isLive(named) };
    const stop = await findStop({ stores, ...routes }, place);
    const { livemode } = stop;
    const env = toEnv(livemode);
    const { operator } = await identifyOperator(context, { livemode, operator: typed });
    const input = { name: connector, stop: stop.id };
    const isNeeded = livemode && !stop.isReleased;
    const call = { isNeeded, account_id: null, input, reason };
    await withAuthority(context, 'connector release', call, async (deps) => {
      const stopped = { connector, livemode, stop: stop.id };
      const done = await releaseConnector({ ...deps, ...routes }, stopped, { operator, reason });
      const { stopped_for, stopped_at, changed } = done;
      const json = { connector, env, changed, stopped_for, stopped_at };
      const hint = changed ? 'It sends again within 15 seconds.' : 'It was released already.';
      printFields(context, { json, note: hint }, [
        ['Connector', connector],
        ['Environment', env],
        ['Stopped', `since ${formatTime(stopped_at)}`],
        ['Stopped for', stopped_for],
        ['Operator', operator],
      ]);
    });
  },
});

const PAUSE_OPTIONS = z.object({ name: ConnectorName, ...NOTED });

const connectorPause = defineCommand({
  name: 'pause',
  description: 'refuse what would be created with it; again changes nothing',
  options: PAUSE_OPTIONS,
  notes: `
Within seconds, its methods, rails and assets are not available any more, unless a routing rule leads to
another connector; scheduled settlements wait for the next day. What exists goes on, refunds too: its money is
at that bank. ${ON_LIVE}`,
  example: 'connector pause acme --reason "Ticket 42: the bank is down until noon"',
  run: (context, options) => changePause(context, options, pauseConnector),
});

const connectorResume = defineCommand({
  name: 'resume',
  description:
    'let payments, payouts and settlements be created with it again; again changes nothing',
  options: PAUSE_OPTIONS,
  notes: `It takes effect within seconds. ${ON_LIVE}`,
  example: 'connector resume acme --reason "Ticket 42: the bank is back"',
  run: (context, options) => changePause(context, options, resumeConnector),
});

async function changePause(
  context: CliContext,
  { name, ...typed }: z.output<typeof PAUSE_OPTIONS>,
  apply: typeof pauseConnector,
): Promise<void> {
  const routes = readRoutes(context);
  const { stores } = await context.readDeps();
  const scope = await findPauseEnvironment({ stores, ...routes }, name);
  const { deps, note } = await openNoted(context, scope, typed);
  const done = await apply({ ...deps, ...routes }, name, note);
  const { livemode, pause, changed, ...of } = done;
  const env = toEnv(livemode);
  const { paused_at = null, operator = null, reason = null } = pause ?? {};
  const json = { ...of, env, paused: pause !== null, changed, paused_at, operator, reason };
  const hint = changed ? 'It takes effect within seconds.' : 'It was so already.';
  printFields(context, { json, note: hint }, [
    ['Connector', of.connector],
    ['Environment', env],
    ['Paused', pause === null ? 'no' : `since ${formatTime(paused_at)}`],
    ['Operator', operator ?? undefined],
    ['Reason', reason ?? undefined],
  ]);
}

const create = defineCommand({
  name: 'create',
  description: 'create a key, and show its secret once',
  options: z.object({ name: ConnectorName, ...APPROVED }),
  notes: `
To replace a key, create another, let the bank sign with it, then revoke the old one. A connector that is not
of the sandbox only counts as live. ${APPROVED_NOTE}`,
  example: 'connector key create sandbox',
  run: async (context, { name, operation_id, reason }) => {
    assertConnectorName(name);
    const routes = readRoutes(context);
    const { stores } = await context.readDeps();
    const isNeeded = !(await isOfSandboxOnly({ stores, ...routes }, name));
    const call = { isNeeded, account_id: null, input: { name }, operation_id, reason };
    await withAuthority(context, 'connector key create', call, async (deps, part) => {
      const encrypted = { ...deps, encrypter: context.encrypter() };
      const key = await createConnectorKey(encrypted, name, `cnkey_${part}`);
      const isKnown = isRouted(routes, name);
      const hint = isKnown ? '' : `\nNothing is routed to ${name} yet: see LIVE_CONNECTORS.`;
      const note = `The secret is not shown again: save it now.${hint}`;
      printFields(context, { json: key, note }, [
        ['Key id', key.key_id],
        ['Secret', key.secret],
      ]);
    });
  },
});

const list = defineCommand({
  name: 'list',
  description: 'list the keys of a connector, oldest first, without their secrets',
  options: z.object({ name: ConnectorName }),
  example: 'connector key list sandbox',
  run: async (context, { name }) => {
    assertConnectorName(name);
    const rows = await listConnectorKeys(await context.readDeps(), name);
    printList(context, {
      rows,
      present: ({ _id, connector, created_at, revoked_at }) => ({
        key_id: _id,
        connector,
        created_at,
        revoked_at,
      }),
      columns: { KEY: 'key_id', CREATED: 'created_at', REVOKED: 'revoked_at' },
      none: 'This connector has no keys.',
    });
  },
});

const revoke = defineCommand({
  name: 'revoke',
  description: 'revoke a key at once; again changes nothing',
  options: z.object({ key_id: Id.meta({ argument: true }), reason: Reason.optional() }),
  notes: ON_LIVE,
  example: 'connector key revoke cnkey_… --reason "Ticket 42: the bank has the next one"',
  run: async (context, { key_id, reason }) => {
    const { stores } = await context.readDeps();
    const key = await stores.connectorKeys.get(key_id);
    if (key === null) throw new ServiceError('key_not_found', `There is no key ${key_id}.`);
    const isOpen = await isOfSandboxOnly({ stores, ...readRoutes(context) }, key.connector);
    const deps = isOpen ? await context.actingDeps() : (await openKeyed(context, reason)).deps;
    const revoked = await revokeConnectorKey(deps, key_id, reason);
    const revoked_at = revoked?.revoked_at ?? null;
    const text = `The key ${key_id} is revoked since ${formatTime(revoked_at)}.`;
    context.print({ json: { key_id, revoked_at }, text });
  },
});

const keys = defineGroup({
  name: 'key',
  description: 'keys that a connector signs its callbacks with: several each, each shown once',
  commands: [create, list, revoke],
});

export const connectorCommands = defineGroup({
  name: 'connector',
  description:
    'banks and chains: begin one, check its contract, see its health, pause or release it, its keys',
  notes: `
A connector signs its callbacks with a key of its own, which may exist before LIVE_CONNECTORS names the
connector. On live a callback that is not signed changes nothing.`,
  commands: [
    connectorNew,
    connectorCheck,
    connectorHealth,
    connectorPause,
    connectorResume,
    connectorRelease,
    keys,
  ],
});

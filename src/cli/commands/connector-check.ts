import { z } from 'zod';
import { ServiceError } from '../../domain/errors';
import type { CheckFolders, PromiseResult } from '../../service/banks/connector-check';
import { listRoutedInSandbox } from '../../service/banks/connectors';
import { defineCommand } from '../command';
import { findKeysDir } from '../connections';
import { textOption, wholeNumber } from '../options';
import { table } from '../output';

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

const OPTIONS = z.object({
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
type Options = Partial<z.output<typeof OPTIONS>>;

export const connectorCheck = defineCommand({
  name: 'check',
  description: 'check a connector that runs against every promise of its contract, in the sandbox',
  options: OPTIONS,
  notes: `
Check and connector need a MONGODB_DB and a TASK_QUEUE_PREFIX of their own, for it creates payouts without money.
Without an address, the promises that need it are n/a. Exit code 1 if a promise is broken.`,
  example:
    'connector check acme --desk http://127.0.0.1:8091/desk --bank http://127.0.0.1:8091 --bank-port 8092',
  run: async (context, { name, wait, only, ...urls }) => {
    assertPaired(urls);
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
      folders: findFolders(urls),
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
function findFolders({ files_out, files_in, ...urls }: Options): CheckFolders | undefined {
  if (files_out === undefined && files_in === undefined) return undefined;
  const hasAddress = [urls.desk, urls.bank, urls.webhooks].some((url) => url !== undefined);
  if (files_out !== undefined && files_in !== undefined && !hasAddress) {
    return { out: files_out, in: files_in };
  }
  const message = '--files-out and --files-in need one another, and no address of a bank.';
  throw new ServiceError('invalid_usage', message);
}

/** @throws ServiceError `invalid_usage` */
function assertPaired(urls: Options): void {
  const isPaired = (address: string | undefined, port: number | undefined) =>
    (address === undefined) === (port === undefined);
  if (isPaired(urls.bank, urls.bank_port) && isPaired(urls.webhooks, urls.webhook_port)) return;
  const message = '--bank needs --bank-port, and --webhooks needs --webhook-port.';
  throw new ServiceError('invalid_usage', message);
}

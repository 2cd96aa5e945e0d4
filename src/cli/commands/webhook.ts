import { type Command, Option } from 'commander';
import { type Env, isLive } from '../../domain/environment';
import { EVENT_TYPES, type EventType } from '../../domain/event';
import {
  AFTER_MS,
  type After,
  type EndpointDeps,
  rollSecret,
  type ShownEndpoint,
  setEndpoint,
  showEndpoint,
} from '../../merchants/endpoint';
import { createDenial } from '../../webhooks/address';
import { checkWebhookUrl } from '../../webhooks/url';
import { findAccount } from '../account';
import type { CliContext } from '../context';
import { CliFailure } from '../failure';
import { envOption, parseNames } from '../options';
import { fields, when } from '../output';

const EXAMPLES = {
  group: `
Examples:
  npm run -s cli -- webhook set acct_… --env sandbox --url http://localhost:4000/hook
  npm run -s cli -- webhook roll acct_… --env live --after 24h`,
  set: `
The URL has to be https, at a public address. With WEBHOOK_ALLOW_PRIVATE=sandbox, as \`npm start\`
sets it, a sandbox endpoint may also be on this machine, over plain http.
All events are sent until you choose; \`--events all\` sends all again.

Examples:
  npm run -s cli -- webhook set acct_… --env live --url https://shop.example/hook --json
  {"url", "signing_secret"}
  npm run -s cli -- webhook set acct_… --env live --url https://shop.example/hook \\
    --events payment.settled,payout.returned --json
  {"url", "signing_secret", "enabled_events"}`,
  roll: `
Example:
  npm run -s cli -- webhook roll acct_… --env live --after 24h --json
  {"url", "signing_secret", "active_from"}`,
};

interface SetOptions {
  env: Env;
  url: string;
  events?: EventType[] | 'all';
}

export function addWebhookCommands(program: Command, context: CliContext): void {
  const group = program
    .command('webhook')
    .description('where events are sent: one endpoint and signing secret per environment')
    .addHelpText('after', EXAMPLES.group);
  group
    .command('set')
    .description('register the endpoint, or move it to another URL; the secret stays')
    .argument('<account_id>')
    .addOption(envOption())
    .requiredOption('--url <url>', 'where events are posted')
    .addOption(
      new Option('--events <types>', 'types of events to send, by commas, or all').argParser(
        (text) => (text.trim() === 'all' ? ('all' as const) : parseNames(EVENT_TYPES)(text)),
      ),
    )
    .addHelpText('after', EXAMPLES.set)
    .action((id: string, options: SetOptions) => set(context, id, options));
  group
    .command('roll')
    .description('make a new signing secret, which signs from the moment you choose')
    .argument('<account_id>')
    .addOption(envOption())
    .addOption(
      new Option('--after <time>', 'from when it signs')
        .choices(['now', '1h', '24h'])
        .default('now'),
    )
    .addHelpText('after', EXAMPLES.roll)
    .action((id: string, options: { env: Env; after: After }) => roll(context, id, options));
  group
    .command('show')
    .description('show the endpoint and its signing secret')
    .argument('<account_id>')
    .addOption(envOption())
    .action((id: string, options: { env: Env }) => show(context, id, options.env));
}

async function set(
  context: CliContext,
  accountId: string,
  { env, url, events }: SetOptions,
): Promise<void> {
  const deps = await webhookDeps(context, accountId);
  const settings = context.settings();
  const allowPrivate = settings.allowPrivate && !isLive(env);
  const isDenied = createDenial(settings.deniedNetworks);
  const checked = await checkWebhookUrl(url, { allowPrivate, isDenied });
  if (!checked.ok) throw new CliFailure(checked.code, checked.message);
  const place = { accountId, livemode: isLive(env) };
  const endpoint = await setEndpoint(deps, place, { url: checked.url, events });
  const text = fields([
    ['URL', endpoint.url],
    ['Signing secret', endpoint.signing_secret],
    ['Events', shownEvents(endpoint)],
  ]);
  context.print({ json: endpoint, text });
}

async function roll(
  context: CliContext,
  accountId: string,
  { env, after }: { env: Env; after: After },
): Promise<void> {
  const deps = await webhookDeps(context, accountId);
  const place = { accountId, livemode: isLive(env) };
  const rolled = await rollSecret(deps, place, AFTER_MS[after]);
  if (rolled === null) throw new CliFailure('webhook_not_set', notSet(accountId, env));
  const text = fields([
    ['URL', rolled.url],
    ['New signing secret', rolled.signing_secret],
    ['Signs from', after === 'now' ? 'now on' : when(rolled.active_from)],
  ]);
  context.print({ json: rolled, text });
}

async function show(context: CliContext, accountId: string, env: Env): Promise<void> {
  const deps = await webhookDeps(context, accountId);
  const endpoint = await showEndpoint(deps, { accountId, livemode: isLive(env) });
  if (endpoint === null) return context.print({ json: null, text: notSet(accountId, env) });
  const { url, signing_secret, next_secret, next_active_from } = endpoint;
  const text = fields([
    ['URL', url],
    ['Signing secret', signing_secret],
    ['Events', shownEvents(endpoint)],
    ...(next_secret === undefined || next_active_from === undefined
      ? []
      : ([
          ['Next secret', next_secret],
          ['Signs from', when(next_active_from)],
        ] as const)),
  ]);
  context.print({ json: endpoint, text });
}

function shownEvents({ enabled_events }: ShownEndpoint): string {
  return enabled_events?.join(', ') ?? 'all';
}

/** Dependencies of sealing. The account comes first: an unknown one is refused without keys. */
async function webhookDeps(context: CliContext, accountId: string): Promise<EndpointDeps> {
  const { stores, ...acting } = await context.acting();
  await findAccount(stores, accountId);
  return { ...acting, endpoints: stores.endpoints, sealer: context.sealer() };
}

function notSet(accountId: string, env: Env): string {
  return (
    `No ${env} webhook endpoint is registered for ${accountId}: ` +
    `\`webhook set ${accountId} --env ${env} --url URL\` registers one.`
  );
}

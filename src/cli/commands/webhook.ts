import { z } from 'zod';
import type { Env as EnvName } from '../../domain/environment';
import { ServiceError } from '../../domain/errors';
import { ENDPOINT_STATUSES } from '../../domain/webhook/endpoint';
import { EVENT_TYPES } from '../../domain/webhook/event';
import type { Owner } from '../../service/deps';
import {
  addEndpoint,
  changeEndpoint,
  checkEndpointUrl,
  deleteEndpoint,
  type Endpoint,
  listEndpoints,
  presentEndpoint,
  ROLL_DELAYS_MS,
} from '../../service/events/endpoints/manage';
import { rollSecret, setEndpoint, showEndpoint } from '../../service/events/endpoints/oldest';

import { createDenyCheck } from '../../webhooks/address';
import { defineCommand, defineGroup } from '../command';
import { type CliContext, findOwner } from '../context';
import { AccountId, Env, idOption, names, readBy, words } from '../options';
import { formatTime, printFields, printList } from '../output';

const EventList = names(EVENT_TYPES);

const Events = readBy(
  (text) => (text.trim() === 'all' ? ('all' as const) : EventList.safeParse(text).data),
  `Allowed, separated by commas: all, or ${EVENT_TYPES.join(', ')}.`,
)
  .describe('types of events to send, by commas, or all')
  .meta({ placeholder: 'types' });

const EndpointId = idOption('id of the endpoint');

/** Finds the account first: an unknown one is refused without keys. */
async function openEndpoints(context: CliContext, options: { account_id: string; env: EnvName }) {
  const owner = await findOwner(context, options);
  return { owner, deps: { ...(await context.actingDeps()), encrypter: context.encrypter() } };
}

/** @throws ServiceError with the code of the fault */
async function admitUrl(context: CliContext, owner: Owner, url: string): Promise<string> {
  const { allowPrivate, deniedNetworks } = context.settings();
  const rules = { allowPrivate, isDenied: createDenyCheck(deniedNetworks) };
  const check = await checkEndpointUrl(rules, owner, url);
  if (!check.ok) throw new ServiceError(check.code, check.message);
  return check.url;
}

const Description = words(255)
  .optional()
  .describe('what it is for, in your words')
  .meta({ placeholder: 'text' });

const list = defineCommand({
  name: 'list',
  description: 'list the endpoints, oldest first',
  options: z.object({ account_id: AccountId, env: Env }),
  example: 'webhook list acct_… --env live',
  run: async (context, options) => {
    const owner = await findOwner(context, options);
    printList(context, {
      rows: await listEndpoints(await context.readDeps(), owner),
      present: presentEndpoint,
      columns: ['ENDPOINT', 'CREATED', 'STATUS', 'EVENTS', 'URL'],
      cells: ({ id, created_at, url }, endpoint) => [
        id,
        formatTime(created_at),
        formatStatus(endpoint),
        formatEvents(endpoint),
        url,
      ],
      none: 'There are no endpoints.',
    });
  },
});

const add = defineCommand({
  name: 'add',
  description: 'register one more endpoint, which gets its own signing secret',
  options: z.object({
    account_id: AccountId,
    env: Env,
    url: z.string().describe('where events are posted'),
    events: Events.default('all'),
    description: Description,
  }),
  example: 'webhook add acct_… --env live --url https://books.example/hook --events payout.sent',
  run: async (context, { account_id, env, url, events, description = null }) => {
    const { deps, owner } = await openEndpoints(context, { account_id, env });
    const settings = { url: await admitUrl(context, owner, url), events, description };
    const { endpoint, signing_secret } = await addEndpoint(deps, owner, settings);
    printEndpoint(context, endpoint, signing_secret);
  },
});

const update = defineCommand({
  name: 'update',
  description: 'change, disable or enable an endpoint',
  options: z.object({
    account_id: AccountId,
    env: Env,
    endpoint: EndpointId,
    url: z.string().optional().describe('where events are posted'),
    events: Events.optional(),
    description: Description,
    status: z
      .enum(ENDPOINT_STATUSES)
      .optional()
      .describe('whether events are sent to it')
      .meta({ placeholder: 'status' }),
  }),
  notes: `
Events of the time in which it is disabled are recorded; \`event redeliver\` sends them.`,
  example: 'webhook update acct_… --env live --endpoint we_… --status disabled',
  run: async (context, { account_id, env, endpoint: id, url, ...settings }) => {
    if ([url, ...Object.values(settings)].every((value) => value === undefined)) {
      const message = 'Give what to change: --url, --events, --description or --status.';
      throw new ServiceError('invalid_usage', message);
    }
    const { deps, owner } = await openEndpoints(context, { account_id, env });
    const admitted = url === undefined ? undefined : await admitUrl(context, owner, url);
    printEndpoint(context, await changeEndpoint(deps, owner, id, { ...settings, url: admitted }));
  },
});

const remove = defineCommand({
  name: 'remove',
  description: 'delete an endpoint; its deliveries stay in the log',
  options: z.object({ account_id: AccountId, env: Env, endpoint: EndpointId }),
  example: 'webhook remove acct_… --env live --endpoint we_…',
  run: async (context, { account_id, env, endpoint: id }) => {
    const { deps, owner } = await openEndpoints(context, { account_id, env });
    const endpoint = await deleteEndpoint(deps, owner, id);
    const text = `${id} is deleted: it gets no more events.`;
    context.print({ json: { ...presentEndpoint(endpoint), deleted: true }, text });
  },
});

function printEndpoint(context: CliContext, endpoint: Endpoint, signing_secret?: string): void {
  const json = { ...presentEndpoint(endpoint), ...(signing_secret && { signing_secret }) };
  printFields(context, { json }, [
    ['Endpoint', json.id],
    ['URL', json.url],
    ['Description', json.description ?? undefined],
    ['Status', formatStatus(endpoint)],
    ['Events', formatEvents(endpoint)],
    ['Signing secret', signing_secret],
  ]);
}

function formatStatus({ disabled_reason }: Endpoint): string {
  return disabled_reason === undefined ? 'enabled' : `disabled (${disabled_reason})`;
}

const set = defineCommand({
  name: 'set',
  description: 'register the first endpoint, or give the oldest another URL; the secret stays',
  options: z.object({
    account_id: AccountId,
    env: Env,
    url: z.string().describe('where events are posted'),
    events: Events.optional(),
  }),
  notes: `
The URL must be https, at a public address. With WEBHOOK_ALLOW_PRIVATE=sandbox, as \`npm start\` sets it, a
sandbox endpoint may also be on this machine, over plain http.`,
  example:
    'webhook set acct_… --env live --url https://shop.example/hook --events payment.settled,payout.returned',
  run: async (context, { account_id, env, url, events }) => {
    const { deps, owner } = await openEndpoints(context, { account_id, env });
    const admitted = await admitUrl(context, owner, url);
    // Scripts rely on the secret in each answer; a terminal shows it once.
    const request = { url: admitted, events, showsSecret: context.isJson };
    const { isNew, ...endpoint } = await setEndpoint(deps, owner, request);
    const { signing_secret } = endpoint;
    printFields(context, { json: endpoint }, [
      ['URL', endpoint.url],
      ['Signing secret', isNew ? signing_secret : 'unchanged: `webhook show` shows it'],
      ['Events', formatEvents(endpoint)],
    ]);
  },
});

const roll = defineCommand({
  name: 'roll',
  description: 'make a new signing secret, which signs from the moment you choose',
  options: z.object({
    account_id: AccountId,
    env: Env,
    endpoint: EndpointId.optional().describe('id of the endpoint (default: the oldest)'),
    after: z
      .enum(['now', '1h', '24h'])
      .default('now')
      .describe('from when it signs')
      .meta({ placeholder: 'time' }),
  }),
  example: 'webhook roll acct_… --env live --after 24h',
  run: async (context, { account_id, env, endpoint: endpoint_id, after }) => {
    const { deps, owner } = await openEndpoints(context, { account_id, env });
    const endpoint = await rollSecret(deps, { ...owner, endpoint_id }, ROLL_DELAYS_MS[after]);
    if (endpoint === null) throw new ServiceError('webhook_not_set', notSetText(account_id, env));
    printFields(context, { json: endpoint }, [
      ['URL', endpoint.url],
      ['New signing secret', endpoint.signing_secret],
      ['Signs from', after === 'now' ? 'now on' : formatTime(endpoint.active_from)],
    ]);
  },
});

const show = defineCommand({
  name: 'show',
  description: 'show the endpoint and its signing secret',
  options: z.object({
    account_id: AccountId,
    env: Env,
    endpoint: EndpointId.optional().describe('id of the endpoint (default: the oldest)'),
  }),
  example: 'webhook show acct_… --env live',
  run: async (context, { account_id, env, endpoint: endpoint_id }) => {
    const { deps, owner } = await openEndpoints(context, { account_id, env });
    const endpoint = await showEndpoint(deps, { ...owner, endpoint_id });
    if (endpoint === null) return context.print({ json: null, text: notSetText(account_id, env) });
    const { url, signing_secret, next_secret, next_active_from } = endpoint;
    printFields(context, { json: endpoint }, [
      ['URL', url],
      ['Signing secret', signing_secret],
      ['Events', formatEvents(endpoint)],
      ['Next secret', next_secret],
      ['Signs from', next_active_from && formatTime(next_active_from)],
    ]);
  },
});

function formatEvents({ enabled_events }: Pick<Endpoint, 'enabled_events'>): string {
  return enabled_events?.join(', ') ?? 'all';
}

function notSetText(account_id: string, env: EnvName): string {
  return (
    `No ${env} webhook endpoint is registered for ${account_id}: ` +
    `\`webhook set ${account_id} --env ${env} --url URL\` registers one.`
  );
}

export const webhookCommands = defineGroup({
  name: 'webhook',
  description: 'where events are sent: up to 16 endpoints per environment, each with its secret',
  commands: [set, roll, show, list, add, update, remove],
});

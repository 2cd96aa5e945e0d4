import { z } from 'zod';
import { isLive } from '../../domain/environment';
import { ServiceError } from '../../domain/errors';
import { ENDPOINT_STATUSES } from '../../domain/webhook/endpoint';
import { findAccount } from '../../service/accounts';
import {
  addEndpoint,
  changeEndpoint,
  deleteEndpoint,
  listEndpoints,
} from '../../service/endpoints/manage';
import { type Endpoint, presentEndpoint } from '../../service/endpoints/present';
import { defineCommand } from '../command';
import type { CliContext } from '../context';
import { AccountId, Env, words } from '../options';
import { formatTime, printFields, printList } from '../output';
import { admitUrl, createDeps, EndpointId, Events } from './webhook-options';

const Description = words(255)
  .optional()
  .describe('what it is for, in your words')
  .meta({ placeholder: 'text' });

export const list = defineCommand({
  name: 'list',
  description: 'list the endpoints, oldest first',
  options: z.object({ account_id: AccountId, env: Env }),
  example: 'webhook list acct_… --env live',
  run: async (context, { account_id, env }) => {
    const { stores } = await context.readDeps();
    await findAccount(stores, account_id);
    printList(context, {
      rows: await listEndpoints({ stores }, { account_id, livemode: isLive(env) }),
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

export const add = defineCommand({
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
    const deps = await createDeps(context, account_id);
    const owner = { account_id, livemode: isLive(env) };
    const settings = { url: await admitUrl(context, owner, url), events, description };
    const { endpoint, signing_secret } = await addEndpoint(deps, owner, settings);
    print(context, endpoint, signing_secret);
  },
});

export const update = defineCommand({
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
    const deps = await createDeps(context, account_id);
    const owner = { account_id, livemode: isLive(env) };
    const admitted = url === undefined ? undefined : await admitUrl(context, owner, url);
    print(context, await changeEndpoint(deps, owner, id, { ...settings, url: admitted }));
  },
});

export const remove = defineCommand({
  name: 'remove',
  description: 'delete an endpoint; its deliveries stay in the log',
  options: z.object({ account_id: AccountId, env: Env, endpoint: EndpointId }),
  example: 'webhook remove acct_… --env live --endpoint we_…',
  run: async (context, { account_id, env, endpoint: id }) => {
    const deps = await createDeps(context, account_id);
    const endpoint = await deleteEndpoint(deps, { account_id, livemode: isLive(env) }, id);
    const text = `${id} is deleted: it gets no more events.`;
    context.print({ json: { ...presentEndpoint(endpoint), deleted: true }, text });
  },
});

function print(context: CliContext, endpoint: Endpoint, signing_secret?: string): void {
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

function formatEvents({ enabled_events }: Endpoint): string {
  return enabled_events?.join(', ') ?? 'all';
}

import { z } from 'zod';
import { omitUndefined } from '../../domain/defined';
import { type Env as EnvName, isLive } from '../../domain/environment';
import { ServiceError } from '../../domain/errors';
import { ENDPOINT_STATUSES, EVENT_TYPES } from '../../domain/events/event';
import type { ApprovedCommand } from '../../domain/operators/authority';
import type { Owner } from '../../service/access';
import {
  addEndpoint,
  changeEndpoint,
  checkEndpointUrl,
  deleteEndpoint,
  type Endpoint,
  type EndpointDeps,
  listEndpoints,
  presentEndpoint,
  ROLL_DELAYS_MS,
  rollSecret,
  setEndpoint,
  showEndpoint,
} from '../../service/events/endpoints/manage';
import { createDenyCheck } from '../../webhooks/url';
import { openNoted, withAuthority } from '../acting-operator';
import { defineCommand, defineGroup } from '../command';
import { type CliContext, findOwner } from '../context';
import { APPROVED, APPROVED_NOTE, idOption, names, OWNER, readBy, words } from '../options';
import { formatTime, printFields, printList } from '../output';

const EventList = names(EVENT_TYPES);

const Events = readBy(
  (text) => (text.trim() === 'all' ? ('all' as const) : EventList.safeParse(text).data),
  `Allowed, separated by commas: all, or ${EVENT_TYPES.join(', ')}.`,
)
  .describe('types of events to send, by commas; all: all but those of disputes')
  .meta({ placeholder: 'types' });

const EndpointId = idOption('id of the endpoint');

interface Change {
  account_id: string;
  env: EnvName;
  /** Params that the approval shows. */
  input: object;
  /** By default each on live. */
  isNeeded?: boolean;
  operation_id?: string | undefined;
  reason?: string | undefined;
}

/** Changes an endpoint; on live another operator approves it first. */
async function changeWithAuthority(
  context: CliContext,
  command: ApprovedCommand,
  { account_id, env, input, isNeeded = true, ...rest }: Change,
  act: (deps: EndpointDeps) => Promise<void>,
): Promise<void> {
  const encrypter = context.encrypter();
  const about = { ...rest, account_id, input: { account_id, ...omitUndefined(input) } };
  const call = { ...about, isNeeded: isNeeded && isLive(env) };
  await withAuthority(context, command, call, (deps) => act({ ...deps, encrypter }));
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
  options: z.object(OWNER),
  example: 'webhook list acct_… --env live',
  run: async (context, options) => {
    const owner = await findOwner(context, options);
    printList(context, {
      rows: await listEndpoints(await context.readDeps(), owner),
      present: presentEndpoint,
      columns: {
        ENDPOINT: 'id',
        CREATED: 'created_at',
        STATUS: (_, endpoint) => formatStatus(endpoint),
        EVENTS: (_, endpoint) => formatEvents(endpoint),
        URL: 'url',
      },
      none: 'There are no endpoints.',
    });
  },
});

const add = defineCommand({
  name: 'add',
  description: 'register one more endpoint, which gets its own signing secret',
  options: z.object({
    ...OWNER,
    url: z.string().describe('where events are posted'),
    events: Events.default('all'),
    description: Description,
    ...APPROVED,
  }),
  notes: APPROVED_NOTE,
  example: 'webhook add acct_… --env live --url https://books.example/hook --events payout.sent',
  run: async (context, { account_id, env, url, events, description = null, ...call }) => {
    const owner = await findOwner(context, { account_id, env });
    const settings = { url: await admitUrl(context, owner, url), events, description };
    const change = { ...call, account_id, env, input: settings };
    await changeWithAuthority(context, 'webhook add', change, async (deps) => {
      const { endpoint, signing_secret } = await addEndpoint(deps, owner, settings);
      printEndpoint(context, endpoint, signing_secret);
    });
  },
});

const update = defineCommand({
  name: 'update',
  description: 'change, disable or enable an endpoint',
  options: z.object({
    ...OWNER,
    endpoint: EndpointId,
    url: z.string().optional().describe('where events are posted'),
    events: Events.optional(),
    description: Description,
    status: z
      .enum(ENDPOINT_STATUSES)
      .optional()
      .describe('whether events are sent to it')
      .meta({ placeholder: 'status' }),
    ...APPROVED,
  }),
  notes: `
Events of the time in which it is disabled are recorded; \`event redeliver\` sends them. For another URL:
${APPROVED_NOTE}`,
  example: 'webhook update acct_… --env live --endpoint we_… --status disabled',
  run: async (context, { account_id, env, endpoint: id, operation_id, reason, ...options }) => {
    const { url, ...settings } = options;
    if ([url, ...Object.values(settings)].every((value) => value === undefined)) {
      const message = 'Give what to change: --url, --events, --description or --status.';
      throw new ServiceError('invalid_usage', message);
    }
    const owner = await findOwner(context, { account_id, env });
    const admitted = url === undefined ? undefined : await admitUrl(context, owner, url);
    const after = { ...settings, url: admitted };
    const call = { account_id, env, operation_id, reason, isNeeded: url !== undefined };
    const change = { ...call, input: { ...after, endpoint: id } };
    await changeWithAuthority(context, 'webhook update', change, async (deps) =>
      printEndpoint(context, await changeEndpoint(deps, owner, id, after)),
    );
  },
});

const remove = defineCommand({
  name: 'remove',
  description: 'delete an endpoint; its deliveries stay in the log',
  options: z.object({ ...OWNER, endpoint: EndpointId }),
  example: 'webhook remove acct_… --env live --endpoint we_…',
  run: async (context, { account_id, env, endpoint: id }) => {
    const owner = await findOwner(context, { account_id, env });
    const deps = { ...(await context.actingDeps()), encrypter: context.encrypter() };
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
    ...OWNER,
    url: z.string().describe('where events are posted'),
    events: Events.optional(),
    ...APPROVED,
  }),
  notes: `
The URL must be https, at a public address. With WEBHOOK_ALLOW_PRIVATE=sandbox, as \`npm start\` sets it, a
sandbox endpoint may also be on this machine, over plain http. ${APPROVED_NOTE}`,
  example:
    'webhook set acct_… --env live --url https://shop.example/hook --events payment.settled,payout.returned',
  run: async (context, { account_id, env, url, events, ...call }) => {
    const owner = await findOwner(context, { account_id, env });
    const admitted = await admitUrl(context, owner, url);
    const change = { ...call, account_id, env, input: { url: admitted, events } };
    await changeWithAuthority(context, 'webhook set', change, async (deps) => {
      // Scripts rely on the secret in each answer; a terminal shows it once.
      const request = { url: admitted, events, showsSecret: context.isJson };
      const { isNew, ...endpoint } = await setEndpoint(deps, owner, request);
      const { signing_secret } = endpoint;
      printFields(context, { json: endpoint }, [
        ['URL', endpoint.url],
        ['Signing secret', isNew ? signing_secret : 'unchanged: `webhook show` shows it'],
        ['Events', formatEvents(endpoint)],
      ]);
    });
  },
});

const roll = defineCommand({
  name: 'roll',
  description: 'make a new signing secret, which signs from the moment you choose',
  options: z.object({
    ...OWNER,
    endpoint: EndpointId.optional().describe('id of the endpoint (default: the oldest)'),
    after: z
      .enum(['now', '1h', '24h'])
      .default('now')
      .describe('from when it signs')
      .meta({ placeholder: 'time' }),
    ...APPROVED,
  }),
  notes: APPROVED_NOTE,
  example: 'webhook roll acct_… --env live --after 24h',
  run: async (context, { account_id, env, endpoint: endpoint_id, after, ...call }) => {
    const owner = await findOwner(context, { account_id, env });
    const { stores } = await context.readDeps();
    const notSet = () => new ServiceError('webhook_not_set', notSetText(account_id, env));
    if ((await stores.endpoints.find({ ...owner, endpoint_id })) === null) throw notSet();
    const change = { ...call, account_id, env, input: { endpoint: endpoint_id, after } };
    await changeWithAuthority(context, 'webhook roll', change, async (deps) => {
      const endpoint = await rollSecret(deps, { ...owner, endpoint_id }, ROLL_DELAYS_MS[after]);
      if (endpoint === null) throw notSet();
      printFields(context, { json: endpoint }, [
        ['URL', endpoint.url],
        ['New signing secret', endpoint.signing_secret],
        ['Signs from', after === 'now' ? 'now on' : formatTime(endpoint.active_from)],
      ]);
    });
  },
});

const show = defineCommand({
  name: 'show',
  description: 'show the endpoint and its signing secret',
  options: z.object({
    ...OWNER,
    endpoint: EndpointId.optional().describe('id of the endpoint (default: the oldest)'),
  }),
  notes: 'On live it needs OPERATOR_KEY: who has the secret can sign events.',
  example: 'webhook show acct_… --env live',
  run: async (context, { account_id, env, endpoint: endpoint_id }) => {
    const owner = await findOwner(context, { account_id, env });
    const { deps } = await openNoted(context, owner, {});
    const encrypter = context.encrypter();
    const endpoint = await showEndpoint({ ...deps, encrypter }, { ...owner, endpoint_id });
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
  return enabled_events?.join(', ') ?? 'all but those of disputes';
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

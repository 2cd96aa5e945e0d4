import { z } from 'zod';
import { type Env as EnvName, isLive } from '../../domain/environment';
import { ServiceError } from '../../domain/errors';
import {
  rollSecret,
  type ShownEndpoint,
  setEndpoint,
  showEndpoint,
} from '../../service/endpoints/oldest';
import { ROLL_DELAYS_MS } from '../../service/endpoints/secret';
import { defineCommand, defineGroup } from '../command';
import { AccountId, Env } from '../options';
import { formatTime, printFields } from '../output';
import { add, list, remove, update } from './webhook-endpoints';
import { admitUrl, createDeps, EndpointId, Events } from './webhook-options';

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
    const deps = await createDeps(context, account_id);
    const owner = { account_id, livemode: isLive(env) };
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
    const deps = await createDeps(context, account_id);
    const owner = { account_id, livemode: isLive(env), endpoint_id };
    const endpoint = await rollSecret(deps, owner, ROLL_DELAYS_MS[after]);
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
    const deps = await createDeps(context, account_id);
    const endpoint = await showEndpoint(deps, { account_id, livemode: isLive(env), endpoint_id });
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

function formatEvents({ enabled_events }: ShownEndpoint): string {
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

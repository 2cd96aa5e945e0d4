import { z } from 'zod';
import { type Env as EnvName, isLive } from '../../domain/environment';
import { ServiceError } from '../../domain/errors';
import { EVENT_TYPES } from '../../domain/webhook/event';
import { findAccount } from '../../service/accounts';
import {
  type EndpointDeps,
  ROLL_DELAYS_MS,
  rollSecret,
  type ShownEndpoint,
  setEndpoint,
  showEndpoint,
} from '../../service/endpoints';
import { createDenyCheck } from '../../webhooks/address';
import { checkWebhookUrl } from '../../webhooks/url';
import { defineCommand, defineGroup } from '../command';
import type { CliContext } from '../context';
import { AccountId, Env, names, readBy } from '../options';
import { formatTime, printFields } from '../output';

const EventList = names(EVENT_TYPES);
const Events = readBy(
  (text) => (text.trim() === 'all' ? ('all' as const) : EventList.safeParse(text).data),
  `Allowed, separated by commas: all, or ${EVENT_TYPES.join(', ')}.`,
);

const set = defineCommand({
  name: 'set',
  description: 'register the endpoint, or move it to another URL; the secret stays',
  options: z.object({
    account_id: AccountId,
    env: Env,
    url: z.string().describe('where events are posted'),
    events: Events.optional()
      .describe('types of events to send, by commas, or all')
      .meta({ placeholder: 'types' }),
  }),
  notes: `
The URL must be https, at a public address. With WEBHOOK_ALLOW_PRIVATE=sandbox, as \`npm start\` sets it, a
sandbox endpoint may also be on this machine, over plain http.`,
  example:
    'webhook set acct_… --env live --url https://shop.example/hook --events payment.settled,payout.returned',
  run: async (context, { account_id, env, url, events }) => {
    const deps = await createDeps(context, account_id);
    const { allowPrivate, deniedNetworks } = context.settings();
    const check = await checkWebhookUrl(url, {
      allowPrivate: allowPrivate && !isLive(env),
      isDenied: createDenyCheck(deniedNetworks),
    });
    if (!check.ok) throw new ServiceError(check.code, check.message);
    const owner = { account_id, livemode: isLive(env) };
    const endpoint = await setEndpoint(deps, owner, { url: check.url, events, showsSecret: true });
    printFields(context, { json: endpoint }, [
      ['URL', endpoint.url],
      ['Signing secret', endpoint.signing_secret],
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
    after: z
      .enum(['now', '1h', '24h'])
      .default('now')
      .describe('from when it signs')
      .meta({ placeholder: 'time' }),
  }),
  example: 'webhook roll acct_… --env live --after 24h',
  run: async (context, { account_id, env, after }) => {
    const deps = await createDeps(context, account_id);
    const owner = { account_id, livemode: isLive(env) };
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
  options: z.object({ account_id: AccountId, env: Env }),
  example: 'webhook show acct_… --env live',
  run: async (context, { account_id, env }) => {
    const deps = await createDeps(context, account_id);
    const endpoint = await showEndpoint(deps, { account_id, livemode: isLive(env) });
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

/** Finds the account first: an unknown one is refused without keys. */
async function createDeps(context: CliContext, account_id: string): Promise<EndpointDeps> {
  const { stores, ...deps } = await context.actingDeps();
  await findAccount(stores, account_id);
  return { ...deps, stores, encrypter: context.encrypter() };
}

function notSetText(account_id: string, env: EnvName): string {
  return (
    `No ${env} webhook endpoint is registered for ${account_id}: ` +
    `\`webhook set ${account_id} --env ${env} --url URL\` registers one.`
  );
}

export const webhookCommands = defineGroup({
  name: 'webhook',
  description: 'where events are sent: one endpoint and signing secret per environment',
  commands: [set, roll, show],
});

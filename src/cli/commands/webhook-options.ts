import type { z } from 'zod';
import { ServiceError } from '../../domain/errors';
import { EVENT_TYPES } from '../../domain/webhook/event';
import type { Owner } from '../../service/deps';
import { checkEndpointUrl, type EndpointDeps } from '../../service/events/endpoints/manage';

import { findAccount } from '../../service/merchants/accounts';
import { createDenyCheck } from '../../webhooks/address';
import type { CliContext } from '../context';
import { names, readBy, textOption } from '../options';

const EventList = names(EVENT_TYPES);

export const Events = readBy(
  (text) => (text.trim() === 'all' ? ('all' as const) : EventList.safeParse(text).data),
  `Allowed, separated by commas: all, or ${EVENT_TYPES.join(', ')}.`,
)
  .describe('types of events to send, by commas, or all')
  .meta({ placeholder: 'types' });
export type Events = z.output<typeof Events>;

export const EndpointId = textOption('id of the endpoint', 'id');

/** Finds the account first: an unknown one is refused without keys. */
export async function createDeps(context: CliContext, account_id: string): Promise<EndpointDeps> {
  const { stores, ...deps } = await context.actingDeps();
  await findAccount(stores, account_id);
  return { ...deps, stores, encrypter: context.encrypter() };
}

/** @throws ServiceError with the code of the fault */
export async function admitUrl(context: CliContext, owner: Owner, url: string): Promise<string> {
  const { allowPrivate, deniedNetworks } = context.settings();
  const rules = { allowPrivate, isDenied: createDenyCheck(deniedNetworks) };
  const check = await checkEndpointUrl(rules, owner, url);
  if (!check.ok) throw new ServiceError(check.code, check.message);
  return check.url;
}

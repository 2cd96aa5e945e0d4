import { ZodError } from 'zod';
import { type CallbackDeps, deliverStored } from '../callbacks/deliver';
import { ServiceError } from '../domain/errors';
import { LIFECYCLES } from '../lifecycles';
import type { Stores } from '../store';
import type { Audit } from '../store/audit';
import type { CallbackDocument, WaitingFilter } from '../store/callbacks';
import { withAuditLine } from './audited';
import { type FirstRows, toFirstRows } from './paging';

export type { CallbackDocument } from '../store/callbacks';

const CALL_TIMEOUT_MS = 5_000;

interface CallbackActDeps extends Omit<CallbackDeps, 'stores'> {
  stores: Stores;
  audit: Audit;
}

export async function listWaitingCallbacks(
  { callbacks }: Pick<Stores, 'callbacks'>,
  filter: WaitingFilter,
  limit: number,
): Promise<FirstRows<CallbackDocument>> {
  const rows = callbacks.waiting(filter).limit(limit + 1);
  return toFirstRows(await rows.toArray(), limit);
}

/**
 * Delivers a stored callback that no workflow has received.
 * @returns `parked` when its connector still has no such resource
 * @throws ServiceError `callback_not_found`, `callback_signalled`, `callback_unreadable`,
 *   `temporal_unavailable`
 */
export async function redeliverCallback(
  deps: CallbackActDeps,
  id: string,
): Promise<'delivered' | 'parked'> {
  const callback = await findCallback(deps.stores, id);
  if (callback.signalled_at !== null) throw createSignalledError(id);
  const { resource, resource_id, name } = callback;
  const document = await LIFECYCLES[resource].get(deps.stores, resource_id);
  const { account_id = null, livemode = null } = document ?? {};
  const after = { resource, resource_id, name };
  const change = { act: 'callback.delivered', account_id, livemode, target: id, after } as const;
  return await withAuditLine(deps.audit, change, () => deliver(deps, callback));
}

async function deliver(
  { temporal, ...deps }: CallbackActDeps,
  callback: CallbackDocument,
): Promise<'delivered' | 'parked'> {
  try {
    const deadline = Date.now() + CALL_TIMEOUT_MS;
    const receipt = await temporal.withDeadline(deadline, () =>
      deliverStored({ ...deps, temporal }, callback),
    );
    if (receipt !== 'duplicate') return receipt;
  } catch (error) {
    if (!(error instanceof ZodError) && !(error instanceof RangeError)) throw error;
    throw new ServiceError(
      'callback_unreadable',
      `${callback._id} is not a valid report of a connector: ${error.message}`,
    );
  }
  throw createSignalledError(callback._id);
}

/** @throws ServiceError `callback_not_found` */
export async function findCallback(
  { callbacks }: Pick<Stores, 'callbacks'>,
  id: string,
): Promise<CallbackDocument> {
  const callback = await callbacks.get(id);
  if (callback !== null) return callback;
  throw new ServiceError('callback_not_found', `There is no callback ${id}.`);
}

function createSignalledError(id: string): ServiceError {
  return new ServiceError(
    'callback_signalled',
    `${id} was signalled to its workflow: \`callback show ${id}\` shows when.`,
  );
}

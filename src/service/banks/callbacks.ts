import { ZodError } from 'zod';
import { describeError } from '../../base/errors';
import { inTransaction } from '../../base/mongo';
import { type CallbackDeps, deliverStored } from '../../callbacks/deliver';
import { ServiceError } from '../../domain/errors';
import { LIFECYCLES } from '../../lifecycles';
import type { Stores } from '../../store';
import type { Audit } from '../../store/audit';
import type { CallbackDocument, WaitingFilter } from '../../store/callbacks';
import type { WriteDeps } from '../access';
import { withAuditLine } from '../operators/audit/log';
import { type FirstRows, toFirstRows } from '../paging';

export type { CallbackDocument } from '../../store/callbacks';

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
 * Delivers a callback that no workflow has received, or with `again` any.
 * @returns `parked` when its connector still has no such resource
 * @throws ServiceError `callback_not_found`, `callback_signalled`, `callback_unreadable`,
 * `temporal_unavailable`
 */
export async function redeliverCallback(deps: CallbackActDeps, id: string) {
  const callback = await findCallback(deps.stores, id);
  const isDone = callback.applied === true || deps.again !== true;
  if (callback.signalled_at !== null && isDone) throw createSignalledError(id);
  return await redeliver(deps, callback);
}

async function redeliver({ temporal, ...deps }: CallbackActDeps, callback: CallbackDocument) {
  const { _id: id } = callback;
  const about = await describeCallback(deps.stores, callback);
  const deliver = async () => {
    const deadline = Date.now() + CALL_TIMEOUT_MS;
    const receipt = await temporal
      .withDeadline(deadline, () => deliverStored({ ...deps, temporal }, callback))
      .catch((error: unknown) => {
        if (!(error instanceof ZodError) && !(error instanceof RangeError)) throw error;
        const message = `${id} is not a valid report of a connector: ${error.message}`;
        throw new ServiceError('callback_unreadable', message);
      });
    if (receipt === 'duplicate') throw createSignalledError(id);
    return receipt;
  };
  return await withAuditLine(deps.audit, { act: 'callback.delivered', ...about }, deliver);
}

/**
 * Delivers again what no run has applied since: Temporal may have lost the signals. A callback
 * counts once.
 * @param deps.reader waits for minutes: between two of them may be millions
 * @returns ids of the delivered, and why others could not be
 */
export async function redeliverSignalled(
  { reader, ...deps }: CallbackActDeps & { reader: Pick<Stores['callbacks'], 'missedSince'> },
  { since, connector }: { since: Date; connector?: string | undefined },
  progress: (line: string) => void = () => {},
) {
  const delivered: string[] = [];
  const failed: { id: string; reason: string }[] = [];
  for await (const callback of reader.missedSince(since.toISOString(), connector)) {
    const { _id: id, resource, resource_id, body } = callback;
    const document = await LIFECYCLES[resource].get(deps.stores, resource_id);
    if (document?.applied_callbacks?.includes(body.callback_id)) continue;
    try {
      await redeliver(deps, callback);
      delivered.push(id);
    } catch (error) {
      failed.push({ id, reason: describeError(error) });
    }
    progress(`${delivered.length} delivered, ${failed.length} not delivered`);
  }
  return { delivered, failed };
}

/**
 * Removes a parked callback from list and metrics; its connector may still deliver it. A repeat
 * changes nothing.
 * @throws ServiceError `callback_not_found`, `callback_signalled`, `callback_not_parked`
 */
export async function dismissCallback(
  { mongo, stores, audit, now }: WriteDeps,
  id: string,
  reason: string,
): Promise<void> {
  const { after, ...about } = await describeCallback(stores, await findCallback(stores, id));
  const isDismissed = await inTransaction(mongo, async (session) => {
    if (!(await stores.callbacks.dismiss(id, now().toISOString(), session))) return false;
    await audit({ act: 'callback.dismissed', ...about, after: { ...after, reason } }, session);
    return true;
  });
  if (isDismissed) return;
  const callback = await findCallback(stores, id);
  if (callback.signalled_at !== null) throw createSignalledError(id);
  if (callback.parked !== null) return;
  const message = `${id} is not parked: \`callback deliver ${id}\` sends it to its workflow.`;
  throw new ServiceError('callback_not_parked', message);
}

/**
 * Removes all parked callbacks of a connector, as of an account that another system uses, too.
 * @returns how many
 */
export async function dismissParked(
  { mongo, stores, audit, now }: WriteDeps,
  connector: string,
  reason: string,
): Promise<number> {
  return await inTransaction(mongo, async (session) => {
    const callbacks = await stores.callbacks.dismissAll(connector, now().toISOString(), session);
    if (callbacks === 0) return callbacks;
    const about = { account_id: null, livemode: null, target: connector };
    await audit({ act: 'callback.dismissed', ...about, after: { callbacks, reason } }, session);
    return callbacks;
  });
}

async function describeCallback(
  stores: Stores,
  { _id: target, resource, resource_id, name }: CallbackDocument,
) {
  const document = await LIFECYCLES[resource].get(stores, resource_id);
  const { account_id = null, livemode = null } = document ?? {};
  return { account_id, livemode, target, after: { resource, resource_id, name } };
}

/** @throws ServiceError `callback_not_found` */
export async function findCallback({ callbacks }: Pick<Stores, 'callbacks'>, id: string) {
  const callback = await callbacks.get(id);
  if (callback !== null) return callback;
  throw new ServiceError('callback_not_found', `There is no callback ${id}.`);
}

function createSignalledError(id: string): ServiceError {
  const message = `${id} was signalled to its workflow: \`callback show ${id}\` shows when.`;
  return new ServiceError('callback_signalled', message);
}

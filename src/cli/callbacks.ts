import { ZodError } from 'zod';
import { LIFECYCLE_QUEUE } from '../domain/task-queues';
import type { CallbackDocument } from '../store/callbacks';
import { deliverKept, type InboxStores } from '../temporal/bank-callbacks';
import { CliFailure } from './failure';
import type { WorkflowDeps } from './resources';

const CALL_TIMEOUT_MS = 5_000;

export interface CallbackActDeps extends WorkflowDeps {
  stores: InboxStores;
  now: () => Date;
}

/**
 * Delivers a kept callback that no workflow has heard of. Safe to repeat: a callback counts once.
 * @returns `parked` when there is still no such resource at its connector
 * @throws CliFailure `callback_not_found`, `callback_signalled`, `callback_unreadable`,
 *   `temporal_unavailable`
 */
export async function deliverAgain(
  { temporal, lifecycleQueue = LIFECYCLE_QUEUE, ...deps }: CallbackActDeps,
  id: string,
): Promise<'delivered' | 'parked'> {
  const kept = await findCallback(deps.stores, id);
  if (kept.signalled_at !== null) throw wasSignalled(id);
  const inbox = { ...deps, temporal, lifecycleQueue };
  try {
    const deadline = Date.now() + CALL_TIMEOUT_MS;
    const receipt = await temporal.withDeadline(deadline, () => deliverKept(inbox, kept));
    if (receipt !== 'duplicate') return receipt;
  } catch (error) {
    if (!(error instanceof ZodError) && !(error instanceof RangeError)) throw error;
    throw new CliFailure(
      'callback_unreadable',
      `${id} is not what a connector may report: ${error.message}`,
    );
  }
  throw wasSignalled(id);
}

/** Finds a callback. @throws CliFailure `callback_not_found` */
export async function findCallback(
  { callbacks }: Pick<InboxStores, 'callbacks'>,
  id: string,
): Promise<CallbackDocument> {
  const kept = await callbacks.get(id);
  if (kept !== null) return kept;
  throw new CliFailure('callback_not_found', `There is no callback ${id}.`);
}

function wasSignalled(id: string): CliFailure {
  return new CliFailure(
    'callback_signalled',
    `${id} was signalled to its workflow: \`callback show ${id}\` tells when.`,
  );
}

import type { Client } from '@temporalio/client';
import { isNotAuthorized } from '../base/mongo';
import type { CallbackResource } from '../domain/banks/callback';
import { ServiceError } from '../domain/errors';
import { LIFECYCLES, type Resource, type ResourceStores } from '../lifecycles';
import { getNewestRun } from './status';

interface ReopeningDeps {
  temporal: Client;
  stores: ResourceStores;
}

type Known = Pick<Resource, '_id' | 'version'>;

/**
 * Refuses to start a run on a document older than the end of the last run, as after a restore: a
 * paid payout would be sent or given back again. Sets the attention reason.
 * @throws ServiceError `record_behind`
 */
export async function assertNotBehind(
  { temporal, stores }: ReopeningDeps,
  kind: CallbackResource,
  { _id: id, version }: Known,
): Promise<void> {
  const { workflowId, collection } = LIFECYCLES[kind];
  const { status, runId } = await getNewestRun(temporal, workflowId(id));
  if (status !== 'COMPLETED') return;
  // Of this run: one that starts meanwhile may last for days.
  const result: unknown = await temporal.workflow.getHandle(workflowId(id), runId).result();
  const { version: completed } = Object(result);
  if (!Number.isInteger(completed) || completed <= version) return;
  // The run may have ended after the caller had read the document.
  const latest = (await LIFECYCLES[kind].get(stores, id))?.version ?? version;
  if (completed <= latest) return;
  const attention_at = Date.now();
  const mark = { version: latest, attention: 'record_behind', audit: null, attention_at } as const;
  await stores[collection].markAttention(id, mark).catch((error) => {
    // A connector may not write it; the service does, once it reads the document.
    if (!isNotAuthorized(error)) throw error;
  });
  throw new ServiceError(
    'record_behind',
    `The workflow of the ${kind} ${id} completed at version ${completed}, and MongoDB has version ` +
      `${latest}, as after a restore: run \`reconcile --apply\` first.`,
  );
}

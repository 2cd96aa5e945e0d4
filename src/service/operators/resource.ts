import type { Client } from '@temporalio/client';
import type { CallbackResource } from '../../domain/callback/callback';
import { ServiceError } from '../../domain/errors';
import { LIFECYCLES, type Resource, type ResourceStores } from '../../lifecycles';

export interface WorkflowDeps {
  temporal: Client;
  /** Task queue; tests have their own. */
  lifecycleQueue?: string;
}

/** @throws ServiceError `payment_not_found`, `refund_not_found`, … */
export async function findResource(
  stores: ResourceStores,
  kind: CallbackResource,
  id: string,
): Promise<Resource> {
  const resource = await LIFECYCLES[kind].get(stores, id);
  if (resource !== null) return resource;
  throw new ServiceError(`${kind}_not_found`, `There is no ${kind} ${id}.`);
}

import type { Client } from '@temporalio/client';
import type { CallbackResource } from '../domain/callback';
import { LIFECYCLES, type Resource, type ResourceStores } from '../lifecycles';
import { CliFailure } from './failure';

/** Dependencies of acts on workflows. */
export interface WorkflowDeps {
  temporal: Client;
  /** Task queue; tests have their own. */
  lifecycleQueue?: string;
}

/** Finds a resource. @throws CliFailure `payment_not_found`, `refund_not_found`, … */
export async function findResource(
  stores: ResourceStores,
  kind: CallbackResource,
  id: string,
): Promise<Resource> {
  const found = await LIFECYCLES[kind].get(stores, id);
  if (found !== null) return found;
  throw new CliFailure(`${kind}_not_found`, `There is no ${kind} ${id}.`);
}

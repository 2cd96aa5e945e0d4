import type { Client } from '@temporalio/client';
import type { CallbackResource } from '../domain/callback';
import { LIFECYCLES, type Resource, type ResourceStores } from '../lifecycles';
import { CliFailure } from './failure';

/** What acting on workflows takes. */
export interface WorkflowDeps {
  temporal: Client;
  /** Another queue than the product's, in tests. */
  lifecycleQueue?: string;
}

/** @throws CliFailure `payment_not_found`, `refund_not_found`, `payout_not_found` */
export async function findResource(
  stores: ResourceStores,
  kind: CallbackResource,
  id: string,
): Promise<Resource> {
  const found = await LIFECYCLES[kind].get(stores, id);
  if (found !== null) return found;
  throw new CliFailure(`${kind}_not_found`, `There is no ${kind} ${id}.`);
}

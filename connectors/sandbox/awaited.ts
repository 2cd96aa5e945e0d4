import type { CallbackResource } from '../../src/domain/callback/callback';
import { isInFlight, LIFECYCLES } from '../../src/lifecycles';
import type { InboxStores } from '../contract/callbacks';

/** Whether the product still waits for a resource's outcome, or has not stored the resource yet. */
export async function isAwaited(
  product: InboxStores,
  kind: CallbackResource,
  id: string,
): Promise<boolean> {
  const record = await LIFECYCLES[kind].get(product, id);
  return record === null || isInFlight(kind, record.status);
}

import type { CallbackResource } from '../../src/domain/callback';
import { isInFlight, LIFECYCLES } from '../../src/lifecycles';
import type { InboxStores } from '../contract/callbacks';

/** Whether the product still waits for what becomes of a resource; also while it has no record yet. */
export async function isAwaited(
  product: InboxStores,
  kind: CallbackResource,
  id: string,
): Promise<boolean> {
  const found = await LIFECYCLES[kind].get(product, id);
  return found === null || isInFlight(kind, found.status);
}

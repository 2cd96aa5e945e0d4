import { availableEntry, catalogEntry, PAYMENT_METHOD_IDS } from '../domain/payment/catalog';
import { listAvailablePaymentMethods, listPaymentMethods } from '../domain/wire/catalogue';
import { listAvailableMethods } from '../service/payments';
import type { ApiDeps } from './context';
import type { Mount } from './mount';

/** @see docs/api.md#methods */
export function mountCatalog(mount: Mount, deps: ApiDeps): void {
  const catalog = { object: 'list', data: PAYMENT_METHOD_IDS.map(catalogEntry) };

  mount.endpoint(listPaymentMethods, async () => catalog);

  mount.endpoint(listAvailablePaymentMethods, async ({ key }) => ({
    object: 'list',
    data: (await listAvailableMethods(deps, key)).map(availableEntry),
  }));
}

import { availableEntry, catalogueEntry, PAYMENT_METHOD_IDS } from '../domain/catalogue';
import { listAvailablePaymentMethods, listPaymentMethods } from '../domain/wire/catalogue';
import { availableMethods } from '../routing';
import type { ApiDeps } from './context';
import type { Mount } from './mount';

/** @see docs/api.md#methods */
export function mountCatalogue(mount: Mount, { stores, connectors }: ApiDeps): void {
  const catalogue = { object: 'list', data: PAYMENT_METHOD_IDS.map(catalogueEntry) };

  mount.endpoint(listPaymentMethods, async () => catalogue);

  mount.endpoint(listAvailablePaymentMethods, async ({ key }) => {
    const account = await stores.accounts.get(key.account_id);
    const methods = availableMethods(connectors, account?.enabled_methods ?? [], key.livemode);
    return { object: 'list', data: methods.map(availableEntry) };
  });
}

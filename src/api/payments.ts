import * as wire from '../domain/wire/payments';
import { cancelPayment, createPayment, getPayment, listPayments } from '../service/payments';
import { presentPage, presentPayment, presentPaymentTo } from '../service/present';
import type { ApiDeps } from './context';
import type { Mount } from './mount';

/** @see docs/api.md#create-a-payment */
export function mountPayments(mount: Mount, deps: ApiDeps): void {
  mount.create(wire.createPayment, (request) => createPayment(deps, request));

  mount.endpoint(wire.getPayment, async ({ key, params }) =>
    presentPayment(deps, await getPayment(deps, key, params.id)),
  );
  mount.endpoint(wire.listPayments, async ({ key, query }) =>
    presentPage(await listPayments(deps, key, query), (row) => presentPayment(deps, row)),
  );
  mount.endpoint(wire.cancelPayment, async ({ key, params }) =>
    presentPaymentTo(deps, await cancelPayment(deps, key, params.id), key),
  );
}

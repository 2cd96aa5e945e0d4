import * as wire from '../domain/wire/refunds';
import { presentPage, presentRefund } from '../service/present';
import { createRefund, getRefund, listPaymentRefunds, listRefunds } from '../service/refunds';
import type { ApiDeps } from './context';
import type { Mount } from './mount';

/** @see docs/api.md#refunds */
export function mountRefunds(mount: Mount, deps: ApiDeps): void {
  mount.create(wire.createRefund, (request) => createRefund(deps, request));

  mount.endpoint(wire.getRefund, async ({ key, params }) =>
    presentRefund(await getRefund(deps, key, params.id)),
  );
  mount.endpoint(wire.listRefunds, async ({ key, query }) =>
    presentPage(await listRefunds(deps, key, query), presentRefund),
  );
  mount.endpoint(wire.listPaymentRefunds, async ({ key, params, query }) =>
    presentPage(await listPaymentRefunds(deps, key, params.id, query), presentRefund),
  );
}

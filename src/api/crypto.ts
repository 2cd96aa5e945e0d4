import * as wire from '../domain/wire/crypto';
import {
  createCryptoPayment,
  createCryptoSettlement,
  getCryptoPayment,
  getCryptoSettlement,
  listCryptoPayments,
  listCryptoSettlements,
} from '../service/crypto';
import { presentCryptoPayment, presentCryptoSettlement, presentPage } from '../service/present';
import type { ApiDeps } from './context';
import type { Mount } from './mount';

/** @see docs/api.md#crypto */
export function mountCrypto(mount: Mount, deps: ApiDeps): void {
  mount.create(wire.createCryptoPayment, (request) => createCryptoPayment(deps, request));

  mount.endpoint(wire.getCryptoPayment, async ({ key, params }) =>
    presentCryptoPayment(deps, await getCryptoPayment(deps, key, params.id)),
  );
  mount.endpoint(wire.listCryptoPayments, async ({ key, query }) =>
    presentPage(await listCryptoPayments(deps, key, query), (row) =>
      presentCryptoPayment(deps, row),
    ),
  );

  mount.create(wire.createCryptoSettlement, (request) => createCryptoSettlement(deps, request));

  mount.endpoint(wire.getCryptoSettlement, async ({ key, params }) =>
    presentCryptoSettlement(await getCryptoSettlement(deps, key, params.id)),
  );
  mount.endpoint(wire.listCryptoSettlements, async ({ key, query }) =>
    presentPage(await listCryptoSettlements(deps, key, query), presentCryptoSettlement),
  );
}

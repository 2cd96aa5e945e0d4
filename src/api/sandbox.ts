import * as wire from '../domain/wire/sandbox';
import {
  presentCryptoPayment,
  presentCryptoSettlement,
  presentPaymentTo,
  presentPayout,
  presentRefund,
} from '../service/present';
import {
  simulateCryptoPayment,
  simulateCryptoSettlement,
  simulatePayment,
  simulatePayout,
  simulateRefund,
} from '../service/sandbox';
import type { ApiDeps } from './context';
import type { Mount } from './mount';

/** @see docs/decisions.md#sandbox */
export function mountSandbox(mount: Mount, deps: ApiDeps): void {
  mount.endpoint(wire.simulatePayment, async ({ key, params, body }) =>
    presentPaymentTo(deps, await simulatePayment(deps, key, params.id, body), key),
  );
  mount.endpoint(wire.simulateRefund, async ({ key, params, body }) =>
    presentRefund(await simulateRefund(deps, key, params.id, body)),
  );
  mount.endpoint(wire.simulatePayout, async ({ key, params, body }) =>
    presentPayout(await simulatePayout(deps, key, params.id, body)),
  );
  mount.endpoint(wire.simulateCryptoPayment, async ({ key, params, body }) =>
    presentCryptoPayment(deps, await simulateCryptoPayment(deps, key, params.id, body)),
  );
  mount.endpoint(wire.simulateCryptoSettlement, async ({ key, params, body }) =>
    presentCryptoSettlement(await simulateCryptoSettlement(deps, key, params.id, body)),
  );
}

import { railEntry } from '../domain/payout/rails';
import * as wire from '../domain/wire/payouts';
import { createPayout, getPayout, listPayouts, listRails } from '../service/payouts';
import { presentPage, presentPayout } from '../service/present';
import type { ApiDeps } from './context';
import type { Mount } from './mount';

/** @see docs/api.md#payouts */
export function mountPayouts(mount: Mount, deps: ApiDeps): void {
  mount.create(wire.createPayout, (request) => createPayout(deps, request));

  mount.endpoint(wire.getPayout, async ({ key, params }) =>
    presentPayout(await getPayout(deps, key, params.id)),
  );
  mount.endpoint(wire.listPayouts, async ({ key, query }) =>
    presentPage(await listPayouts(deps, key, query), presentPayout),
  );
  mount.endpoint(wire.listPayoutMethods, async ({ key }) => ({
    object: 'list',
    data: (await listRails(deps, key)).map(railEntry),
  }));
}

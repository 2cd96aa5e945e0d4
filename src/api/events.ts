import * as events from '../domain/wire/events';
import { getMerchantEvent, listMerchantEvents } from '../service/events/merchant';
import { presentPage } from '../service/present';
import type { ApiDeps } from './context';
import type { Mount } from './mount';

/** @see docs/api.md#events */
export function mountEvents(mount: Mount, deps: ApiDeps): void {
  mount.endpoint(events.listEvents, async ({ key, query }) =>
    presentPage(await listMerchantEvents(deps, key, query), (event) => event),
  );
  mount.endpoint(events.getEvent, ({ key, params }) => getMerchantEvent(deps, key, params.id));
}

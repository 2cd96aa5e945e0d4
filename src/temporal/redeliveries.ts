import type { SendAgainFilter } from '../store/events';
import { type RedeliverDeps, redeliverEvent } from './redeliver';
import { countSelected, redeliverAll, type Selected, type Sent } from './redeliver-many';

/** Door by which merchants' staff send events again. */
export interface Redeliveries {
  /** @throws ActFailure as `redeliverEvent` */
  one: (eventId: string) => Promise<void>;
  /** @throws ActFailure `webhook_not_set` */
  count: (filter: SendAgainFilter) => Promise<Selected>;
  /** @throws RedeliveryStopped */
  all: (filter: SendAgainFilter) => Promise<Sent>;
}

export function createRedeliveries(deps: RedeliverDeps): Redeliveries {
  return {
    one: async (eventId) => {
      await redeliverEvent(deps, eventId);
    },
    count: (filter) => countSelected(deps, filter),
    all: (filter) => redeliverAll(deps, filter, () => undefined),
  };
}

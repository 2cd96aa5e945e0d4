import { Refusal } from '../domain/errors';
import type { ResourceCallback } from '../domain/wire/callback';
import { LIFECYCLES, type ResourceStores } from '../lifecycles';
import type { Stores } from '../store';
import { callbackKey } from '../store/callbacks';

/** Per connector; beyond it, callbacks about unknown resources are refused. */
const PARKED_MAX = 1_000;
/** A count holds for this time. */
const FULL_MS = 10_000;

type ParkedStores = ResourceStores & Pick<Stores, 'callbacks'>;

type ParkedLimit = ReturnType<typeof createParkedLimit>;

/** Callers of `deliverCallback` share nothing but their stores, which live as long as they do. */
const limits = new WeakMap<Stores['callbacks'], ParkedLimit>();

export function getParkedLimit(stores: ParkedStores): ParkedLimit {
  const limit = limits.get(stores.callbacks) ?? createParkedLimit(stores);
  limits.set(stores.callbacks, limit);
  return limit;
}

/** Bounds the callbacks without a resource that a connector can have stored. */
function createParkedLimit(stores: ParkedStores) {
  const fullAt = new Map<string, number>();
  const count = async (connector: string): Promise<boolean> => {
    const parked = await stores.callbacks.countWaiting({ waits: 'parked', connector }, PARKED_MAX);
    const isFull = parked >= PARKED_MAX;
    if (isFull) fullAt.set(connector, performance.now());
    else fullAt.delete(connector);
    return isFull;
  };
  return {
    count,
    /** @throws Refusal `rate_limited` for a new callback that would be parked */
    assertNotFull: async ({ connector, resource, resource_id, callback }: ResourceCallback) => {
      const at = fullAt.get(connector);
      if (at === undefined) return;
      const isFresh = performance.now() - at < FULL_MS;
      if (!isFresh && !(await count(connector))) return;
      if ((await LIFECYCLES[resource].get(stores, resource_id))?.connector === connector) return;
      if ((await stores.callbacks.get(callbackKey(connector, callback.callback_id))) !== null)
        return;
      const message = `${PARKED_MAX} callbacks of this connector about unknown resources wait for an operator.`;
      throw new Refusal('rate_limited', message);
    },
  };
}

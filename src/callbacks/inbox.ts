import type { Client } from '@temporalio/client';
import type { CallbackSignature } from '../domain/callback/signature';
import { Refusal, ServiceError, unavailable } from '../domain/errors';
import { LIFECYCLES } from '../lifecycles';
import { callbackKey } from '../store/callbacks';
import { withinLimit } from '../temporal/within-limit';
import {
  CallbackConflict,
  type CallbackDeps,
  deliverCallback,
  type ResourceCallback,
} from './deliver';

/** Parked callbacks of one connector, above which others about unknown resources are refused. */
const PARKED_MAX = 1_000;
/** Time for which a count holds. */
const FULL_MS = 10_000;

export type CallbackInbox = ReturnType<typeof createCallbackInbox>;

type CallbackInboxDeps = Omit<CallbackDeps, 'temporal' | 'key' | 'memory' | 'everyFact'> & {
  client: Client;
};

export function createCallbackInbox({ client, ...rest }: CallbackInboxDeps) {
  const deps: CallbackDeps = { ...rest, temporal: client };
  const parked = limitParked(deps);
  return {
    /** Receives a bank's callback. @throws Refusal `temporarily_unavailable`: outcome unknown */
    deliver: (callback: ResourceCallback) =>
      withinLimit(client, () => orUnavailable(deliverCallback(deps, callback))),
    /**
     * Receives a signed callback.
     * @throws Refusal `callback_conflict`; `temporarily_unavailable` and `rate_limited`, when too
     *   many of its connector are parked: send the same `callback_id` again
     */
    receive: (callback: ResourceCallback, signature: CallbackSignature) =>
      withinLimit(client, async () => {
        await parked.assertNotFull(callback);
        const receipt = await receiveSigned({ ...deps, everyFact: true }, callback, signature);
        if (receipt === 'parked') await parked.count(callback.connector);
        return receipt;
      }),
  };
}

/** Bounds the callbacks without a resource that the holder of a key can have stored. */
function limitParked({ stores }: Pick<CallbackDeps, 'stores'>) {
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
    /** @throws Refusal `rate_limited` for one that would be parked, unless it is stored already */
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

/** While its document is older than its workflow, the bank repeats the callback. */
async function orUnavailable<T>(delivery: Promise<T>): Promise<T> {
  try {
    return await delivery;
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    throw unavailable('The state of the resource is being restored.', error);
  }
}

async function receiveSigned(
  deps: CallbackDeps,
  callback: ResourceCallback,
  signature: CallbackSignature,
) {
  try {
    return await orUnavailable(deliverCallback(deps, callback, signature));
  } catch (error) {
    if (!(error instanceof CallbackConflict)) throw error;
    throw new Refusal('callback_conflict', error.message);
  }
}

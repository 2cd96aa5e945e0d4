import type { Client } from '@temporalio/client';
import { createNamedGates } from '../base/gate';
import type { CallbackSignature } from '../domain/banks/callback';
import { Refusal, ServiceError, unavailable } from '../domain/errors';
import { withinLimit } from '../temporal/deadline';
import {
  CallbackConflict,
  type CallbackDeps,
  deliverCallback,
  type ResourceCallback,
} from './deliver';
import { createCallbackMemory } from './memory';

/** Per connector: callbacks about unknown resources are not urgent. */
const UNKNOWN_AT_ONCE = 2;

export type CallbackInbox = ReturnType<typeof createCallbackInbox>;

type CallbackInboxDeps = Omit<
  CallbackDeps,
  'temporal' | 'key' | 'memory' | 'everyFact' | 'runUnknown' | 'log'
> & {
  client: Client;
  log: NonNullable<CallbackDeps['log']>;
};

export function createCallbackInbox({ client, ...rest }: CallbackInboxDeps) {
  const unknown = createNamedGates({ atOnce: UNKNOWN_AT_ONCE, rest: 2 });
  const memory = createCallbackMemory(rest.stores.callbacks, rest.log);
  const deps: CallbackDeps = { ...rest, temporal: client, memory, runUnknown: unknown.run };
  return {
    /** @throws Refusal `temporarily_unavailable`: outcome unknown */
    deliver: (callback: ResourceCallback) =>
      withinLimit(client, () => orUnavailable(deliverCallback(deps, callback))),
    /**
     * @throws Refusal `callback_conflict`; `temporarily_unavailable`, or `rate_limited` when too
     * many of the connector are parked: send the same `callback_id` again
     */
    receive: (callback: ResourceCallback, signature: CallbackSignature) =>
      withinLimit(client, async () => {
        try {
          const all = { ...deps, everyFact: true } as const;
          return await orUnavailable(deliverCallback(all, callback, signature));
        } catch (error) {
          if (!(error instanceof CallbackConflict)) throw error;
          throw new Refusal('callback_conflict', error.message);
        }
      }),
    /** Writes what is only remembered. */
    close: memory.close,
  };
}

/** The bank repeats the callback while the document is older than its workflow. */
async function orUnavailable<T>(delivery: Promise<T>): Promise<T> {
  try {
    return await delivery;
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    throw unavailable('The state of the resource is being restored.', error);
  }
}

import type { Client } from '@temporalio/client';
import type { CallbackSignature } from '../domain/callback/signature';
import { Refusal } from '../domain/errors';
import { withinLimit } from '../temporal/within-limit';
import {
  CallbackConflict,
  type CallbackDeps,
  deliverCallback,
  type ResourceCallback,
} from './deliver';

export type CallbackInbox = ReturnType<typeof createCallbackInbox>;

type CallbackInboxDeps = Omit<CallbackDeps, 'temporal' | 'key' | 'memory' | 'everyFact'> & {
  client: Client;
};

export function createCallbackInbox({ client, ...rest }: CallbackInboxDeps) {
  const deps: CallbackDeps = { ...rest, temporal: client };
  return {
    /** Receives a bank's callback. @throws Refusal `temporarily_unavailable`: outcome unknown */
    deliver: (callback: ResourceCallback) =>
      withinLimit(client, () => deliverCallback(deps, callback)),
    /**
     * Receives a signed callback.
     * @throws Refusal `callback_conflict`; `temporarily_unavailable`: send the same `callback_id`
     *   again
     */
    receive: (callback: ResourceCallback, signature: CallbackSignature) =>
      withinLimit(client, () => receiveSigned({ ...deps, everyFact: true }, callback, signature)),
  };
}

async function receiveSigned(
  deps: CallbackDeps,
  callback: ResourceCallback,
  signature: CallbackSignature,
) {
  try {
    return await deliverCallback(deps, callback, signature);
  } catch (error) {
    if (!(error instanceof CallbackConflict)) throw error;
    throw new Refusal('callback_conflict', error.message);
  }
}

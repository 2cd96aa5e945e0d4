import { randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import type { CallbackName, CallbackResource } from '../domain/callback';
import { Refusal } from '../domain/errors';
import { simulatePayment, simulatePayout, simulateRefund } from '../domain/wire/sandbox';
import { callbackKey } from '../store/callbacks';
import type { KeyDocument, KeyOwner } from '../store/keys';
import type { ApiDeps } from './context';
import type { Mount } from './mount';
import { paymentReader } from './payments';
import { payoutReader } from './payouts';
import { refundReader } from './refunds';

/** Time that an answer waits for the workflow to handle the event. */
const SETTLE_MS = 5_000;
const LOOK_AGAIN_MS = 20;

/** The event goes the way of every bank callback. @see docs/decisions.md#sandbox */
export function mountSandbox(mount: Mount, deps: ApiDeps): void {
  mount.endpoint(simulatePayment, simulation(deps, 'payment', paymentReader(deps)));
  mount.endpoint(simulateRefund, simulation(deps, 'refund', refundReader(deps)));
  mount.endpoint(simulatePayout, simulation(deps, 'payout', payoutReader(deps)));
}

/** Fields of a document that a simulation needs. */
interface Simulated {
  _id: string;
  version: number;
  connector: string;
}

interface Reader<Document extends Simulated> {
  /** @throws Refusal 404 */
  find(id: string, key: KeyOwner): Promise<Document>;
  present(document: Document): object;
}

interface SimulateCall {
  key: KeyDocument;
  params: { id: string };
  body: { event: CallbackName; code?: string | null; reason?: string | null };
}

/** Handler that lets the bank report about one kind of resource. */
function simulation<Document extends Simulated>(
  deps: ApiDeps,
  resource: CallbackResource,
  { find, present }: Reader<Document>,
) {
  return async ({ key, params, body: { event, code, reason } }: SimulateCall): Promise<object> => {
    if (key.livemode) {
      const message = 'Only sandbox keys can simulate what a bank reports.';
      throw new Refusal('api_key_scope_insufficient', message);
    }
    const before = await find(params.id, key);
    const { _id: resource_id, connector } = before;
    const callback_id = `simulated_${randomUUID()}`;
    await deps.temporal.deliverCallback({
      connector,
      resource,
      resource_id,
      name: event,
      callback: {
        callback_id,
        occurred_at: deps.now().toISOString(),
        code: code ?? undefined,
        reason: reason ?? undefined,
      },
    });
    const look = () => find(params.id, key);
    return present(await afterCallback(deps, look, before, callbackKey(connector, callback_id)));
  };
}

/** Waits until the document has moved, or the callback is kept as one that moves nothing. */
async function afterCallback<Document extends Simulated>(
  { stores }: ApiDeps,
  look: () => Promise<Document>,
  before: Document,
  callback: string,
): Promise<Document> {
  const giveUpAt = Date.now() + SETTLE_MS;
  while (Date.now() < giveUpAt) {
    const now = await look();
    if (now.version > before.version) return now;
    const kept = await stores.callbacks.get(callback);
    if (kept?.unapplied != null || kept?.parked != null) break;
    await wait(LOOK_AGAIN_MS);
  }
  return await look();
}

import { randomBytes, randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import type { BankCallback, CallbackName, CallbackResource } from '../domain/callback';
import type { CryptoCallback } from '../domain/crypto-callback';
import { type SimulatedDeposit, simulatedReport } from '../domain/crypto-simulation';
import { Refusal } from '../domain/errors';
import {
  simulateCryptoPayment,
  simulateCryptoSettlement,
  simulatePayment,
  simulatePayout,
  simulateRefund,
} from '../domain/wire/sandbox';
import { callbackKey } from '../store/callbacks';
import type { KeyDocument, KeyOwner } from '../store/keys';
import type { ApiDeps } from './context';
import { cryptoPaymentReader, cryptoSettlementReader } from './crypto';
import type { Mount } from './mount';
import { paymentReader } from './payments';
import { payoutReader } from './payouts';
import { refundReader } from './refunds';

/** Time that an answer waits for the workflow to handle the event. */
const SETTLE_MS = 5_000;
const LOOK_AGAIN_MS = 20;

/** The event goes the way of every bank callback. @see docs/decisions.md#sandbox */
export function mountSandbox(mount: Mount, deps: ApiDeps): void {
  const told = (_: object, { event, code, reason }: Told) => ({
    name: event,
    callback: {
      occurred_at: deps.now().toISOString(),
      code: code ?? undefined,
      reason: reason ?? undefined,
    },
  });
  const { find, presentTo: present } = paymentReader(deps);
  mount.endpoint(simulatePayment, simulation(deps, 'payment', { find, present }, told));
  mount.endpoint(simulateRefund, simulation(deps, 'refund', refundReader(deps), told));
  mount.endpoint(simulatePayout, simulation(deps, 'payout', payoutReader(deps), told));
  mount.endpoint(
    simulateCryptoSettlement,
    simulation(deps, 'crypto_settlement', cryptoSettlementReader(deps), told),
  );
  mount.endpoint(
    simulateCryptoPayment,
    simulation(
      deps,
      'crypto_payment',
      cryptoPaymentReader(deps),
      (payment, wish: SimulatedDeposit) =>
        simulatedReport(payment, wish, {
          transaction_id: freshTransaction(payment.network),
          now: deps.now().toISOString(),
        }),
    ),
  );
}

/** Id of a transaction that no chain knows, in the form of its network. */
function freshTransaction(network: string): string {
  return `${network === 'ethereum' ? '0x' : ''}${randomBytes(32).toString('hex')}`;
}

interface Told {
  event: CallbackName;
  code?: string | null;
  reason?: string | null;
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
  present(document: Document, key: KeyDocument): object;
}

interface Report {
  name: CallbackName;
  callback: Omit<BankCallback, 'callback_id'> | Omit<CryptoCallback, 'callback_id'>;
}

interface SimulateCall<Body> {
  key: KeyDocument;
  params: { id: string };
  body: Body;
}

/** Handler that lets the sandbox's connector report about one kind of resource. */
function simulation<Document extends Simulated, Body>(
  deps: ApiDeps,
  resource: CallbackResource,
  { find, present }: Reader<Document>,
  reportOf: (document: Document, body: Body) => Report,
) {
  return async ({ key, params, body }: SimulateCall<Body>): Promise<object> => {
    if (key.livemode) {
      const message = 'Only sandbox keys can simulate what a bank reports.';
      throw new Refusal('api_key_scope_insufficient', message);
    }
    const before = await find(params.id, key);
    const { _id: resource_id, connector } = before;
    const callback_id = `simulated_${randomUUID()}`;
    const { name, callback } = reportOf(before, body);
    await deps.temporal.deliverCallback({
      connector,
      resource,
      resource_id,
      name,
      callback: { callback_id, ...callback },
    });
    const look = () => find(params.id, key);
    const kept = callbackKey(connector, callback_id);
    return present(await afterCallback(deps, look, before, kept), key);
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

import { randomBytes, randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import type { BankCallback, CallbackName, CallbackResource } from '../domain/callback/callback';
import type { CryptoCallback } from '../domain/crypto/callback';
import { type SimulatedDeposit, simulateReport } from '../domain/crypto/simulation';
import { Refusal } from '../domain/errors';
import { callbackKey } from '../store/callbacks';
import { getCryptoPayment, getCryptoSettlement } from './crypto';
import type { MerchantDeps, Owner } from './deps';
import { getPayment } from './payments';
import { getPayout } from './payouts';
import { getRefund } from './refunds';

/** Longest wait for the workflow to handle the event. */
const SETTLE_MS = 5_000;
const POLL_MS = 20;

interface SimulatedEvent {
  event: CallbackName;
  code?: string | null;
  reason?: string | null;
}

interface Report {
  name: CallbackName;
  callback: Omit<BankCallback, 'callback_id'> | Omit<CryptoCallback, 'callback_id'>;
}

interface SimulatedResource {
  _id: string;
  version: number;
  connector: string;
}

type Find<D extends SimulatedResource> = (
  deps: MerchantDeps,
  caller: Owner,
  id: string,
) => Promise<D>;

/**
 * These functions let the sandbox's connector report an event about a resource of the caller, like
 * every bank callback, and return the changed resource. They throw Refusal 403 for a live caller,
 * and 404.
 * @see docs/decisions.md#sandbox
 */
export const simulatePayment = createBankSimulation('payment', getPayment);
export const simulateRefund = createBankSimulation('refund', getRefund);
export const simulatePayout = createBankSimulation('payout', getPayout);
export const simulateCryptoSettlement = createBankSimulation(
  'crypto_settlement',
  getCryptoSettlement,
);

export async function simulateCryptoPayment(
  deps: MerchantDeps,
  caller: Owner,
  id: string,
  deposit: SimulatedDeposit,
) {
  return await simulate(deps, caller, {
    id,
    resource: 'crypto_payment',
    find: getCryptoPayment,
    buildReport: (payment) =>
      simulateReport(payment, deposit, {
        transaction_id: makeTransactionId(payment.network),
        now: deps.now().toISOString(),
      }),
  });
}

/** Generates the id of a transaction that does not exist. */
function makeTransactionId(network: string): string {
  return `${network === 'ethereum' ? '0x' : ''}${randomBytes(32).toString('hex')}`;
}

function createBankSimulation<D extends SimulatedResource>(
  resource: CallbackResource,
  find: Find<D>,
) {
  return (
    deps: MerchantDeps,
    caller: Owner,
    id: string,
    { event, code, reason }: SimulatedEvent,
  ): Promise<D> => {
    const occurred_at = deps.now().toISOString();
    const callback = { occurred_at, code: code ?? undefined, reason: reason ?? undefined };
    const buildReport = () => ({ name: event, callback });
    return simulate(deps, caller, { id, resource, find, buildReport });
  };
}

interface Simulation<D extends SimulatedResource> {
  id: string;
  resource: CallbackResource;
  find: Find<D>;
  buildReport: (document: D) => Report;
}

async function simulate<D extends SimulatedResource>(
  deps: MerchantDeps,
  caller: Owner,
  { id, resource, find, buildReport }: Simulation<D>,
): Promise<D> {
  if (caller.livemode) {
    const message = 'Only sandbox keys can simulate what a bank reports.';
    throw new Refusal('api_key_scope_insufficient', message);
  }
  const before = await find(deps, caller, id);
  const { _id: resource_id, connector } = before;
  const callback_id = `simulated_${randomUUID()}`;
  const { name, callback } = buildReport(before);
  await deps.callbacks.deliver({
    connector,
    resource,
    resource_id,
    name,
    callback: { callback_id, ...callback },
  });
  const reload = () => find(deps, caller, id);
  return await waitForCallback(deps, reload, before, callbackKey(connector, callback_id));
}

/** Waits until the document changes, or until the callback is stored as not applied. */
async function waitForCallback<D extends SimulatedResource>(
  { stores }: MerchantDeps,
  reload: () => Promise<D>,
  before: D,
  callback: string,
): Promise<D> {
  const deadline = Date.now() + SETTLE_MS;
  while (Date.now() < deadline) {
    const current = await reload();
    if (current.version > before.version) return current;
    const storedCallback = await stores.callbacks.get(callback);
    if (storedCallback?.unapplied != null || storedCallback?.parked != null) break;
    await wait(POLL_MS);
  }
  return await reload();
}

import { isBalanceAccountName } from './domain/account/balance-account';
import { CRYPTO_METHODS } from './domain/crypto/assets';
import type { PaymentMethodId } from './domain/payment/catalog';
import { isPaymentMethodId, PAYMENT_METHOD_IDS } from './domain/payment/catalog';
import { isRailId, RAIL_IDS, type RailId } from './domain/payout/rails';

/** Name of the sandbox bank, which polls `connector-sandbox`. */
export const SANDBOX_CONNECTOR = 'sandbox';

/** Routing of methods and rails to connectors, by environment. */
export interface Connectors {
  /** Finds the connector of a method or rail; undefined when none serves it there. */
  findConnector(method: string, livemode: boolean): string | undefined;
  /** Name of the sandbox bank's connector. */
  sandbox: string;
  /** Names of all connectors. */
  names: readonly string[];
}

/**
 * Routes the sandbox's methods and rails to the sandbox bank, and the live ones as `live` says.
 * @param live `name=method|rail|pair,name=method`: the live connectors of this installation; a pair is
 *   a coin's, as `eth_ethereum`
 * @throws Error naming a connector whose name the ledger cannot hold, or an entry that is no method of the catalogue, no rail and no pair
 */
export function createConnectors(sandbox: string, live = ''): Connectors {
  const liveByMethod = new Map<string, string>();
  for (const entry of live.split(',').filter((text) => text.trim() !== '')) {
    const [name = '', methods = ''] = entry.split('=', 2).map((text) => text.trim());
    if (!isBalanceAccountName(name)) {
      throw new Error(`LIVE_CONNECTORS: "${name}" cannot be the name of a connector.`);
    }
    for (const method of methods.split('|')) {
      if (!isKnownMethod(method)) {
        throw new Error(`LIVE_CONNECTORS: ${name} names no method and no rail: "${method}".`);
      }
      liveByMethod.set(method, name);
    }
  }
  const ids = [...PAYMENT_METHOD_IDS, ...RAIL_IDS, ...CRYPTO_METHODS];
  const sandboxByMethod = new Map<string, string>(ids.map((id) => [id, sandbox]));
  return {
    findConnector: (method, livemode) => (livemode ? liveByMethod : sandboxByMethod).get(method),
    sandbox,
    names: [...new Set([sandbox, ...liveByMethod.values()])],
  };
}

/** Whether it is a method of the catalogue, a rail, or a coin's pair. */
function isKnownMethod(method: string): boolean {
  return isPaymentMethodId(method) || isRailId(method) || CRYPTO_METHODS.includes(method);
}

/**
 * Methods that the account has enabled *and* a connector serves.
 * @see docs/decisions.md#catalog
 */
export function availableMethods(
  connectors: Connectors,
  enabled: readonly string[],
  livemode: boolean,
): PaymentMethodId[] {
  return PAYMENT_METHOD_IDS.filter(
    (id) => enabled.includes(id) && connectors.findConnector(id, livemode) !== undefined,
  );
}

/** Rails that the account has not disabled *and* a connector serves. */
export function availableRails(
  connectors: Connectors,
  disabled: readonly RailId[],
  livemode: boolean,
): RailId[] {
  return RAIL_IDS.filter(
    (id) => !disabled.includes(id) && connectors.findConnector(id, livemode) !== undefined,
  );
}

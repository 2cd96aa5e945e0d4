import { isBalanceAccountName } from './domain/account/balance-account';
import { CRYPTO_METHODS } from './domain/crypto/assets';
import {
  isPaymentMethodId,
  PAYMENT_METHOD_IDS,
  type PaymentMethodId,
} from './domain/payment/catalog';
import { isRailId, RAIL_IDS, type RailId } from './domain/payout/rails';

export const SANDBOX_CONNECTOR = 'sandbox';

export interface Connectors {
  /** Finds the connector of a method or rail; undefined when none serves it there. */
  findConnector(method: string, livemode: boolean): string | undefined;
  sandbox: string;
  names: readonly string[];
}

/**
 * Routes every method in the sandbox to the sandbox bank, and those in live as `live` says.
 * @param live `name=method|rail|pair,name=method`; a pair names an asset, as `eth_ethereum`
 * @throws Error that names the invalid entry
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

/** Live connectors that pay recipients. */
export function listPayoutConnectors({ findConnector }: Pick<Connectors, 'findConnector'>) {
  const connectors = RAIL_IDS.flatMap((rail) => findConnector(rail, true) ?? []);
  return [...new Set(connectors)].toSorted();
}

function isKnownMethod(method: string): boolean {
  return isPaymentMethodId(method) || isRailId(method) || CRYPTO_METHODS.includes(method);
}

/** Methods that the account has enabled *and* a connector serves. @see docs/decisions.md#catalog */
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

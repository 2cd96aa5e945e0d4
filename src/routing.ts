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
  liveNames: readonly string[];
}

/** The variables `LIVE_CONNECTORS` and `SANDBOX_CONNECTORS`. */
export interface Routes {
  liveConnectors: string;
  sandboxConnectors?: string;
}

/**
 * Routes every method in the sandbox to the sandbox bank, unless a bank's own test system serves
 * it, and those in live as `live` says.
 * @param live `name=method|rail|pair,name=method`; a pair names an asset, as `eth_ethereum`
 * @param tests test systems of banks, in the same form
 * @throws Error that names the invalid entry
 */
export function createConnectors(sandbox: string, live = '', tests = ''): Connectors {
  const liveByMethod = parseRoutes('LIVE_CONNECTORS', live);
  const testByMethod = parseRoutes('SANDBOX_CONNECTORS', tests);
  const liveNames = [...new Set(liveByMethod.values())];
  const testNames = [...new Set(testByMethod.values())];
  const shared = testNames.find((name) => name !== sandbox && liveNames.includes(name));
  if (shared !== undefined) {
    throw new Error(
      `SANDBOX_CONNECTORS: ${shared} is in LIVE_CONNECTORS, too. A process reaches one bank: run ` +
        'another one under a name of its own for the test system.',
    );
  }
  const ids = [...PAYMENT_METHOD_IDS, ...RAIL_IDS, ...CRYPTO_METHODS];
  const ownByMethod = ids.map((id): [string, string] => [id, sandbox]);
  const sandboxByMethod = new Map([...ownByMethod, ...testByMethod]);
  return {
    findConnector: (method, livemode) => (livemode ? liveByMethod : sandboxByMethod).get(method),
    sandbox,
    names: [...new Set([sandbox, ...liveNames, ...testNames])],
    liveNames,
  };
}

/** @returns connectors by method, rail or pair; one that is named twice goes to the last */
function parseRoutes(
  variable: 'LIVE_CONNECTORS' | 'SANDBOX_CONNECTORS',
  text: string,
): Map<string, string> {
  const connectors = new Map<string, string>();
  for (const entry of text.split(',').filter((each) => each.trim() !== '')) {
    const [name = '', methods = ''] = entry.split('=', 2).map((each) => each.trim());
    if (!isBalanceAccountName(name)) {
      throw new Error(`${variable}: "${name}" cannot be the name of a connector.`);
    }
    for (const method of methods.split('|')) {
      if (!isKnownMethod(method)) {
        throw new Error(`${variable}: ${name} names no method and no rail: "${method}".`);
      }
      connectors.set(method, name);
    }
  }
  return connectors;
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

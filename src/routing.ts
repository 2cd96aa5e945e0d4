import { findRule, type RoutingRule, type RuleMap } from './domain/banks/capabilities';
import { CRYPTO_METHODS } from './domain/crypto/assets';
import { isBalanceAccountName } from './domain/money/money';
import { methodRules, PAYMENT_METHOD_IDS, type PaymentMethodId } from './domain/payment/catalog';
import { RAIL_IDS, type RailId, railRules } from './domain/payout/rails';

export const SANDBOX_CONNECTOR = 'sandbox';

export const METHODS: readonly string[] = [...PAYMENT_METHOD_IDS, ...RAIL_IDS, ...CRYPTO_METHODS];

export interface Connectors {
  /** Undefined when none serves the method or rail. */
  findConnector(method: string, livemode: boolean): string | undefined;
  listConnectors(method: string, livemode: boolean): readonly string[];
  sandbox: string;
  names: readonly string[];
  liveNames: readonly string[];
}

export interface Routes {
  liveConnectors: string;
  sandboxConnectors?: string;
}

/**
 * Routes by the variables; the sandbox bank serves a sandbox method unless a bank's test system
 * does.
 * @param live `name=method|rail|pair,name=method`; a pair names an asset, as `eth_ethereum`
 * @param tests test systems of banks, in the same form
 * @throws Error that names the invalid entry
 */
export function createConnectors(sandbox: string, live = '', tests = ''): Connectors {
  const liveByMethod = parseRoutes('LIVE_CONNECTORS', live);
  const testByMethod = parseRoutes('SANDBOX_CONNECTORS', tests);
  const liveNames = listNames(liveByMethod);
  const testNames = listNames(testByMethod);
  const shared = testNames.find((name) => name !== sandbox && liveNames.includes(name));
  if (shared !== undefined) {
    throw new Error(
      `SANDBOX_CONNECTORS: ${shared} is in LIVE_CONNECTORS, too. A process reaches one bank: run ` +
        'another one under a name of its own for the test system.',
    );
  }
  const listConnectors = (method: string, livemode: boolean): readonly string[] => {
    if (livemode) return liveByMethod.get(method) ?? [];
    return isKnownMethod(method) ? addLast([sandbox], testByMethod.get(method) ?? []) : [];
  };
  return {
    findConnector: (method, livemode) => listConnectors(method, livemode).at(-1),
    listConnectors,
    sandbox,
    names: [...new Set([sandbox, ...liveNames, ...testNames])],
    liveNames,
  };
}

type ConnectorsByMethod = ReadonlyMap<string, readonly string[]>;

function listNames(connectors: ConnectorsByMethod): string[] {
  return [...new Set([...connectors.values()].flat())];
}

function addLast(names: readonly string[], added: readonly string[]): readonly string[] {
  return [...names.filter((name) => !added.includes(name)), ...added];
}

function parseRoutes(
  variable: 'LIVE_CONNECTORS' | 'SANDBOX_CONNECTORS',
  text: string,
): ConnectorsByMethod {
  const connectors = new Map<string, readonly string[]>();
  for (const entry of text.split(',').filter((each) => each.trim() !== '')) {
    const [name = '', methods = ''] = entry.split('=', 2).map((each) => each.trim());
    if (!isBalanceAccountName(name)) {
      throw new Error(`${variable}: "${name}" cannot be the name of a connector.`);
    }
    for (const method of methods.split('|')) {
      if (!isKnownMethod(method)) {
        throw new Error(`${variable}: ${name} names no method and no rail: "${method}".`);
      }
      connectors.set(method, addLast(connectors.get(method) ?? [], [name]));
    }
  }
  return connectors;
}

export function listPayoutConnectors({ listConnectors }: Pick<Connectors, 'listConnectors'>) {
  const connectors = RAIL_IDS.flatMap((rail) => listConnectors(rail, true));
  return [...new Set(connectors)].toSorted();
}

export function isKnownMethod(method: string): boolean {
  return METHODS.includes(method);
}

export type FindConnector = (method: string, currency?: string) => string | undefined;

/**
 * Prefers the most specific rule, or else the variables. A rule whose connector the variables do
 * not name serves nobody: another bank is never chosen in its place.
 * @see docs/connectors.md#route-by-rules
 */
export function routeBy(
  connectors: Pick<Connectors, 'findConnector' | 'listConnectors'>,
  rules: RuleMap<RoutingRule>,
  { account_id, livemode }: { account_id: string; livemode: boolean },
): FindConnector {
  return (method, currency) => {
    const rule = findRule(rules, { livemode, method, currency, account_id });
    if (rule === undefined) return connectors.findConnector(method, livemode);
    return isServedBy(connectors, rule) ? rule.connector : undefined;
  };
}

export function isServedBy(
  { listConnectors }: Pick<Connectors, 'listConnectors'>,
  { method, livemode, connector }: RoutingRule,
): boolean {
  return listConnectors(method, livemode).includes(connector);
}

/** @see docs/decisions.md#catalog */
export function availableMethods(
  findConnector: FindConnector,
  enabled: readonly string[],
): PaymentMethodId[] {
  return PAYMENT_METHOD_IDS.filter(
    (id) => enabled.includes(id) && isServed(findConnector, id, methodRules(id).currencies),
  );
}

export function availableRails(
  findConnector: FindConnector,
  disabled: readonly RailId[],
): RailId[] {
  return RAIL_IDS.filter(
    (id) => !disabled.includes(id) && isServed(findConnector, id, railRules(id).currencies),
  );
}

function isServed(
  findConnector: FindConnector,
  method: string,
  currencies: readonly string[],
): boolean {
  return currencies.some((currency) => findConnector(method, currency) !== undefined);
}

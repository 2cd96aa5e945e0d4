import { type Connectors, type FindConnector, routeBy } from '../../routing';
import type { Stores } from '../../store';

export interface RoutingDeps {
  connectors: Pick<Connectors, 'findConnector' | 'listConnectors'>;
  stores: Pick<Stores, 'routingRules' | 'connectorPauses'>;
}

/**
 * Finds connectors that take new resources: none while the one of the rules or variables is
 * paused, since another bank is never chosen in its place. Rules and pauses are cached, so a change
 * takes effect within seconds. Existing resources stay with the connector that their document names.
 */
export async function readRouting(
  { stores, connectors }: RoutingDeps,
  owner: { account_id: string; livemode: boolean },
): Promise<FindConnector> {
  const [rules, pauses] = await Promise.all([
    stores.routingRules.readCached(),
    stores.connectorPauses.readCached(),
  ]);
  const findRouted = routeBy(connectors, rules, owner);
  return (method, currency) => {
    const connector = findRouted(method, currency);
    return connector !== undefined && pauses.has(connector) ? undefined : connector;
  };
}

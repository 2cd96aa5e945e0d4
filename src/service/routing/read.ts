import { type Connectors, type FindConnector, routeBy } from '../../routing';
import type { Stores } from '../../store';

export interface RoutingDeps {
  connectors: Pick<Connectors, 'findConnector' | 'listConnectors'>;
  stores: Pick<Stores, 'routingRules'>;
}

/**
 * Rules are cached, so a change takes effect within seconds. Existing resources stay with the
 * connector that their document names.
 */
export async function readRouting(
  { stores, connectors }: RoutingDeps,
  owner: { account_id: string; livemode: boolean },
): Promise<FindConnector> {
  return routeBy(connectors, await stores.routingRules.readCached(), owner);
}

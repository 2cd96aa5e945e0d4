import { type Connectors, type FindConnector, routeBy } from '../../../routing';
import type { Stores } from '../../../store';
import { getPauseId } from '../../../store/connectors';

export interface RoutingDeps {
  connectors: Pick<Connectors, 'findConnector' | 'listConnectors'>;
  stores: Pick<Stores, 'routingRules' | 'connectorPauses'>;
}

type Owner = Parameters<typeof routeBy>[2];

/**
 * Finds connectors that take new resources: none where the one of the rules or variables is paused,
 * since another bank is never chosen in its place. Rules and pauses are cached, so a change takes
 * effect within seconds. Existing resources stay with the connector that their document names.
 */
export async function readRouting(deps: RoutingDeps, owner: Owner): Promise<FindConnector> {
  const [findAssigned, pauses] = await Promise.all([
    readAssigned(deps, owner),
    deps.stores.connectorPauses.readCached(),
  ]);
  const { livemode } = owner;
  return (method, currency) => {
    const connector = findAssigned(method, currency);
    if (connector === undefined) return undefined;
    return pauses.has(getPauseId({ connector, livemode })) ? undefined : connector;
  };
}

/** Finds connectors, also while they are paused. */
export async function readAssigned(
  {
    stores,
    connectors,
  }: Pick<RoutingDeps, 'connectors'> & { stores: Pick<Stores, 'routingRules'> },
  owner: Owner,
): Promise<FindConnector> {
  return routeBy(connectors, await stores.routingRules.readCached(), owner);
}

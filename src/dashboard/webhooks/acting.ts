import type { EndpointDeps } from '../../merchants/endpoint';
import type { DashboardDeps } from '../deps';
import type { Call } from '../route';

/** Dependencies of acts on the endpoint, in the name of the one who looks. */
export function endpointDeps({ audit }: Call, deps: DashboardDeps): EndpointDeps {
  const { mongo, stores, sealer, now } = deps;
  return { mongo, endpoints: stores.endpoints, sealer, audit, now };
}

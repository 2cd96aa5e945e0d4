import { join } from 'node:path';
import type { Env } from '../../src/domain/environment';
import { createConnectors, SANDBOX_CONNECTOR } from '../../src/routing';
import { type ConnectorDefinition, listUnserved, type Settings } from './definition';

/** @throws Error for an instruction of the other environment, which has another bank */
export function assertEnvironment(isLive: boolean, livemode: boolean): void {
  if (isLive === livemode) return;
  const environment = isLive ? 'live' : 'the sandbox';
  throw new Error(`This connector serves ${environment} only: not instructed.`);
}

/**
 * Finds the environment that a connector serves, by the variables of the API.
 * @throws Error that names what is routed to the connector and not served by it
 */
export function findEnvironment<S extends Settings>(
  { serves }: Pick<ConnectorDefinition<S>, 'serves'>,
  name: string,
  variables: { LIVE_CONNECTORS: string; SANDBOX_CONNECTORS: string },
): Env {
  const { LIVE_CONNECTORS, SANDBOX_CONNECTORS } = variables;
  const connectors = createConnectors(SANDBOX_CONNECTOR, LIVE_CONNECTORS, SANDBOX_CONNECTORS);
  if (name === SANDBOX_CONNECTOR || !connectors.names.includes(name)) {
    throw new Error(
      `Nothing is routed to ${name}: name it in LIVE_CONNECTORS or SANDBOX_CONNECTORS, as for the API.`,
    );
  }
  const livemode = connectors.liveNames.includes(name);
  const unserved = listUnserved(serves, (id) =>
    connectors.listConnectors(id, livemode).includes(name),
  );
  if (unserved.length === 0) return livemode ? 'live' : 'sandbox';
  const variable = livemode ? 'LIVE_CONNECTORS' : 'SANDBOX_CONNECTORS';
  throw new Error(`${variable}: ${name} does not serve ${unserved.join(', ')}.`);
}

/** Finds the directory of the state files, by default in that of all data. */
export function findStateDir({
  CONNECTOR_STATE_DIR,
  DATA_DIR,
}: {
  CONNECTOR_STATE_DIR: string;
  DATA_DIR: string;
}): string {
  return CONNECTOR_STATE_DIR === '' ? join(DATA_DIR, 'connectors') : CONNECTOR_STATE_DIR;
}

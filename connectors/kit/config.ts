import { join } from 'node:path';
import { z } from 'zod';
import { isLive } from '../../src/base/live';
import { Environment, parseEnvironment, readServers } from '../../src/config';
import type { Env } from '../../src/domain/environment';
import { isBalanceAccountName } from '../../src/domain/money/money';
import { createConnectors, SANDBOX_CONNECTOR } from '../../src/routing';
import {
  type ConnectorDefinition,
  deliversReports,
  listUnserved,
  type Settings,
} from './definition';

const KitVariables = z.object({
  CONNECTOR_NAME: z.string().refine(isBalanceAccountName, 'must be a connector’s name').optional(),
  CONNECTOR_PORT: z.coerce.number().int().min(1).max(65_535).optional(),
});

const KitEnvironment = Environment.omit({ KEYS_FILE: true })
  .extend({ KEYS_DIR: z.string().default('') })
  .extend(KitVariables.shape);

export type KitConfig<S extends Settings> = ReturnType<typeof readKitConfig<S>>;

/** Reads the environment. @throws Error that lists every invalid variable */
export function readKitConfig<S extends Settings>(
  definition: ConnectorDefinition<S>,
  env: NodeJS.ProcessEnv = process.env,
) {
  const config = parseEnvironment(KitEnvironment, env);
  const name = config.CONNECTOR_NAME ?? definition.name;
  const environment = findEnvironment(definition, name, config);
  const needed = [
    ...(environment === 'live' && config.CONNECTOR_STATE_DIR === '' ? ['CONNECTOR_STATE_DIR'] : []),
    ...(definition.sendPayout !== undefined && config.KEYS_DIR === '' ? ['KEYS_DIR'] : []),
    ...(definition.webhook !== undefined && config.CONNECTOR_PORT === undefined
      ? ['CONNECTOR_PORT']
      : []),
    // Unsigned reports of a live bank would change nothing.
    ...(environment === 'live' && deliversReports(definition) && config.CONNECTOR_KEY_FILE === ''
      ? ['CONNECTOR_KEY_FILE']
      : []),
  ];
  if (needed.length > 0) throw new Error(`The connector ${name} needs ${needed.join(', ')}.`);
  return {
    ...config,
    CONNECTOR_STATE_DIR: findStateDir(config),
    temporal: readServers(env, config),
    name,
    environment,
    isLive: environment === 'live' && isLive(config),
    settings: parseEnvironment(z.object(definition.settings), env),
  };
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

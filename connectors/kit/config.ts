import { z } from 'zod';
import { isLive } from '../../src/base/live';
import { Environment, parseEnvironment, readServers } from '../../src/config';
import { isBalanceAccountName } from '../../src/domain/account/balance-account';
import { type ConnectorDefinition, deliversReports, type Settings } from './definition';
import { findEnvironment, findStateDir } from './environment';

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

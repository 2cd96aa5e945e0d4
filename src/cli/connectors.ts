import { createConnectors, SANDBOX_CONNECTOR } from '../routing';
import type { Stores } from '../store';
import { CliFailure } from './failure';
import type { Settings } from './settings';

/**
 * Refuses the name of a connector that this installation neither routes to nor has keys of.
 * @throws CliFailure `connector_not_found`, `setting_invalid`
 */
export async function assertConnector(
  { connectorKeys }: Pick<Stores, 'connectorKeys'>,
  { liveConnectors }: Pick<Settings, 'liveConnectors'>,
  name: string,
): Promise<void> {
  const names = namesOf(liveConnectors);
  if (names.includes(name) || (await connectorKeys.forConnector(name)).length > 0) return;
  throw new CliFailure(
    'connector_not_found',
    `There is no connector ${name}: LIVE_CONNECTORS names the live ones. Known: ${names.join(', ')}.`,
  );
}

function namesOf(live: string): readonly string[] {
  try {
    return createConnectors(SANDBOX_CONNECTOR, live).names;
  } catch (error) {
    throw new CliFailure('setting_invalid', error instanceof Error ? error.message : String(error));
  }
}

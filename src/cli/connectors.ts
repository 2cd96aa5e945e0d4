import { isBalanceAccountName } from '../domain/balance-account';
import { createConnectors, SANDBOX_CONNECTOR } from '../routing';
import { CliFailure } from './failure';
import type { Settings } from './settings';

/**
 * Refuses what can't be the name of a connector. A bank may get its key before anything is routed to it.
 * @throws CliFailure `connector_name_invalid`
 */
export function assertConnectorName(name: string): void {
  if (isBalanceAccountName(name)) return;
  throw new CliFailure(
    'connector_name_invalid',
    `"${name}" cannot be the name of a connector: 1 to 64 letters, digits, hyphens and underscores.`,
  );
}

/**
 * Whether a connector serves something in this installation.
 * @throws CliFailure `setting_invalid`
 */
export function isRouted({ liveConnectors }: Pick<Settings, 'liveConnectors'>, name: string) {
  try {
    return createConnectors(SANDBOX_CONNECTOR, liveConnectors).names.includes(name);
  } catch (error) {
    throw new CliFailure('setting_invalid', error instanceof Error ? error.message : String(error));
  }
}

import { describeError } from '../base/failure';
import { isBalanceAccountName } from '../domain/account/balance-account';
import { ServiceError } from '../domain/errors';
import { createConnectors, SANDBOX_CONNECTOR } from '../routing';

/** @throws ServiceError `connector_name_invalid` */
export function assertConnectorName(name: string): void {
  if (isBalanceAccountName(name)) return;
  throw new ServiceError(
    'connector_name_invalid',
    `"${name}" cannot be the name of a connector: 1 to 64 letters, digits, hyphens and underscores.`,
  );
}

/** Whether any method or rail is routed to a connector. @throws ServiceError `setting_invalid` */
export function isRouted(liveConnectors: string, name: string): boolean {
  try {
    return createConnectors(SANDBOX_CONNECTOR, liveConnectors).names.includes(name);
  } catch (error) {
    throw new ServiceError('setting_invalid', describeError(error));
  }
}

/**
 * Asserts that a connector moves money in an environment.
 * @throws ServiceError `connector_name_invalid`, `connector_unknown`, `setting_invalid`
 */
export function assertServes(
  liveConnectors: string,
  { connector, livemode }: { connector: string; livemode: boolean },
): void {
  assertConnectorName(connector);
  const isKnown = isRouted(liveConnectors, connector);
  if (isKnown && !(livemode && connector === SANDBOX_CONNECTOR)) return;
  throw new ServiceError(
    'connector_unknown',
    isKnown
      ? 'The sandbox bank holds nothing on live.'
      : `There is no connector ${connector}: LIVE_CONNECTORS does not name it.`,
  );
}

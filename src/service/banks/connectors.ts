import { describeError } from '../../base/errors';
import { isBalanceAccountName } from '../../domain/account/balance-account';
import { ServiceError } from '../../domain/errors';
import { PAYMENT_METHOD_IDS } from '../../domain/payment/catalog';
import { RAIL_IDS } from '../../domain/payout/rails';
import { type Connectors, createConnectors, type Routes, SANDBOX_CONNECTOR } from '../../routing';

/** @throws ServiceError `connector_name_invalid` */
export function assertConnectorName(name: string): void {
  if (isBalanceAccountName(name)) return;
  throw new ServiceError(
    'connector_name_invalid',
    `"${name}" cannot be the name of a connector: 1 to 64 letters, digits, hyphens and underscores.`,
  );
}

/** @throws ServiceError `setting_invalid` */
export function isRouted(routes: Routes, name: string): boolean {
  return parseConnectors(routes).names.includes(name);
}

/** @throws ServiceError `setting_invalid` */
export function isLiveConnector(routes: Routes, name: string): boolean {
  return parseConnectors(routes).liveNames.includes(name);
}

/** @throws ServiceError `connector_name_invalid`, `connector_unknown`, `setting_invalid` */
export function assertServes(
  routes: Routes,
  { connector, livemode }: { connector: string; livemode: boolean },
): void {
  assertConnectorName(connector);
  const { names, liveNames, sandbox } = parseConnectors(routes);
  if (names.includes(connector) && !(livemode && !liveNames.includes(connector))) return;
  throw new ServiceError('connector_unknown', explainUnknown({ connector, names, sandbox }));
}

/** @throws ServiceError `connector_name_invalid`, `connector_unknown`, `setting_invalid` */
export function listRoutedInSandbox(routes: Routes, connector: string) {
  assertConnectorName(connector);
  const { listConnectors, liveNames } = parseConnectors(routes);
  const isRoutedHere = (id: string) => listConnectors(id, false).includes(connector);
  const methods = PAYMENT_METHOD_IDS.filter(isRoutedHere);
  const rails = RAIL_IDS.filter(isRoutedHere);
  if (methods.length + rails.length > 0) return { methods, rails };
  const message = liveNames.includes(connector)
    ? `${connector} is a live connector: check it under another name, named in SANDBOX_CONNECTORS.`
    : `No method or rail of the sandbox is routed to ${connector}: SANDBOX_CONNECTORS does not name it.`;
  throw new ServiceError('connector_unknown', message);
}

function explainUnknown({
  connector,
  names,
  sandbox,
}: Pick<Connectors, 'names' | 'sandbox'> & { connector: string }): string {
  if (connector === sandbox) return 'The sandbox bank holds nothing on live.';
  return names.includes(connector)
    ? `${connector} is a test system, which holds nothing on live.`
    : `There is no connector ${connector}: neither LIVE_CONNECTORS nor SANDBOX_CONNECTORS names it.`;
}

/** @throws ServiceError `setting_invalid` */
export function parseConnectors({ liveConnectors, sandboxConnectors }: Routes): Connectors {
  try {
    return createConnectors(SANDBOX_CONNECTOR, liveConnectors, sandboxConnectors);
  } catch (error) {
    throw new ServiceError('setting_invalid', describeError(error));
  }
}

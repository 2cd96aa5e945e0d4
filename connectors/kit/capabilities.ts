import { type Capabilities, CONTRACT_VERSION, REPORT_MS } from '../../src/domain/capabilities';
import type { ConnectorDefinition, Settings } from './definition';
import { startLoop } from './loop';
import type { ConnectorProcess } from './process';

type Served = Omit<Capabilities, 'contract'>;

const FUNCTIONS = [
  'cancelPayout',
  'closeSession',
  'lookUpPayout',
  'lookUpRefund',
  'openSession',
  'reversePayment',
  'sendPayout',
  'sendRefund',
  'voidPayment',
] as const;

export function listCapabilities<S extends Settings>(definition: ConnectorDefinition<S>): Served {
  const functions = FUNCTIONS.filter((name) => definition[name] !== undefined);
  return { serves: definition.serves.toSorted(), functions };
}

/**
 * Reports regularly what a connector serves and can do; it works also without that.
 * @see docs/connectors.md#what-a-connector-reports-of-itself
 */
export function reportCapabilities(
  { connector, stores, now, log }: Pick<ConnectorProcess, 'connector' | 'stores' | 'now' | 'log'>,
  served: Served,
): { stop: () => Promise<void> } {
  return startLoop({
    round: async () => {
      const report = { ...served, contract: CONTRACT_VERSION };
      await stores.capabilities.report(connector, report, now());
      return false;
    },
    pollMs: REPORT_MS,
    failureText: 'what the connector serves could not be reported, tried again later',
    log,
  });
}

import { type Capabilities, CONTRACT_VERSION, REPORT_MS } from '../../src/domain/capabilities';
import type { ConnectorDefinition, Settings } from './definition';
import { startLoop } from './loop';
import type { ConnectorProcess } from './process';

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

/** Lists what a definition serves and can do. */
export function listCapabilities<S extends Settings>(
  definition: ConnectorDefinition<S>,
): Capabilities {
  const functions = FUNCTIONS.filter((name) => definition[name] !== undefined);
  return { serves: definition.serves.toSorted(), functions };
}

/**
 * Reports at once, and then regularly, what a connector serves and can do, and the version of its
 * contract, for `routing set` and `routing show`. A failure stops nothing: the connector works without it.
 * @see docs/connectors.md#what-a-connector-reports-of-itself
 */
export function reportCapabilities(
  { connector, stores, now, log }: Pick<ConnectorProcess, 'connector' | 'stores' | 'now' | 'log'>,
  capabilities: Capabilities,
): { stop: () => Promise<void> } {
  return startLoop({
    round: async () => {
      const report = { ...capabilities, contract: CONTRACT_VERSION };
      await stores.capabilities.report(connector, report, now());
      return false;
    },
    pollMs: REPORT_MS,
    failureText: 'what the connector serves could not be reported, tried again later',
    log,
  });
}

import { exitAfter } from '../../src/base/process';
import { serveConnector } from './connector';
import type { ConnectorDefinition, Settings } from './definition';

/** Runs a connector until it is stopped, and ends the process. */
export function runConnector<S extends Settings>(definition: ConnectorDefinition<S>): void {
  exitAfter(serveConnector(definition));
}

import { DefaultLogger, Runtime } from '@temporalio/worker';

let installed = false;

/** Temporal's own lines would bury the report; errors still show. */
export function quietTemporal(): void {
  if (installed) return;
  installed = true;
  Runtime.install({
    shutdownSignals: [],
    logger: new DefaultLogger('ERROR'),
    telemetryOptions: { logging: { forward: {}, filter: 'ERROR' } },
  });
}

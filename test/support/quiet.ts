import { MockActivityEnvironment } from '@temporalio/testing';
import { DefaultLogger, Runtime } from '@temporalio/worker';
import { createTestLogger } from './test-log';

export { createTestLogger, noteForFailure } from './test-log';

/** Surroundings of an activity that a test calls itself; its failures are the test's to show. */
export function mockActivityEnvironment(
  info?: ConstructorParameters<typeof MockActivityEnvironment>[0],
): MockActivityEnvironment {
  return new MockActivityEnvironment(info, { logger: new DefaultLogger('ERROR') });
}

let installed = false;

/** Does with Temporal's own lines as `createTestLogger` does with the product's. */
export function quietTemporal(): void {
  if (installed) return;
  installed = true;
  const log = createTestLogger('temporal');
  Runtime.install({
    shutdownSignals: [],
    logger: new DefaultLogger('ERROR', ({ message, meta }) => {
      log.error({ err: meta?.['error'] }, message);
    }),
    telemetryOptions: { logging: { forward: {}, filter: 'ERROR' } },
  });
}

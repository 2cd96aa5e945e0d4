import type { Logger } from '../log';
import { openTelemetry } from './open-telemetry';
import type { Tracing, TracingConfig } from './tracing';

/**
 * Starts tracing if the environment configures a collector.
 * @returns undefined without a collector; then OpenTelemetry is not loaded
 */
export async function startTracing(
  service: string,
  config: TracingConfig,
  log: Logger,
): Promise<Tracing | undefined> {
  if (config.OTEL_EXPORTER_OTLP_ENDPOINT === '') return undefined;
  return await openTelemetry(service, config, log);
}

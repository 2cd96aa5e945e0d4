import type { Logger } from '../log';
import { openTelemetry } from './open-telemetry';
import type { Tracing, TracingConfig } from './tracing';

/**
 * Begins to trace where the environment names a collector.
 * @returns undefined where it names none; then nothing of OpenTelemetry is loaded
 */
export async function startTracing(
  service: string,
  config: TracingConfig,
  log: Logger,
): Promise<Tracing | undefined> {
  if (config.OTEL_EXPORTER_OTLP_ENDPOINT === '') return undefined;
  return await openTelemetry(service, config, log);
}

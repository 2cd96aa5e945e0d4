import { once } from 'node:events';
import { createServer } from 'node:http';
import { collectDefaultMetrics, Registry } from 'prom-client';
import { z } from 'zod';

/** Variables of the page on which a process tells its figures. */
export const METRICS_VARIABLES = {
  METRICS_HOST: z.string().default('127.0.0.1'),
  METRICS_PORT: z.coerce.number().int().min(1).max(65535).optional(),
};

/** Text of figures in Prometheus' format. */
export type MetricsSource = () => Promise<string>;

interface MetricsPage {
  close(): Promise<void>;
}

/** Sums of gauges that are told by kind, under names that only counters may have. */
const MISNAMED = ['handles', 'requests', 'resources'];

/** Figures of a process, beginning with those of Node itself: memory, event loop, CPU. */
export function createRegistry(): Registry {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  for (const kind of MISNAMED) registry.removeSingleMetric(`nodejs_active_${kind}_total`);
  return registry;
}

/**
 * Serves the figures at `/metrics`, on a port of their own, since they are for operators alone.
 * Without a port nothing is served.
 * @throws Error when the port is taken
 */
export async function serveMetrics(
  { METRICS_HOST, METRICS_PORT }: { METRICS_HOST: string; METRICS_PORT?: number | undefined },
  registry: Registry,
  sources: readonly MetricsSource[] = [],
): Promise<MetricsPage> {
  if (METRICS_PORT === undefined) return { close: async () => {} };
  const text = async () =>
    (await Promise.all([registry.metrics(), ...sources.map((source) => source())])).join('\n');
  const server = createServer((request, response) => {
    if (request.url !== '/metrics') return void response.writeHead(404).end();
    text().then(
      (body) => response.setHeader('Content-Type', registry.contentType).end(body),
      () => response.writeHead(500).end(),
    );
  });
  server.listen(METRICS_PORT, METRICS_HOST);
  await once(server, 'listening');
  return {
    close: async () => {
      server.close();
      server.closeAllConnections();
    },
  };
}

import { once } from 'node:events';
import { createServer } from 'node:http';
import { collectDefaultMetrics, Registry } from 'prom-client';

export type MetricsSource = () => Promise<string>;

/** Gauges with names of counters; other gauges report the same values. */
const MISNAMED = ['handles', 'requests', 'resources'];

export function createRegistry(): Registry {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  for (const kind of MISNAMED) registry.removeSingleMetric(`nodejs_active_${kind}_total`);
  return registry;
}

/**
 * Serves `/metrics` on a separate port, since it is for operators only. Without a port, nothing is
 * served.
 * @param isReady enables `/healthz` and `/readyz`, for a process without another port
 * @throws Error when the port is in use
 */
export async function serveMetrics(
  { METRICS_HOST, METRICS_PORT }: { METRICS_HOST: string; METRICS_PORT?: number | undefined },
  registry: Registry,
  sources: readonly MetricsSource[] = [],
  isReady?: () => boolean,
): Promise<{ close(): Promise<void> }> {
  if (METRICS_PORT === undefined) return { close: async () => {} };
  const text = async () =>
    (await Promise.all([registry.metrics(), ...sources.map((source) => source())])).join('\n');
  const probes: Record<string, () => boolean> =
    isReady === undefined ? {} : { '/healthz': () => true, '/readyz': isReady };
  const server = createServer((request, response) => {
    const isUp = probes[request.url ?? ''];
    if (isUp !== undefined) return void response.writeHead(isUp() ? 200 : 503).end();
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

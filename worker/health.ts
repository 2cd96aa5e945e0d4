import { once } from 'node:events';
import { createServer } from 'node:http';
import { z } from 'zod';
import { parseEnvironment } from '../src/config';

/** Place at which a supervisor asks after a worker, which serves nothing else. */
export const Environment = z.object({
  WORKER_HEALTH_PORT: z.coerce.number().int().min(1).max(65535).optional(),
});

interface HealthPage {
  close(): Promise<void>;
}

/**
 * Serves `/healthz` (the process lives) and `/readyz` (it polls for tasks), where a port is named.
 * @throws Error when the port is taken
 */
export async function serveHealth(
  host: string,
  isPolling: () => boolean,
  env: NodeJS.ProcessEnv = process.env,
): Promise<HealthPage> {
  const { WORKER_HEALTH_PORT: port } = parseEnvironment(Environment, env);
  if (port === undefined) return { close: async () => {} };
  const up: Record<string, () => boolean> = { '/healthz': () => true, '/readyz': isPolling };
  const server = createServer((request, response) => {
    const isUp = up[request.url ?? ''];
    if (isUp === undefined) response.writeHead(404);
    else response.writeHead(isUp() ? 200 : 503);
    response.end();
  });
  server.listen(port, host);
  await once(server, 'listening');
  return {
    close: async () => {
      server.close();
      server.closeAllConnections();
    },
  };
}

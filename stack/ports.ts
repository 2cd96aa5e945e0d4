import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';
import { OperationalError } from '../src/base/errors';

export const LOOPBACK = '127.0.0.1';

/** Below the ports of outgoing connections. */
const LOWEST = 20_000;
const HIGHEST = 32_000;
const TRIES_MAX = 100;
const chosenPorts = new Set<number>();

/** Excludes ports on which something will listen. */
export function reservePorts(ports: readonly number[]): void {
  for (const port of ports) chosenPorts.add(port);
}

export async function freePort({ lowest = LOWEST, highest = HIGHEST } = {}): Promise<number> {
  for (let tries = 0; tries < TRIES_MAX; tries += 1) {
    const port = randomInt(lowest, highest);
    if (chosenPorts.has(port) || !(await isPortFree(port))) continue;
    chosenPorts.add(port);
    return port;
  }
  throw new OperationalError(`No port from ${lowest} to ${highest} seems to be free.`);
}

export async function isPortFree(port: number): Promise<boolean> {
  const server = createServer();
  return await new Promise<boolean>((resolve) => {
    server.once('error', () => resolve(false));
    server.listen({ port, host: LOOPBACK, exclusive: true }, () =>
      server.close(() => resolve(true)),
    );
  });
}

/** @throws OperationalError naming each port in use and the variable that changes it */
export async function needPorts(ports: Readonly<Record<string, number>>): Promise<void> {
  const conflicts: string[] = [];
  for (const [variable, port] of Object.entries(ports)) {
    if (await isPortFree(port)) continue;
    conflicts.push(
      `Port ${port} (${variable}) is taken by another program: set ${variable} to another.`,
    );
  }
  if (conflicts.length > 0) throw new OperationalError(conflicts.join('\n'));
}

/**
 * Checks, right before a server starts, that no other one would answer instead.
 * @throws OperationalError naming the server and the port
 */
export async function needPortFor(server: string, port: number): Promise<void> {
  if (await isPortFree(port)) return;
  throw new OperationalError(
    `${server} can't have its port ${port}: another program listens on it`,
  );
}

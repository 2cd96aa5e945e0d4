import { createServer } from 'node:net';
import { StackFailure } from './failure';

/** Everything that npm start runs is reachable from this machine only. */
export const LOOPBACK = '127.0.0.1';

/** A port that nothing listens on at this moment. */
export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, LOOPBACK, resolve);
  });
  const address = server.address();
  await new Promise<void>((resolve) => server.close(() => resolve()));
  if (address === null || typeof address === 'string') throw new Error('no port was given');
  return address.port;
}

/** Whether a server could listen on that port of the loopback address. */
export async function isPortFree(port: number): Promise<boolean> {
  const server = createServer();
  return await new Promise<boolean>((resolve) => {
    server.once('error', () => resolve(false));
    server.listen({ port, host: LOOPBACK, exclusive: true }, () =>
      server.close(() => resolve(true)),
    );
  });
}

/** @throws StackFailure naming each port that is taken and the variable that moves it. */
export async function needPorts(ports: Readonly<Record<string, number>>): Promise<void> {
  const taken: string[] = [];
  for (const [variable, port] of Object.entries(ports)) {
    if (await isPortFree(port)) continue;
    taken.push(
      `Port ${port} (${variable}) is taken by another program: set ${variable} to another.`,
    );
  }
  if (taken.length > 0) throw new StackFailure(taken.join('\n'));
}

/**
 * To be asked right before a server is started: another one that listens there would answer in
 * its place.
 * @throws StackFailure naming the server and the port.
 */
export async function needPortFor(server: string, port: number): Promise<void> {
  if (await isPortFree(port)) return;
  throw new StackFailure(`${server} can't have its port ${port}: another program listens on it`);
}

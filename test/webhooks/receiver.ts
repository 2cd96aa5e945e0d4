import { createServer, type RequestListener, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { createServer as createTcpServer, type Socket } from 'node:net';
import { LOCALHOST_CERTIFICATE, LOCALHOST_KEY } from './certificate';

/** A real server on a free port of this machine. */
export interface Receiver {
  port: number;
  url: string;
  /** Connections accepted so far. */
  connections: () => number;
  close: () => Promise<void>;
}

export function receiveHttp(listener: RequestListener): Promise<Receiver> {
  return listen(createServer(listener), 'http');
}

export function receiveHttps(listener: RequestListener): Promise<Receiver> {
  const options = { key: LOCALHOST_KEY, cert: LOCALHOST_CERTIFICATE };
  return listen(createTlsServer(options, listener), 'https');
}

/** Below HTTP: for answers that no HTTP server would give. */
export function receiveTcp(onConnection: (socket: Socket) => void): Promise<Receiver> {
  return listen(createTcpServer(onConnection), 'http');
}

async function listen(
  server: Server | ReturnType<typeof createTcpServer>,
  scheme: 'http' | 'https',
): Promise<Receiver> {
  const sockets = new Set<Socket>();
  let connections = 0;
  server.on('connection', (socket: Socket) => {
    connections += 1;
    sockets.add(socket);
    socket.on('error', () => undefined).on('close', () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('Not listening on TCP.');
  const { port } = address;
  return {
    port,
    url: `${scheme}://localhost:${port}/hook?source=test`,
    connections: () => connections,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      }),
  };
}

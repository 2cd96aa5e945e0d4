import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { LOOPBACK } from '../../stack/ports';

export async function startHangingReceiver() {
  const sockets = new Set<Socket>();
  let attempts = 0;
  const server = createServer((socket) => {
    attempts += 1;
    sockets.add(socket);
    socket.on('error', () => undefined).on('close', () => sockets.delete(socket));
  }).listen(0, LOOPBACK);
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('The receiver has no port.');
  return {
    url: `http://${LOOPBACK}:${address.port}/`,
    attempts: () => attempts,
    close: () => {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

export async function startSilentNameServer() {
  const socket = createSocket('udp4');
  socket.bind(0, LOOPBACK);
  await once(socket, 'listening');
  return { address: `${LOOPBACK}:${socket.address().port}`, close: () => socket.close() };
}

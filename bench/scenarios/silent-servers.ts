import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import { LOOPBACK } from '../../stack/ports';

/** Receives posts and answers none until it recovers. */
export async function startHangingReceiver() {
  const unanswered = new Set<ServerResponse>();
  let attempts = 0;
  let answered = 0;
  let answers = false;
  const answer = (response: ServerResponse) => {
    answered += 1;
    response.writeHead(200).end();
  };
  const server = createServer((request, response) => {
    attempts += 1;
    request.resume();
    if (answers) return answer(response);
    unanswered.add(response);
    response.on('close', () => unanswered.delete(response));
  }).listen(0, LOOPBACK);
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('The receiver has no port.');
  return {
    url: `http://${LOOPBACK}:${address.port}/`,
    attempts: () => attempts,
    answered: () => answered,
    recover: () => {
      answers = true;
      for (const response of unanswered) answer(response);
    },
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}

export async function startSilentNameServer() {
  const socket = createSocket('udp4');
  socket.bind(0, LOOPBACK);
  await once(socket, 'listening');
  return { address: `${LOOPBACK}:${socket.address().port}`, close: () => socket.close() };
}

import { randomBytes, randomUUID } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, createServer as createTcpServer, type Socket } from 'node:net';
import type { Db } from 'mongodb';
import { z } from 'zod';
import { eventsOf } from '../../activities/events';
import type { Sealer } from '../../src/keys/seal';
import type { Stores } from '../../src/store';
import { endpointOwner } from '../../src/store/endpoints';
import type { EventDocument } from '../../src/store/events';

const HOST = '127.0.0.1';

/** Makes an account with an endpoint, and gives its id. */
export async function openMerchant(
  { endpoints }: Pick<Stores, 'endpoints'>,
  sealer: Sealer,
  url: string,
): Promise<string> {
  const account_id = `acct_${randomUUID()}`;
  const secret = `whsec_${randomBytes(32).toString('base64url')}`;
  const sealed = await sealer.seal(secret, endpointOwner(account_id, false));
  await endpoints.set({ account_id, livemode: false, url, sealed, now: new Date(0) });
  return account_id;
}

/** Records events of as many payments of an account, without their payments. */
export async function recordEvents(
  db: Db,
  account_id: string,
  count: number,
): Promise<EventDocument[]> {
  const now = Date.now();
  const events = Array.from({ length: count }, (_, n) => {
    const resource_id = randomUUID();
    // Each in a millisecond of its own: two of so many might have the same place there.
    const at = new Date(now + n).toISOString();
    return eventsOf(
      {
        resource: 'payment',
        resource_id,
        account_id,
        livemode: false,
        at,
        data: { payment_id: resource_id },
        request_id: 'bench',
        moves: [{ type: 'payment.settled', version: 1 }],
      },
      'all',
    );
  }).flat();
  await db.collection<EventDocument>('events').insertMany(events);
  return events;
}

const Told = z.object({ id: z.string() });

/** Receiver that answers at once, and says when an event came. */
export async function startPrompt() {
  const waiting = new Map<string, (at: number) => void>();
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) if (Buffer.isBuffer(chunk)) chunks.push(chunk);
    const { id } = Told.parse(JSON.parse(Buffer.concat(chunks).toString()));
    waiting.get(id)?.(performance.now());
    response.writeHead(200).end();
  });
  const port = portOf(await listening(server.listen(0, HOST)));
  return {
    url: `http://${HOST}:${port}/`,
    /** Resolves to the time when the event comes, which is still to be started. */
    arrival: (id: string) => new Promise<number>((resolve) => waiting.set(id, resolve)),
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

/** Receiver that takes connections in, and never answers. */
export async function startHanging() {
  const open = new Set<Socket>();
  const server = createTcpServer((socket) => {
    open.add(socket);
    socket.on('error', () => undefined).on('close', () => open.delete(socket));
  });
  const port = portOf(await listening(server.listen(0, HOST)));
  return {
    url: `http://${HOST}:${port}/`,
    close: () => {
      server.close();
      for (const socket of open) socket.destroy();
    },
  };
}

/** Name server that takes questions in, and answers none. */
export async function startSilentNames() {
  const socket = createSocket('udp4');
  socket.bind(0, HOST);
  await once(socket, 'listening');
  return { address: `${HOST}:${socket.address().port}`, close: () => socket.close() };
}

async function listening<
  Server extends { address(): AddressInfo | string | null; once: NodeJS.EventEmitter['once'] },
>(server: Server): Promise<Server> {
  await new Promise((resolve) => server.once('listening', () => resolve(undefined)));
  return server;
}

function portOf(server: { address(): AddressInfo | string | null }): number {
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('It has no port.');
  return address.port;
}

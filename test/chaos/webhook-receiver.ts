import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import { z } from 'zod';
import { WebhookEvent } from '../../src/domain/webhook/event';
import { verifySignature } from '../../src/webhooks/signature';

/** Event as the merchant has it: with the same bytes, however often it came. */
interface Received {
  event: z.infer<typeof WebhookEvent>;
  bytes: string;
  times: number;
}

/** The merchant's endpoint: always up, acknowledges what is genuine, refuses the rest. */
export interface WebhookReceiver {
  url: string;
  /** The endpoint's signing secret, known once it is registered. */
  setSecret(secret: string): void;
  /** By event id. */
  received: ReadonlyMap<string, Received>;
  /** Faults of posts: no genuine signature, other bytes under a known id, … */
  faults: readonly string[];
  close(): Promise<void>;
}

export async function startWebhookReceiver(): Promise<WebhookReceiver> {
  const received = new Map<string, Received>();
  const faults: string[] = [];
  let secret = '';
  const takeIn = (request: IncomingMessage, body: Buffer): void => {
    const header = [request.headers['service-signature']].flat()[0];
    const now = Math.floor(Date.now() / 1_000);
    if (!verifySignature({ header, body, secret, now })) throw new Error('signature not genuine');
    const bytes = body.toString();
    const event = WebhookEvent.parse(JSON.parse(bytes));
    if (request.headers['service-event-type'] !== event.type) throw new Error('type in the header');
    const first = received.get(event.id);
    if (first === undefined) received.set(event.id, { event, bytes, times: 1 });
    else if (first.bytes === bytes) first.times += 1;
    else throw new Error(`other bytes under ${event.id}`);
  };
  const server = createServer(async (request, response) => {
    try {
      takeIn(request, await wholeBody(request));
      response.writeHead(204).end();
    } catch (error) {
      // A post that its sender was killed in the middle of is no post.
      if (!request.complete) return;
      faults.push(error instanceof Error ? error.message : String(error));
      response.writeHead(400).end();
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = z.object({ port: z.int() }).parse(server.address());
  return {
    url: `http://127.0.0.1:${port}/webhooks`,
    setSecret: (answered) => {
      secret = answered;
    },
    received,
    faults,
    close: async () => {
      server.close();
      server.closeAllConnections();
    },
  };
}

async function wholeBody(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) if (Buffer.isBuffer(chunk)) chunks.push(chunk);
  return Buffer.concat(chunks);
}

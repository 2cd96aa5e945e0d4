import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { verifySignature } from '../src/webhooks/signature';

const ARRIVAL_MS_MAX = 60_000;
const FLOOR_PATH = '/floor';

const Webhook = z.object({
  id: z.string(),
  /** `{resource}.{move}` */
  type: z.string().regex(/^(payment|refund|payout)\.[a-z_]+$/),
  data: z.record(z.string(), z.uuid()),
});

/** The merchant's side, which takes in both subjects' posts and verifies the product's. */
export interface Receiver {
  floorUrl: string;
  /** Address of one of the product's merchants; its secret is needed before the product posts. */
  endpoint(): { url: string; setSecret(secret: string): void };
  /**
   * Resolves to the time when the post of that move came, in ms of `performance.now()`, also when
   * it came before.
   */
  arrival(id: string, move: string): Promise<number>;
  /** Returns the ids of the events that came for one resource, and forgets the resource. */
  take(id: string): string[];
  /** Counts the posts that came, those whose signature held or did not, and the repeats. */
  counts(): { received: number; verified: number; refused: number; repeated: number };
  close(): Promise<void>;
}

interface Post {
  eventId: string;
  at: number;
}

export async function startReceiver(): Promise<Receiver> {
  const arrived = new Map<string, Map<string, Post>>();
  const waiting = new Map<string, (at: number) => void>();
  const count = { received: 0, verified: 0, refused: 0, repeated: 0 };
  const secrets: string[] = [];

  const takeIn = (body: Buffer): void => {
    const { id, type, data } = Webhook.parse(JSON.parse(body.toString()));
    const [resource, move = ''] = type.split('.');
    const about = data[`${resource}_id`] ?? '';
    const posts = arrived.get(about) ?? new Map<string, Post>();
    arrived.set(about, posts);
    count.received += 1;
    if (posts.has(move)) count.repeated += 1;
    else posts.set(move, { eventId: id, at: performance.now() });
    waiting.get(`${about} ${move}`)?.(performance.now());
  };

  const isGenuine = (request: IncomingMessage, body: Buffer): boolean => {
    if (request.url === FLOOR_PATH) return true;
    const merchant = /^\/product\/(\d+)$/.exec(request.url ?? '')?.[1];
    const secret = merchant === undefined ? undefined : secrets[Number(merchant)];
    const header = request.headers['service-signature'];
    const now = Math.floor(Date.now() / 1_000);
    const genuine =
      secret !== undefined && verifySignature({ header: [header].flat()[0], body, secret, now });
    count[genuine ? 'verified' : 'refused'] += 1;
    return genuine;
  };

  const server = createServer(async (request, response) => {
    const body = await readAll(request);
    if (isGenuine(request, body)) takeIn(body);
    response.writeHead(200).end();
  });
  server.keepAliveTimeout = 60_000;
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('The receiver has no port.');
  const base = `http://127.0.0.1:${address.port}`;

  return {
    floorUrl: `${base}${FLOOR_PATH}`,
    endpoint: () => {
      const n = secrets.push('') - 1;
      const setSecret = (secret: string) => {
        secrets[n] = secret;
      };
      return { url: `${base}/product/${n}`, setSecret };
    },
    arrival: async (about, move) => {
      const early = arrived.get(about)?.get(move);
      if (early !== undefined) return early.at;
      const key = `${about} ${move}`;
      const came = new Promise<number>((resolve) => waiting.set(key, resolve));
      return await within(came, `The webhook ${move} of ${about}`).finally(() =>
        waiting.delete(key),
      );
    },
    take: (about) => {
      const posts = arrived.get(about) ?? new Map<string, Post>();
      arrived.delete(about);
      return [...posts.values()].map(({ eventId }) => eventId);
    },
    counts: () => ({ ...count }),
    close: async () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

async function readAll(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) if (Buffer.isBuffer(chunk)) chunks.push(chunk);
  return Buffer.concat(chunks);
}

async function within(came: Promise<number>, what: string): Promise<number> {
  const given = new AbortController();
  const late = sleep(ARRIVAL_MS_MAX, undefined, { signal: given.signal }).then(
    () => {
      throw new Error(`${what} did not come within ${ARRIVAL_MS_MAX / 1_000} s.`);
    },
    () => Number.NaN,
  );
  try {
    return await Promise.race([came, late]);
  } finally {
    given.abort();
  }
}

import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { verifySignature } from '../../src/webhooks/attempt';
import { LOOPBACK } from '../../stack/ports';

const ARRIVAL_MS_MAX = 60_000;
const FLOOR_PATH = '/floor';

const Webhook = z.object({
  id: z.string(),
  /** `{resource}.{transition}` */
  type: z.string().regex(/^(payment|refund|payout)\.[a-z_]+$/),
  data: z.record(z.string(), z.uuid()),
});

/** The merchants' server: it receives the posts of both subjects, and verifies the product's. */
export interface Receiver {
  floorUrl: string;
  addEndpoint(): { url: string; setSecret(secret: string): void };
  /**
   * Resolves to the time when the webhook of that transition had arrived at as many endpoints, by
   * default at one, in ms of `performance.now()`, also when it arrived before this call.
   */
  arrival(id: string, transition: string, endpoints?: number): Promise<number>;
  take(id: string): string[];
  counts(): { received: number; verified: number; refused: number; repeated: number };
  close(): void;
}

interface Post {
  eventId: string;
  /** Times by path. */
  arrived: Map<string, number>;
}

export async function startReceiver(): Promise<Receiver> {
  const posts = new Map<string, Map<string, Post>>();
  const waiting = new Map<string, () => void>();
  const count = { received: 0, verified: 0, refused: 0, repeated: 0 };
  const secrets: string[] = [];

  const record = (path: string, body: Buffer): void => {
    const { id, type, data } = Webhook.parse(JSON.parse(body.toString()));
    const [resource, transition = ''] = type.split('.');
    const about = data[`${resource}_id`] ?? '';
    const own = posts.get(about) ?? new Map<string, Post>();
    posts.set(about, own);
    count.received += 1;
    const post = own.get(transition) ?? { eventId: id, arrived: new Map<string, number>() };
    own.set(transition, post);
    if (post.arrived.has(path)) count.repeated += 1;
    else post.arrived.set(path, performance.now());
    waiting.get(`${about} ${transition}`)?.();
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
    const chunks: Buffer[] = [];
    for await (const chunk of request) if (Buffer.isBuffer(chunk)) chunks.push(chunk);
    const body = Buffer.concat(chunks);
    if (isGenuine(request, body)) record(request.url ?? '', body);
    response.writeHead(200).end();
  });
  server.keepAliveTimeout = 60_000;
  server.listen(0, LOOPBACK);
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('The receiver has no port.');
  const base = `http://${LOOPBACK}:${address.port}`;

  return {
    floorUrl: `${base}${FLOOR_PATH}`,
    addEndpoint: () => {
      const n = secrets.push('') - 1;
      const setSecret = (secret: string) => {
        secrets[n] = secret;
      };
      return { url: `${base}/product/${n}`, setSecret };
    },
    arrival: async (about, transition, endpoints = 1) => {
      const last = () => {
        const times = [...(posts.get(about)?.get(transition)?.arrived.values() ?? [])];
        return times[endpoints - 1];
      };
      const key = `${about} ${transition}`;
      const arrived = new Promise<number>((resolve) => {
        const look = () => {
          const at = last();
          if (at !== undefined) resolve(at);
        };
        waiting.set(key, look);
        look();
      });
      return await withDeadline(arrived, `The webhook ${transition} of ${about}`).finally(() =>
        waiting.delete(key),
      );
    },
    take: (about) => {
      const own = posts.get(about) ?? new Map<string, Post>();
      posts.delete(about);
      return [...own.values()].map(({ eventId }) => eventId);
    },
    counts: () => ({ ...count }),
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

async function withDeadline(arrived: Promise<number>, what: string): Promise<number> {
  const timer = new AbortController();
  const late = sleep(ARRIVAL_MS_MAX, undefined, { signal: timer.signal }).then(
    () => {
      throw new Error(`${what} did not arrive within ${ARRIVAL_MS_MAX / 1_000} s.`);
    },
    () => Number.NaN,
  );
  try {
    return await Promise.race([arrived, late]);
  } finally {
    timer.abort();
  }
}

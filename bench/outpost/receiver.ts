import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { LOOPBACK } from '../../stack/ports';
import type { Receipts } from './tally';

const POLL_MS = 20;

const Webhook = z.object({ id: z.string() });

/** Merchants' server for both systems: it answers 200 and verifies no signature. */
export interface Receiver {
  url: string;
  receipts: Receipts;
  /**
   * Resolves to whether so many of the events have arrived, which is false once nothing at all has
   * arrived for `silentMs`.
   */
  waitFor(
    ids: readonly string[],
    wanted: { count: number; silentMs: number; signal: AbortSignal },
  ): Promise<boolean>;
  close(): void;
}

export async function startReceiver(): Promise<Receiver> {
  const receipts = new Map<string, number[]>();
  let lastAt = performance.now();
  const record = (body: Buffer): void => {
    const { id } = Webhook.parse(JSON.parse(body.toString()));
    lastAt = performance.now();
    const times = receipts.get(id);
    if (times === undefined) receipts.set(id, [lastAt]);
    else times.push(lastAt);
  };
  const server = createServer(async (request, response) => {
    const body = await readBody(request);
    if (body !== undefined) record(body);
    response.writeHead(200).end();
  });
  server.keepAliveTimeout = 60_000;
  server.listen(0, LOOPBACK);
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('The receiver has no port.');
  return {
    url: `http://${LOOPBACK}:${address.port}/`,
    receipts,
    waitFor: async (ids, { count, silentMs, signal }) => {
      const began = performance.now();
      const missing = new Set(ids);
      for (;;) {
        for (const id of missing) if (receipts.has(id)) missing.delete(id);
        if (ids.length - missing.size >= count) return true;
        if (performance.now() - Math.max(lastAt, began) > silentMs) return false;
        await sleep(POLL_MS, undefined, { signal });
      }
    },
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

/** Reads a body; undefined if its sender was killed meanwhile. */
async function readBody(request: IncomingMessage): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  try {
    for await (const chunk of request) if (Buffer.isBuffer(chunk)) chunks.push(chunk);
    return Buffer.concat(chunks);
  } catch {
    return undefined;
  }
}

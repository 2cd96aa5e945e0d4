import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { Agent, request } from 'undici';

const LOOK_MS = 100;
const LOOK_MS_MAX = 2_000;

/** Balancer before several APIs: it takes turns among those that say that they are ready. */
export interface Balancer {
  /** Number of APIs that are ready. */
  ready(): number;
  /** Asks once, on a kept connection; nothing is tried again. @throws Error when none is ready */
  ask(
    method: 'GET' | 'POST',
    path: string,
    key: string,
    body?: object,
  ): Promise<{ status: number; text: string }>;
  close(): Promise<void>;
}

export function startBalancer(urls: readonly string[]): Balancer {
  const agent = new Agent({ connections: 16 });
  const ready = new Set<string>();
  const over = new AbortController();
  let turn = 0;
  const look = async (url: string) => {
    while (!over.signal.aborted) {
      if (await isReady(url)) ready.add(url);
      else ready.delete(url);
      await sleep(LOOK_MS, undefined, { signal: over.signal }).catch(() => {});
    }
  };
  const looking = Promise.all(urls.map(look));
  return {
    ready: () => ready.size,
    ask: async (method, path, key, body) => {
      const url = [...ready].sort()[turn % Math.max(ready.size, 1)];
      turn += 1;
      if (url === undefined) throw new Error(`${method} ${path}: no API is ready`);
      const answer = await request(`${url}${path}`, {
        dispatcher: agent,
        method,
        headers: {
          authorization: `Bearer ${key}`,
          ...(method === 'POST' && { 'idempotency-key': randomUUID() }),
          ...(body && { 'content-type': 'application/json' }),
        },
        body: body === undefined ? null : JSON.stringify(body),
      });
      return { status: answer.statusCode, text: await answer.body.text() };
    },
    close: async () => {
      over.abort();
      await looking;
      await agent.close();
    },
  };
}

async function isReady(url: string): Promise<boolean> {
  try {
    const answer = await fetch(`${url}/readyz`, { signal: AbortSignal.timeout(LOOK_MS_MAX) });
    await answer.arrayBuffer();
    return answer.status === 200;
  } catch {
    return false;
  }
}

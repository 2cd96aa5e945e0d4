import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { Agent, request } from 'undici';
import { eventually } from '../support/http';

const LOOK_MS = 100;
const LOOK_MS_MAX = 2_000;
/** A busy machine may silence both at once, or the servers that they ask. */
const READY_MS_MAX = 90_000;

export type Balancer = ReturnType<typeof startBalancer>;

/** Balancer before several APIs: it takes turns among those that say that they are ready. */
export function startBalancer(urls: readonly string[]) {
  const agent = new Agent({ connections: 16 });
  const ready = new Set<string>();
  const over = new AbortController();
  let requests = 0;
  const look = async (url: string) => {
    while (!over.signal.aborted) {
      const isTaken = await isReady(url);
      if (isTaken === true) ready.add(url);
      if (isTaken === false) ready.delete(url);
      await sleep(LOOK_MS, undefined, { signal: over.signal }).catch(() => {});
    }
  };
  const looking = Promise.all(urls.map(look));
  return {
    ready: () => ready.size,
    /** Asks once, on a kept connection; nothing is tried again. */
    ask: async (
      method: 'GET' | 'POST',
      path: string,
      key: string,
      body?: object,
      idempotencyKey: string = randomUUID(),
    ) => {
      const some = async () => ready.size > 0;
      await eventually(`${method} ${path}: an API that is ready`, some, READY_MS_MAX);
      const url = [...ready].sort()[requests % ready.size];
      requests += 1;
      const answer = await request(`${url}${path}`, {
        dispatcher: agent,
        method,
        headers: {
          authorization: `Bearer ${key}`,
          ...(method === 'POST' && { 'idempotency-key': idempotencyKey }),
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

/** Undefined where no answer came in time, which changes nothing. */
async function isReady(url: string): Promise<boolean | undefined> {
  const signal = AbortSignal.timeout(LOOK_MS_MAX);
  try {
    const answer = await fetch(`${url}/readyz`, { signal });
    await answer.arrayBuffer();
    return answer.status === 200;
  } catch {
    return signal.aborted ? undefined : false;
  }
}

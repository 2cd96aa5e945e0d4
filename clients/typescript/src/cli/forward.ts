import { setTimeout as sleep } from 'node:timers/promises';
import type { Event } from '../resources/events';
import { VERSION } from '../version';
import { signWebhook } from '../webhooks';

/** Why an event that the server may know is forwarded again. */
export type Repeat = 'restart' | 'retry' | 'redelivery';

export type Forward = ReturnType<typeof createForward>;

const TIMEOUT_MS = 10_000;
const WAIT_MS_MAX = 5_000;

interface ForwardSettings {
  url: string;
  secret: string;
  signal: AbortSignal;
  print: (line: string) => void;
}

/** Posts events to a server as the service would. */
export function createForward({ url, secret, signal, print }: ForwardSettings) {
  const post = (event: Event, repeat: Repeat | undefined) => {
    const body = buildBody(event);
    return fetch(url, {
      ...{ method: 'POST', body, redirect: 'manual' },
      signal: AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]),
      headers: {
        'Content-Type': 'application/json',
        'Service-Signature': signWebhook({ body, secret }),
        'Service-Event-Type': event.type,
        'User-Agent': `durable-payments-listen/${VERSION}`,
        ...(repeat && { 'Service-Repeat': repeat }),
      },
    });
  };
  /**
   * Forwards an event, and waits for a server that is away.
   * @returns whether the server answered with a 2xx
   */
  return async (event: Event, repeat?: Repeat): Promise<boolean> => {
    for (let wait = 250, reason = repeat; ; wait = Math.min(2 * wait, WAIT_MS_MAX)) {
      const start = performance.now();
      const say = (result: string) => {
        const mark = reason === undefined ? '' : `  (${reason})`;
        const duration = `${Math.round(performance.now() - start)} ms`;
        print(
          `${new Date().toISOString()}  ${result}  ${duration}  ${event.type}  ${event.id}${mark}`,
        );
      };
      try {
        const response = await post(event, reason);
        await response.arrayBuffer();
        say(String(response.status));
        return response.ok;
      } catch (error) {
        signal.throwIfAborted();
        const code = readCode(error);
        say(code);
        if (code === 'timeout') return false;
        // A server that took the connection may have received the event.
        if (code !== 'ECONNREFUSED') reason = 'retry';
      }
      await sleep(wait, undefined, { signal });
    }
  };
}

/** The bytes of the service's own webhook. */
function buildBody({ id, type, created, livemode, data }: Event): string {
  return JSON.stringify({ id, type, created, livemode, data });
}

function readCode(error: unknown): string {
  if (!(error instanceof Error)) return 'error';
  if (error.name === 'TimeoutError') return 'timeout';
  const { cause } = error;
  return cause instanceof Error && 'code' in cause ? String(cause.code) : 'broken off';
}

import { type IncomingMessage, request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';

export interface Exchanged {
  status: number;
  headers: Headers;
  text: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests read into whatever came
  body: any;
}

export interface Exchange {
  method?: string;
  path?: string;
  /** As they go on the wire: in this order, a name as often as it stands here. */
  headers?: readonly (readonly [name: string, value: string])[];
  body?: string | Uint8Array;
  /** Sends the body without a Content-Length. */
  chunked?: boolean;
}

/** Makes an HTTP exchange just as it is written, where `fetch` would tidy it up. */
export async function exchange(
  url: string,
  { method = 'POST', path = '/v1/payments', headers = [], body, chunked = false }: Exchange,
): Promise<Exchanged> {
  const { hostname, port } = new URL(url);
  const length = body === undefined ? 0 : Buffer.byteLength(body);
  const framing = chunked
    ? ['Transfer-Encoding', 'chunked']
    : body === undefined
      ? []
      : ['Content-Length', String(length)];
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    const sent = request(
      {
        hostname,
        port,
        method,
        path,
        agent: false,
        headers: ['Host', `${hostname}:${port}`, ...headers.flat(), ...framing],
      },
      resolve,
    );
    sent.on('error', reject);
    sent.end(body);
  });
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk);
  const text = Buffer.concat(chunks).toString();
  return {
    status: response.statusCode ?? 0,
    headers: new Headers(
      Object.entries(response.headersDistinct).flatMap(([name, values = []]) =>
        values.map((value): [string, string] => [name, value]),
      ),
    ),
    text,
    body: parsed(text),
  };
}

/** Time in which a busy machine answers at last. */
const PATIENCE_MS = 90_000;
const PAUSE_MS = 1_000;
const BUSY_MS = 1_000;

/** Asks again while the answer is a 503: the API gives up after 8 s, which may be too soon. */
export async function askUntilReady<A extends { status: number }>(
  ask: () => Promise<A>,
): Promise<{ answer: A; repeats: number }> {
  const giveUpAt = Date.now() + PATIENCE_MS;
  for (let repeats = 0; ; repeats += 1) {
    const began = Date.now();
    const answer = await ask();
    // A refusal at once is none of a busy machine.
    const isBusy = answer.status === 503 && Date.now() - began >= BUSY_MS;
    if (!isBusy || Date.now() > giveUpAt) return { answer, repeats };
    await sleep(PAUSE_MS);
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

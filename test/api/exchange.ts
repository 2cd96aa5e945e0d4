import { type IncomingMessage, request } from 'node:http';
import { text as readText } from 'node:stream/consumers';
import type { Answer } from '../support/http';

export interface Exchange {
  method?: string;
  path?: string;
  /** Sent in this order, a name as often as it is listed. */
  headers?: readonly (readonly [name: string, value: string])[];
  body?: string | Uint8Array;
  /** Sends the body without a Content-Length. */
  chunked?: boolean;
}

/** Makes an HTTP exchange just as it is written, where `fetch` would tidy it up. */
export async function exchange(
  url: string,
  { method = 'POST', path = '/v1/payments', headers = [], body, chunked = false }: Exchange,
): Promise<Answer> {
  const { hostname, port, host } = new URL(url);
  const length = ['Content-Length', String(Buffer.byteLength(body ?? ''))];
  const framing = body === undefined ? [] : length;
  const lines = ['Host', host, ...headers.flat()];
  lines.push(...(chunked ? ['Transfer-Encoding', 'chunked'] : framing));
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    const options = { hostname, port, method, path, agent: false, headers: lines };
    request(options, resolve).on('error', reject).end(body);
  });
  const text = await readText(response);
  const received = Object.entries(response.headersDistinct).flatMap(([name, values = []]) =>
    values.map((value): [string, string] => [name, value]),
  );
  const isJson = /^[[{]/.test(text);
  return {
    status: response.statusCode ?? 0,
    headers: new Headers(received),
    text,
    body: isJson ? JSON.parse(text) : undefined,
  };
}

import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import getRawBody from 'raw-body';

const BODY_BYTES_MAX = 4_194_304;
const TIMEOUT_MS = 60_000;
/** Headers of one connection, or of bytes that are decoded on the way. */
const NOT_PASSED = new Set([
  ...['host', 'connection', 'keep-alive', 'upgrade', 'expect', 'content-length'],
  ...['transfer-encoding', 'accept-encoding', 'content-encoding'],
]);

interface Message {
  headers: Record<string, string>;
  body: Buffer;
}

export type Received = Message & { method: string; path: string };

export type Passed = Message & { status: number };

/** Undefined cuts the connection. */
export type Answering = (request: Received) => Promise<Passed | undefined>;

export async function startProxy(port: number, answer: Answering) {
  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const body = await getRawBody(request, { limit: BODY_BYTES_MAX });
    const { method = 'GET', url: path = '/' } = request;
    const headers = pickHeaders(Object.entries(request.headers));
    const passed = await answer({ method, path, headers, body });
    if (passed === undefined) return void request.socket.destroy();
    response.writeHead(passed.status, passed.headers).end(passed.body);
  };
  const server = createServer((request, response) => {
    handle(request, response).catch(() => request.socket.destroy());
  });
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  const { port: bound } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${bound}`,
    stop: async (): Promise<void> => {
      server.close();
      server.closeAllConnections();
    },
  };
}

/** @throws Error if the server behind the proxy does not answer */
export async function passOn(
  target: string,
  { method, path, headers, body }: Received,
): Promise<Passed> {
  const response = await fetch(`${target}${path}`, {
    ...{ method, headers, redirect: 'manual', signal: AbortSignal.timeout(TIMEOUT_MS) },
    ...(method === 'GET' || method === 'HEAD' ? {} : { body: new Uint8Array(body) }),
  });
  return {
    status: response.status,
    headers: pickHeaders([...response.headers]),
    body: Buffer.from(await response.arrayBuffer()),
  };
}

function pickHeaders(headers: readonly [name: string, value: unknown][]): Record<string, string> {
  const passed = headers.filter(([name]) => !NOT_PASSED.has(name));
  return Object.fromEntries(passed.map(([name, value]) => [name, String(value)]));
}

export function names(
  { headers, body, path = '' }: Message & { path?: string },
  ids: readonly string[],
): boolean {
  const text = `${path}\n${JSON.stringify(headers)}\n${body.toString('latin1')}`;
  return ids.some((id) => text.includes(id) || text.includes(id.replaceAll('-', '')));
}

const COLLECT_MS = 10_000;
const POLL_MS = 50;

interface PassedWebhook extends Received {
  status: number;
}

export type WebhookProxy = Awaited<ReturnType<typeof startWebhookProxy>>;

export async function startWebhookProxy(target: string, port = 0) {
  const connector = target.replace(/\/+$/, '');
  const passed: PassedWebhook[] = [];
  const lost = new Map<string, number>();
  const proxy = await startProxy(port, async (request) => {
    const losing = [...lost.keys()].find((id) => names(request, [id]));
    if (losing !== undefined) {
      lost.set(losing, (lost.get(losing) ?? 0) + 1);
      return undefined;
    }
    const answer = await passOn(connector, request);
    passed.push({ ...request, status: answer.status });
    return answer;
  });
  const list = (id: string): readonly PassedWebhook[] =>
    passed.filter((webhook) => names(webhook, [id]));
  return {
    ...proxy,
    list,
    collect: async (id: string, count: number): Promise<readonly PassedWebhook[]> => {
      const end = Date.now() + COLLECT_MS;
      while (list(id).length < count && Date.now() < end) await sleep(POLL_MS);
      return list(id);
    },
    /** @returns function that counts the lost ones */
    lose: (id: string) => {
      lost.set(id, 0);
      return () => lost.get(id) ?? 0;
    },
    post: async (webhook: Received): Promise<number> => (await passOn(connector, webhook)).status,
  };
}

import type { IncomingHttpHeaders, ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { useFreshFixture } from '../../support/fixture';
import { receiveHttp } from '../../webhooks/receiver';

interface ReceivedCall {
  method: string;
  url: string;
  headers: IncomingHttpHeaders;
  body: string;
}

type Act = (response: ServerResponse) => void;

/** Opens a server for each test, which answers by its script, and repeats the last answer of it. */
export function useScriptedServer() {
  const server = useFreshFixture(async () => {
    const calls: ReceivedCall[] = [];
    const script: Act[] = [];
    const receiver = await receiveHttp(async (request, response) => {
      const { method = '', url = '', headers } = request;
      const act = script[Math.min(calls.length, script.length - 1)];
      calls.push({ method, url, headers, body: await text(request) });
      act?.(response);
    });
    return { calls, script, receiver, url: new URL(receiver.url).origin };
  });
  afterEach(() => server.receiver.close());
  return server;
}

export function answer(status: number, body: unknown, headers: Record<string, string> = {}): Act {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  return (response) => response.writeHead(status, headers).end(text);
}

export function refuse(status: number, code: string, headers: Record<string, string> = {}): Act {
  const error = { type: 'api_error', code, message: `It is ${code}.`, request_id: 'req_1' };
  return answer(status, { error }, headers);
}

export const breakOff: Act = (response) => response.destroy();

export const stayRunning: Act = () => undefined;

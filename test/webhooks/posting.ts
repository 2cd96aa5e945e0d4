import type { RequestListener } from 'node:http';
import type { Socket } from 'node:net';
import { postWebhook, type WebhookPost } from '../../src/webhooks/post';
import { type Receiver, receiveHttp, receiveHttps, receiveTcp } from './receiver';

/** Receivers of one test file, closed after each test. One over HTTP answers 200 by default. */
export function useReceivers() {
  const open: Receiver[] = [];
  afterEach(async () => {
    await Promise.all(open.splice(0).map((receiver) => receiver.close()));
  });
  const keep = async (starting: Promise<Receiver>): Promise<Receiver> => {
    const receiver = await starting;
    open.push(receiver);
    return receiver;
  };
  const answer: RequestListener = (_request, response) => response.end();
  return {
    http: (listener = answer) => keep(receiveHttp(listener)),
    https: (listener = answer) => keep(receiveHttps(listener)),
    tcp: (onConnection: (socket: Socket) => void = () => undefined) =>
      keep(receiveTcp(onConnection)),
  };
}

/** Posts as a delivery does, by default to this machine. */
export function post(url: string, options: Partial<WebhookPost> = {}) {
  return postWebhook({
    url,
    headers: { 'Content-Type': 'application/json', 'Service-Event-Type': 'payment.settled' },
    body: '{"id":"evt_1"}',
    timeoutMs: 60_000,
    allowPrivate: true,
    livemode: false,
    ...options,
  });
}

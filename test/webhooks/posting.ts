import { postWebhook, type WebhookPost } from '../../src/webhooks/post';
import type { Receiver } from './receiver';

/** Receivers of one test file, closed after each test. */
export function receivers() {
  const open: Receiver[] = [];
  afterEach(async () => {
    await Promise.all(open.splice(0).map((receiver) => receiver.close()));
  });
  return async (starting: Promise<Receiver>): Promise<Receiver> => {
    const receiver = await starting;
    open.push(receiver);
    return receiver;
  };
}

/** Posts as a delivery does, to this machine unless told otherwise. */
export function post(url: string, options: Partial<WebhookPost> = {}) {
  return postWebhook({
    url,
    headers: { 'Content-Type': 'application/json', 'Service-Event-Type': 'payment.settled' },
    body: '{"id":"evt_1"}',
    timeoutMs: 60_000,
    allowPrivate: true,
    ...options,
  });
}

import { buffer } from 'node:stream/consumers';
import { WebhookEvent } from '../../src/domain/events/event';
import { verifySignature } from '../../src/webhooks/attempt';
import { receiveHttp } from '../webhooks/receiver';
import type { RunningStack } from './running-stack';

/** Starts a merchant's endpoint: always up, acknowledges what is genuine, refuses the rest. */
export async function startWebhookReceiver() {
  /** By event id, with the same bytes, however often it came. */
  const received = new Map<string, { event: WebhookEvent; bytes: string; times: number }>();
  /** Faults of posts: no genuine signature, other bytes under a known id, … */
  const faults: string[] = [];
  let secret = '';
  const receiver = await receiveHttp(async (request, response) => {
    try {
      const body = await buffer(request);
      const header = [request.headers['service-signature']].flat()[0];
      const now = Math.floor(Date.now() / 1_000);
      if (!verifySignature({ header, body, secret, now })) throw new Error('signature not genuine');
      const bytes = body.toString();
      const event = WebhookEvent.parse(JSON.parse(bytes));
      if (request.headers['service-event-type'] !== event.type)
        throw new Error('type in the header');
      const { times, ...first } = received.get(event.id) ?? { bytes, times: 0 };
      if (first.bytes !== bytes) throw new Error(`other bytes under ${event.id}`);
      received.set(event.id, { event, bytes, times: times + 1 });
      response.writeHead(204).end();
    } catch (error) {
      // A post that its sender was killed in the middle of is no post.
      if (!request.complete) return;
      faults.push(error instanceof Error ? error.message : String(error));
      response.writeHead(400).end();
    }
  });
  // A name has two addresses, of which nobody listens on one.
  const url = receiver.url.replace('localhost', '127.0.0.1');
  return {
    ...{ url, received, faults, close: receiver.close },
    /** Makes it the sandbox endpoint of an account. */
    register: async ({ cli }: RunningStack, account: string): Promise<void> => {
      const place = [account, '--env', 'sandbox', '--url', url];
      secret = (await cli('webhook', 'set', ...place)).signing_secret;
    },
  };
}

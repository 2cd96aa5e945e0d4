import { randomUUID } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { text } from 'node:stream/consumers';
import { z } from 'zod';
import type { EventType } from '../../src/domain/events/event';
import { createEncrypter } from '../../src/encryption/encrypter';
import { makeSigningSecret } from '../../src/service/events/endpoints/manage';
import { secretOwner } from '../../src/store/endpoints';
import { receiveHttp } from '../webhooks/receiver';
import { useFixture } from './fixture';
import type { Service } from './service';

const Event = z.looseObject({ id: z.string(), type: z.string() });

/** A receiver that keeps what it is sent, and answers as a test says. */
export async function openInbox() {
  const received: { headers: IncomingHttpHeaders; body: string }[] = [];
  const answer = { status: 200, text: 'thanks', hold: Promise.resolve() };
  const receiver = await receiveHttp(async (request, response) => {
    received.push({ headers: request.headers, body: await text(request) });
    await answer.hold;
    response.writeHead(answer.status).end(answer.text);
  });
  const clear = () => {
    received.length = 0;
    Object.assign(answer, { status: 200, text: 'thanks', hold: Promise.resolve() });
  };
  // A name has two addresses, of which nobody listens on one.
  const url = receiver.url.replace('localhost', '127.0.0.1');
  return { url, received, answer, clear, close: receiver.close };
}

/** A receiver for one file's tests, empty before each. */
export function useInbox(): Awaited<ReturnType<typeof openInbox>> {
  const inbox = useFixture(openInbox, ({ close }) => close());
  beforeEach(() => inbox.clear());
  return inbox;
}

export type Hook = Awaited<ReturnType<typeof openHook>>;

/** A receiver that may be the endpoint of merchants. */
export async function openHook({ stores, keys }: Pick<Service, 'stores' | 'keys'>) {
  const inbox = await openInbox();
  const { url, received } = inbox;
  const secret = makeSigningSecret();
  const about = (id: string) => received.filter(({ body }) => body.includes(id));
  return {
    ...inbox,
    secret,
    about,
    /** Deliveries without repeats, in the order in which they came; about a resource, if one is named. */
    distinct: (id = '') => [...new Map(about(id).map((each) => [each.body, each])).values()],
    events: (id: string) => about(id).map(({ body }) => Event.parse(JSON.parse(body))),
    register: async ({ account_id }: { account_id: string }, enabled_events?: EventType[]) => {
      const key = { account_id, livemode: false, endpoint_id: `we_${randomUUID()}` };
      const oldest = await stores.endpoints.get(account_id, false);
      const owner = secretOwner(oldest ?? key);
      const ciphertext = await createEncrypter(keys.seal).encrypt(secret, owner);
      await stores.endpoints.set({ ...key, url, ciphertext, enabled_events, now: new Date() });
    },
  };
}

/** An endpoint for one file's tests, each of which begins with no deliveries. */
export function useHook(service: Service): Hook {
  const hook = useFixture(
    () => openHook(service),
    ({ close }) => close(),
  );
  beforeEach(() => hook.clear());
  return hook;
}

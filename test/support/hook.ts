import type { IncomingHttpHeaders } from 'node:http';
import { text } from 'node:stream/consumers';
import { z } from 'zod';
import type { EventType } from '../../src/domain/webhook/event';
import { createEncrypter } from '../../src/encryption/encrypter';
import { makeSigningSecret } from '../../src/service/endpoints';
import { endpointOwner } from '../../src/store/endpoints';
import { receiveHttp } from '../webhooks/receiver';
import { useFixture } from './fixture';
import type { Service } from './service';

const Event = z.looseObject({ id: z.string(), type: z.string() });

/** Webhook as it came. */
interface Delivery {
  headers: IncomingHttpHeaders;
  body: string;
}

export type Hook = Awaited<ReturnType<typeof openHook>>;

/** An endpoint that keeps what it is sent, and answers 204 unless a test says otherwise. */
export async function openHook({ stores, keys }: Pick<Service, 'stores' | 'keys'>) {
  const received: Delivery[] = [];
  const statuses: number[] = [];
  const secret = makeSigningSecret();
  const { url, close } = await receiveHttp(async (request, response) => {
    received.push({ headers: request.headers, body: await text(request) });
    response.writeHead(statuses.shift() ?? 204).end('thanks');
  });
  return {
    url,
    secret,
    received,
    /** The next answers. */
    statuses,
    /** Deliveries about a resource. */
    about: (id: string) => received.filter(({ body }) => body.includes(id)),
    /** Deliveries without repeats, in the order in which they came. */
    distinct: () => [...new Map(received.map((delivery) => [delivery.body, delivery])).values()],
    /** Events about a resource, as they were delivered. */
    events: (id: string) =>
      received
        .filter(({ body }) => body.includes(id))
        .map(({ body }) => Event.parse(JSON.parse(body))),
    /** Makes it the sandbox endpoint of a merchant. */
    register: async (
      { account_id }: { account_id: string },
      enabled_events?: EventType[],
    ): Promise<void> => {
      const owner = endpointOwner(account_id, false);
      const sealed = await createEncrypter(keys.seal).encrypt(secret, owner);
      const endpoint = { account_id, livemode: false, url, sealed, enabled_events };
      await stores.endpoints.set({ ...endpoint, now: new Date() });
    },
    close,
  };
}

/** An endpoint for one file's tests, each of which begins with no deliveries. */
export function useHook(service: Service): Hook {
  const hook = useFixture(
    () => openHook(service),
    ({ close }) => close(),
  );
  beforeEach(() => {
    hook.received.length = 0;
    hook.statuses.length = 0;
  });
  return hook;
}

import type { ServerResponse } from 'node:http';
import { createEndpointLimits } from '../../../src/webhooks/endpoint-limits';
import { createResolver } from '../../../src/webhooks/names';
import { postWebhook } from '../../../src/webhooks/post';
import { useFixture } from '../../support/fixture';
import { runWhile } from '../../support/run-while';
import { serveNames } from '../../webhooks/name-server';
import { useReceivers } from '../../webhooks/posting';
import {
  activitiesOn,
  type Delivering,
  recordEvent,
  recordEvents,
  startDelivery,
  useRealServer,
  useStores,
  workerOn,
} from './setting';

/** Far fewer than in production, so that few events fill them. */
const SLOTS = 20;
/** Attempts that an unproven endpoint may hold. */
const HELD_MAX = 1;
const STUCK = 8;
/** Longer than the test, whose merchant hangs until it is told to answer. */
const TIMEOUT_MS = 100_000;

const server = useRealServer();
const stores = useStores();
const names = useFixture(
  () => serveNames((name) => (name.startsWith('slow') ? 'silent' : undefined)),
  ({ close }) => close(),
);

const receivers = useReceivers();

/** A merchant who answers nothing until told to, and then everything. */
async function hangingMerchant() {
  const held: ServerResponse[] = [];
  let answers = false;
  const receiver = await receivers.http((request, response) => {
    request.resume();
    if (answers) return response.writeHead(200).end();
    held.push(response);
    return response;
  });
  const recover = () => {
    answers = true;
    for (const response of held.splice(0)) response.writeHead(200).end();
  };
  return { url: receiver.url, recover };
}

test('an endpoint that hangs and names that nobody serves hold up no other merchant', async () => {
  const delivering: Delivering = { env: server.env, taskQueue: 'webhooks-limits' };
  const resolve = createResolver({ servers: [names.address], timeoutMs: 1_000 });
  const hanging = await hangingMerchant();
  const held = { now: 0, most: 0 };
  const activities = activitiesOn(stores, {
    limits: createEndpointLimits({ slots: SLOTS }),
    post: async (post) => {
      if (post.url !== hanging.url) return await postWebhook({ ...post, resolve });
      held.now += 1;
      held.most = Math.max(held.most, held.now);
      return await postWebhook({ ...post, timeoutMs: TIMEOUT_MS }).finally(() => {
        held.now -= 1;
      });
    },
  });
  const good = await receivers.http((_request, response) => response.writeHead(204).end());
  const worker = await workerOn(delivering, activities, SLOTS);
  await runWhile(worker, async () => {
    const stuck = await recordEvents(stores, hanging.url, STUCK);
    const silent = await Promise.all(
      [1, 2, 3, 4, 5, 6].map((n) => recordEvent(stores, `https://slow${n}.example.com/hook`)),
    );
    const before = await Promise.all(
      [...stuck, ...silent].map((event) => startDelivery(delivering, event)),
    );
    const others = await Promise.all([1, 2, 3, 4, 5].map(() => recordEvents(stores, good.url, 2)));
    const told = await Promise.all(others.flat().map((event) => startDelivery(delivering, event)));
    for (const handle of told) expect(await handle.result()).toEqual({ outcome: 'delivered' });
    expect(held.most).toBe(HELD_MAX);
    hanging.recover();
    const mended = before.slice(0, stuck.length);
    for (const handle of mended) expect(await handle.result()).toEqual({ outcome: 'delivered' });
    for (const { _id } of stuck) {
      expect((await stores.events.get(_id))?.delivery.attempts).toBe(1);
    }
    for (const { _id } of silent) {
      const row = (await attemptsOf(_id)).at(-1);
      expect(row).toMatchObject({ attempt: 1, error: expect.stringContaining('not be resolved') });
    }
    await Promise.all(before.slice(stuck.length).map((handle) => handle.terminate()));
  });
});

/** Waits for the first attempt, which is the last of the rows. */
async function attemptsOf(event_id: string) {
  for (;;) {
    const rows = await stores.deliveries.forEvent(event_id);
    if (rows.length > 0) return rows;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
